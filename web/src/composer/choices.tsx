import { Popover } from '@base-ui/react/popover';
import { clsx } from 'clsx';
import { SlidersHorizontal } from 'lucide-react';
import { type ReactNode, useId } from 'react';
import type { AgentInfo } from 'throughline/client';
import { POLICIES } from '../../../src/core/restore/restore-settings.ts';
import {
  type Announced,
  type ConfigOption,
  modelOption,
  modesOf,
  otherOptions,
} from '../data/conversation/announced.ts';
import { type ChoiceChange, changeChoice, chooseAgent, type NextTurn } from '../data/drafts/choices.ts';
import { useMay } from '../data/session.ts';

interface ChoicesProps {
  readonly next: NextTurn;
  /** Who answers if no other agent is chosen. */
  readonly agent: string | null;
  readonly announced: Announced;
  onNext(next: NextTurn): void;
}

/** Who answers the next prompt. Choosing another agent hands the conversation over. */
export function AgentPicker({
  agents,
  next,
  agent,
  onNext,
}: Omit<ChoicesProps, 'announced'> & { agents: readonly AgentInfo[] }) {
  const chosen = next.agent ?? agent ?? '';
  const names = agents.map(({ name }) => name);
  const all = chosen === '' || names.includes(chosen) ? names : [chosen, ...names];
  const unavailable = new Set(agents.filter(({ traits }) => traits === null).map(({ name }) => name));
  const isHandoff = agent !== null && chosen !== agent;
  return (
    <label className="flex min-w-0 items-center gap-1 text-ui text-muted">
      <span className="sr-only">Agent</span>
      {isHandoff && <span className="shrink-0 text-accent">Hand over to</span>}
      <select
        value={chosen}
        onChange={({ target }) => onNext(chooseAgent(next, target.value === agent ? null : target.value))}
        className="h-7 max-w-36 min-w-0 truncate rounded-md bg-transparent px-1 hover:bg-hover hover:text-ink pointer-coarse:h-11"
      >
        {chosen === '' && <option value="">Agent</option>}
        {all.map((name) => (
          <option key={name} value={name} disabled={unavailable.has(name)}>
            {unavailable.has(name) ? `${name} (not available)` : name}
          </option>
        ))}
      </select>
    </label>
  );
}

/** Model, mode, the agent's own options, and how the context is restored: for the next prompt. */
export function OptionsPicker({ next, agent, announced, onNext, onOpen }: ChoicesProps & { onOpen?: () => void }) {
  const chosen = chosenWords(next);
  return (
    <Popover.Root onOpenChange={(isOpen) => isOpen && onOpen?.()}>
      <Popover.Trigger
        aria-label={`Options for the next prompt${chosen === '' ? '' : `: ${chosen}`}`}
        className="flex h-7 min-w-0 items-center gap-1 rounded-md px-1.5 text-ui text-muted hover:bg-hover hover:text-ink pointer-coarse:h-11 pointer-coarse:min-w-11"
      >
        <SlidersHorizontal size={14} className="shrink-0" aria-hidden />
        <span className={clsx('max-w-40 truncate', chosen === '' && 'max-sm:sr-only')}>
          {chosen === '' ? currentWords(announced) : chosen}
        </span>
      </Popover.Trigger>
      <Popover.Portal>
        <Popover.Positioner side="top" align="start" sideOffset={8} className="z-40">
          <Popover.Popup className="max-h-[70dvh] w-[min(25rem,calc(100vw-1.5rem))] space-y-3 overflow-y-auto rounded-lg border border-line bg-raised p-4 text-ui shadow-xl outline-none">
            <Popover.Title className="text-ui font-semibold">Options for the next prompt</Popover.Title>
            <AgentOptions next={next} agent={agent} announced={announced} onNext={onNext} />
            <RestoreOptions next={next} onNext={onNext} />
          </Popover.Popup>
        </Popover.Positioner>
      </Popover.Portal>
    </Popover.Root>
  );
}

/** A mode or a config option may allow the agent to act without asking. So choosing one needs `approve`; removing one does not. */
function AgentOptions({ next, agent, announced, onNext }: ChoicesProps) {
  const mayApprove = useMay('approve');
  const of = next.agent ?? agent ?? undefined;
  const change = (what: ChoiceChange) => onNext(changeChoice(next, { ...what, of }));
  const model = modelOption(announced);
  const modes = modesOf(announced);
  return (
    <>
      <NamedField
        label="Model"
        value={next.model}
        now={typeof model?.current === 'string' ? model.current : null}
        values={model?.values ?? []}
        onValue={(model) => change({ model })}
      />
      {(mayApprove || next.mode !== undefined) && (
        <NamedField
          label="Mode"
          value={next.mode}
          now={modes.current}
          values={modes.values}
          onValue={(mode) => change({ mode })}
        />
      )}
      {otherOptions(announced)
        .filter(({ id }) => mayApprove || next.config?.[id] !== undefined)
        .map((option) => (
          <ConfigField
            key={option.id}
            option={option}
            value={next.config?.[option.id]}
            onValue={(value) => change({ config: withOption(next.config, option.id, value) })}
          />
        ))}
    </>
  );
}

function RestoreOptions({ next, onNext }: Pick<ChoicesProps, 'next' | 'onNext'>) {
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

const INPUT = 'h-8 w-full min-w-0 rounded-md border border-line bg-raised px-2 pointer-coarse:h-11';

function Row({ label, children }: { label: string; children: ReactNode }) {
  return (
    // biome-ignore lint/a11y/noLabelWithoutControl: the control is what is put into it
    <label className="grid grid-cols-[9rem_1fr] items-center gap-2">
      <span className="text-muted">{label}</span>
      {children}
    </label>
  );
}

interface NamedFieldProps {
  readonly label: string;
  readonly value: string | undefined;
  /** What the agent uses now; null: it has not announced it. */
  readonly now: string | null;
  readonly values: readonly { readonly id: string; readonly name: string }[];
  onValue(value: string | undefined): void;
}

/** A name that the agent has announced, or any other: some agents take names that they do not announce. */
function NamedField({ label, value, now, values, onValue }: NamedFieldProps) {
  const list = useId();
  return (
    <Row label={label}>
      <input
        className={INPUT}
        list={list}
        value={value ?? ''}
        placeholder={now ?? 'agent’s default'}
        autoComplete="off"
        onChange={({ target }) => onValue(target.value === '' ? undefined : target.value)}
      />
      <datalist id={list}>
        {values.map(({ id, name }) => (
          <option key={id} value={id}>
            {name}
          </option>
        ))}
      </datalist>
    </Row>
  );
}

interface ConfigFieldProps {
  readonly option: ConfigOption;
  readonly value: string | boolean | undefined;
  onValue(value: string | boolean | undefined): void;
}

function ConfigField({ option: { name, current, values }, value, onValue }: ConfigFieldProps) {
  const all = values ?? [
    { id: 'true', name: 'on' },
    { id: 'false', name: 'off' },
  ];
  const choose = (id: string) => onValue(id === '' ? undefined : values === null ? id === 'true' : id);
  return (
    <Row label={name}>
      <select
        className={INPUT}
        value={value === undefined ? '' : String(value)}
        onChange={({ target }) => choose(target.value)}
      >
        <option value="">{current === null ? 'agent’s default' : `current: ${current}`}</option>
        {all.map((one) => (
          <option key={one.id} value={one.id}>
            {one.name}
          </option>
        ))}
      </select>
    </Row>
  );
}

interface NumberFieldProps {
  readonly label: string;
  readonly value: number | null | undefined;
  onValue(value: number | undefined): void;
}

function NumberField({ label, value, onValue }: NumberFieldProps) {
  return (
    <Row label={label}>
      <input
        className={`${INPUT} tabular-nums`}
        type="number"
        min={1}
        inputMode="numeric"
        value={value ?? ''}
        placeholder="–"
        onChange={({ target }) => onValue(target.valueAsNumber > 0 ? Math.round(target.valueAsNumber) : undefined)}
      />
    </Row>
  );
}

function withOption(config: NextTurn['config'], id: string, value: string | boolean | undefined): NextTurn['config'] {
  const { [id]: _, ...rest } = config ?? {};
  return orNothing(value === undefined ? rest : { ...rest, [id]: value });
}

function orNothing<T extends object>(value: T): T | undefined {
  const some = Object.entries(value).filter(([, one]) => one !== undefined);
  return some.length === 0 ? undefined : (Object.fromEntries(some) as T);
}

function chosenWords({ model, mode, config, restore, limits }: NextTurn): string {
  const words = [model, mode, ...Object.entries(config ?? {}).map(([id, value]) => `${id}: ${value}`)];
  if (restore?.policy !== undefined) words.push(`restore ${restore.policy}`);
  if (restore?.rebuild) words.push(REBUILD);
  if (restore?.budgetTokens) words.push(`${restore.budgetTokens} tokens`);
  if (restore?.lastTurns) words.push(`${restore.lastTurns} turns`);
  if (limits?.turnSeconds) words.push(`${limits.turnSeconds} s`);
  return words.filter((word) => word !== undefined).join(' · ');
}

function currentWords(announced: Announced): string {
  const model = modelOption(announced)?.current;
  return [model, modesOf(announced).current].filter((word) => typeof word === 'string').join(' · ') || 'Options';
}
