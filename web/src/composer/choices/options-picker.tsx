import { clsx } from 'clsx';
import { SlidersHorizontal } from 'lucide-react';
import { POLICIES } from '../../../../src/core/restore/restore-settings.ts';
import { type Announced, otherOptions } from '../../data/conversation/announced.ts';
import { changeChoice, type NextTurn } from '../../data/drafts/choices.ts';
import { useMay } from '../../data/session.ts';
import { ConfigField, INPUT, NumberField, Row } from './fields.tsx';
import { ChoicePopup } from './popup.tsx';

export interface OptionsProps {
  readonly next: NextTurn;
  /** Who answers if no other agent is chosen. */
  readonly agent: string | null;
  readonly announced: Announced;
  onNext(next: NextTurn): void;
}

const TITLE = 'Options for the next prompt';

/** The agent's own options, and how the context is restored: for the next prompt. */
export function OptionsPicker({ onOpen, ...props }: OptionsProps & { onOpen?: () => void }) {
  const chosen = chosenWords(props.next);
  const label = (
    <>
      <SlidersHorizontal size={14} className="shrink-0" aria-hidden />
      <span className={clsx('max-w-40 truncate', chosen === '' && 'sr-only')}>{chosen === '' ? 'none' : chosen}</span>
    </>
  );
  return (
    <ChoicePopup title={TITLE} label={label} {...(onOpen && { onOpen })}>
      <Options {...props} />
    </ChoicePopup>
  );
}

/** An option may allow the agent to act without asking. So choosing one needs `approve`; removing one does not. */
export function Options({ next, agent, announced, onNext }: OptionsProps) {
  const mayApprove = useMay('approve');
  const of = next.agent ?? agent ?? undefined;
  return (
    <>
      {otherOptions(announced)
        .filter(({ id }) => mayApprove || next.config?.[id] !== undefined)
        .map((option) => (
          <ConfigField
            key={option.id}
            option={option}
            value={next.config?.[option.id]}
            onValue={(value) => onNext(changeChoice(next, { config: withOption(next.config, option.id, value), of }))}
          />
        ))}
      <RestoreOptions next={next} onNext={onNext} />
    </>
  );
}

function RestoreOptions({ next, onNext }: Pick<OptionsProps, 'next' | 'onNext'>) {
  const { restore = {}, limits = {} } = next;
  const setRestore = (change: object) => onNext(changeChoice(next, { restore: orNothing({ ...restore, ...change }) }));
  const setLimits = (change: object) => onNext(changeChoice(next, { limits: orNothing({ ...limits, ...change }) }));
  return (
    <>
      <Row label="Restore">
        <select
          className={INPUT}
          value={restore.rebuild ? REBUILD : (restore.policy ?? '')}
          onChange={({ target: { value } }) =>
            setRestore(
              value === REBUILD
                ? { policy: undefined, rebuild: true }
                : { policy: value || undefined, rebuild: undefined },
            )
          }
        >
          <option value="">default</option>
          {POLICIES.map((policy) => (
            <option key={policy} value={policy}>
              {POLICY_WORDS[policy]}
            </option>
          ))}
          <option value={REBUILD}>rebuild: replace the session now</option>
        </select>
      </Row>
      <NumberField
        label="History, max tokens"
        value={restore.budgetTokens}
        onValue={(budgetTokens) => setRestore({ budgetTokens })}
      />
      <NumberField
        label="History, max turns"
        value={restore.lastTurns}
        onValue={(lastTurns) => setRestore({ lastTurns })}
      />
      <NumberField
        label="Time limit, seconds"
        value={limits.turnSeconds}
        onValue={(turnSeconds) => setLimits({ turnSeconds })}
      />
      <p className="text-facts text-faint">Restore, history and time limit apply to the next prompt only.</p>
    </>
  );
}

/** Not a policy: it replaces a session that could continue. */
const REBUILD = 'rebuild';

const POLICY_WORDS: Readonly<Record<(typeof POLICIES)[number], string>> = {
  required: 'required: with proof, or the turn fails',
  auto: 'auto: a fresh session if all else fails',
  off: 'off: always a fresh session',
};

function withOption(config: NextTurn['config'], id: string, value: string | boolean | undefined): NextTurn['config'] {
  const { [id]: _, ...rest } = config ?? {};
  return orNothing(value === undefined ? rest : { ...rest, [id]: value });
}

function orNothing<T extends object>(value: T): T | undefined {
  const some = Object.entries(value).filter(([, one]) => one !== undefined);
  return some.length === 0 ? undefined : (Object.fromEntries(some) as T);
}

function chosenWords({ config, restore, limits }: NextTurn): string {
  const words = [...Object.entries(config ?? {}).map(([id, value]) => `${id}: ${value}`)];
  if (restore?.policy !== undefined) words.push(`restore ${restore.policy}`);
  if (restore?.rebuild) words.push(REBUILD);
  if (restore?.budgetTokens) words.push(`${restore.budgetTokens} tokens`);
  if (restore?.lastTurns) words.push(`${restore.lastTurns} turns`);
  if (limits?.turnSeconds) words.push(`${limits.turnSeconds} s`);
  return words.join(' · ');
}
