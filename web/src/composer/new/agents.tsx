import { clsx } from 'clsx';
import { ChevronDown } from 'lucide-react';
import { useId } from 'react';
import type { AgentInfo } from 'throughline/client';
import { type Announced, modelOption } from '../../data/conversation/announced.ts';
import { chooseAgent, type NextTurn } from '../../data/drafts/choices.ts';
import { agentName } from '../../ui/agent-name.ts';
import { count } from '../../ui/time.tsx';
import { ModelField } from '../choices/agent-picker.tsx';
import { ChoicePopup } from '../choices/popup.tsx';

interface AgentChooserProps {
  readonly agents: readonly AgentInfo[];
  readonly next: NextTurn;
  /** The agent of the settings; null: not known yet. */
  readonly agent: string | null;
  readonly announced: Announced;
  onNext(next: NextTurn): void;
}

/** Who answers, and with which model: known before the first turn where the agent has said which there are. */
export function AgentChooser({ agents, next, agent, announced, onNext }: AgentChooserProps) {
  const group = useId();
  const chosen = next.agent ?? agent;
  return (
    <section>
      <h2 className="mb-1.5 text-facts font-semibold text-faint">Agent and model</h2>
      <div
        role="radiogroup"
        aria-label="Agent"
        className="divide-y divide-line overflow-hidden rounded-lg border border-line-strong bg-raised"
      >
        {agents.map((one) => (
          <div
            key={one.name}
            className={clsx(
              'flex min-h-9 items-center gap-2 pr-1.5 text-ui pointer-coarse:min-h-11',
              one.name === chosen ? 'bg-hover shadow-[inset_3px_0_0_var(--color-ink)]' : 'hover:bg-hover',
            )}
          >
            <label className="flex min-h-9 min-w-0 flex-1 items-center gap-2.5 pl-2.5 pointer-coarse:min-h-11">
              <input
                type="radio"
                name={group}
                checked={one.name === chosen}
                disabled={one.traits === null}
                onChange={() => onNext(chooseAgent(next, one.name === agent ? null : one.name))}
                className="shrink-0 accent-ink"
              />
              <b className="shrink-0 font-semibold">{agentName(one.name)}</b>
              <span className="min-w-0 truncate text-faint" title={one.problem ?? undefined}>
                {one.traits === null ? (one.problem ?? 'not available') : windowWords(one.traits.window)}
              </span>
            </label>
            {one.name === chosen && (
              <ChoicePopup
                title="Model"
                label={
                  <>
                    <span className="max-w-32 truncate text-ink">{modelWords(next, announced)}</span>
                    <ChevronDown size={13} aria-hidden className="shrink-0" />
                  </>
                }
              >
                <ModelField next={next} agent={agent} announced={announced} onNext={onNext} />
              </ChoicePopup>
            )}
          </div>
        ))}
      </div>
    </section>
  );
}

const windowWords = (tokens: number) => `${count(tokens)} tokens of context`;

function modelWords({ model }: NextTurn, announced: Announced): string {
  if (model === undefined) return 'Its default';
  return modelOption(announced)?.values?.find(({ id }) => id === model)?.name ?? model;
}
