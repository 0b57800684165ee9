import { ChevronDown } from 'lucide-react';
import { useId } from 'react';
import type { AgentInfo } from 'throughline/client';
import { type Announced, modelOption } from '../../data/conversation/announced.ts';
import { changeChoice, chooseAgent, type NextTurn } from '../../data/drafts/choices.ts';
import { agentName } from '../../ui/agent-name.ts';
import { count } from '../../ui/time.tsx';
import { NamedField } from './fields.tsx';
import { ChoicePopup } from './popup.tsx';

interface AgentPickerProps {
  readonly agents: readonly AgentInfo[];
  readonly next: NextTurn;
  /** Who answers if no other agent is chosen. */
  readonly agent: string | null;
  readonly announced: Announced;
  /** The model that the conversation has chosen for its agent; null: the agent's own. */
  readonly model: string | null;
  onNext(next: NextTurn): void;
  onOpen?(): void;
}

/** Who answers the next prompt, and with which model. Choosing another agent hands the conversation over. */
export function AgentPicker({ agents, next, agent, announced, model, onNext, onOpen }: AgentPickerProps) {
  const chosen = next.agent ?? agent ?? '';
  const isHandoff = agent !== null && chosen !== agent;
  const used = next.model ?? (isHandoff ? null : (model ?? nameOfCurrent(announced)));
  const label = (
    <>
      {isHandoff && <span className="shrink-0 text-accent">Hand over to</span>}
      <span className="truncate text-ink">{chosen === '' ? 'No agent' : agentName(chosen)}</span>
      {used !== null && <span className="max-w-40 truncate">{used}</span>}
      <ChevronDown size={13} className="shrink-0" aria-hidden />
    </>
  );
  return (
    <ChoicePopup title="Agent and model" label={label} {...(onOpen && { onOpen })}>
      <AgentList
        agents={agents}
        chosen={chosen}
        onChoose={(name) => onNext(chooseAgent(next, name === agent ? null : name))}
      />
      <ModelField next={next} agent={agent} announced={announced} onNext={onNext} />
    </ChoicePopup>
  );
}

/** The name of the model that the agent uses now. */
function nameOfCurrent(announced: Announced): string | null {
  const option = modelOption(announced);
  if (typeof option?.current !== 'string') return null;
  return option.values?.find(({ id }) => id === option.current)?.name ?? option.current;
}

export function ModelField({ next, agent, announced, onNext }: Omit<AgentPickerProps, 'agents' | 'model' | 'onOpen'>) {
  const option = modelOption(announced);
  return (
    <NamedField
      label="Model"
      value={next.model}
      now={typeof option?.current === 'string' ? option.current : null}
      values={option?.values ?? []}
      onValue={(model) => onNext(changeChoice(next, { model, of: next.agent ?? agent ?? undefined }))}
    />
  );
}

interface AgentListProps {
  readonly agents: readonly AgentInfo[];
  readonly chosen: string;
  onChoose(name: string): void;
}

/** All agents of the server. Those that cannot work say so. */
function AgentList({ agents, chosen, onChoose }: AgentListProps) {
  const group = useId();
  return (
    <div role="radiogroup" aria-label="Agent" className="-mx-2">
      {agents.map(({ name, traits, problem }) => (
        <label
          key={name}
          className="flex min-h-9 items-center gap-2.5 rounded-md px-2 hover:bg-hover has-disabled:opacity-60 pointer-coarse:min-h-11"
        >
          <input
            type="radio"
            name={group}
            value={name}
            checked={name === chosen}
            disabled={traits === null}
            onChange={() => onChoose(name)}
            className="shrink-0 accent-ink"
          />
          <span className="shrink-0 font-semibold">{agentName(name)}</span>
          <span className="min-w-0 truncate text-faint" title={problem ?? undefined}>
            {traits === null ? 'not available' : `${count(traits.window)} tokens of context`}
          </span>
        </label>
      ))}
    </div>
  );
}
