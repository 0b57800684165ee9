import { clsx } from 'clsx';
import { X } from 'lucide-react';
import type { ConversationState } from 'throughline/client';
import { useAgents } from '../data/agents.ts';
import { chooseFilter, type ListFilter, NO_FILTER, useList } from '../data/list.ts';
import { useClient } from '../data/session.ts';
import { IconButton } from '../ui/button.tsx';

interface Chosen {
  readonly label: string;
  readonly states: readonly ConversationState[];
}

/** The choices of the state filter, each for one or more states. */
const FILTER_STATES = {
  needs: { label: 'Needs you', states: ['asks', 'unrestored'] },
  running: { label: 'Running', states: ['running', 'queued'] },
  failed: { label: 'Failed', states: ['failed', 'interrupted', 'unrestored'] },
  idle: { label: 'Idle', states: ['idle'] },
} as const satisfies Readonly<Record<string, Chosen>>;
type FilterState = keyof typeof FILTER_STATES;

/** Null: no filter by state. */
function stateOf(states: readonly ConversationState[] | null): FilterState | null {
  const names = Object.keys(FILTER_STATES) as FilterState[];
  return names.find((name) => FILTER_STATES[name].states === states) ?? null;
}

const DAYS = [
  ['1', 'Last 24 hours'],
  ['7', 'Last 7 days'],
  ['30', 'Last 30 days'],
] as const;

/** By agent, state and date. */
export function Filters() {
  const tl = useClient();
  const filter = useList((list) => list.filter);
  const agents = useAgentNames();
  const choose = (change: Partial<ListFilter>) => void chooseFilter(tl, { ...filter, ...change });
  return (
    <fieldset className="flex w-full min-w-0 items-center gap-1" aria-label="Filters">
      <Choice
        label="Agent"
        value={filter.agent ?? ''}
        options={agents.map((name) => [name, name])}
        onChoose={(agent) => choose({ agent: agent || null })}
      />
      <Choice
        label="State"
        value={stateOf(filter.states) ?? ''}
        options={Object.entries(FILTER_STATES).map(([name, { label }]) => [name, label])}
        onChoose={(name) => choose({ states: FILTER_STATES[name as FilterState]?.states ?? null })}
      />
      <Choice
        label="Date"
        value={filter.days === null ? '' : String(filter.days)}
        options={DAYS}
        onChoose={(days) => choose({ days: days === '' ? null : Number(days) })}
      />
      {filter !== NO_FILTER && (
        <IconButton label="Clear the filters" small onClick={() => choose(NO_FILTER)}>
          <X size={14} />
        </IconButton>
      )}
    </fieldset>
  );
}

interface ChoiceProps {
  readonly label: string;
  readonly value: string;
  readonly options: readonly (readonly [string, string])[];
  onChoose(value: string): void;
}

/** A native `select`: a sheet on phones, and usable by keyboard. */
function Choice({ label, value, options, onChoose }: ChoiceProps) {
  return (
    <select
      aria-label={label}
      value={value}
      onChange={(event) => onChoose(event.target.value)}
      className={clsx(
        'h-7 min-w-0 flex-1 cursor-pointer rounded-md border bg-transparent px-1 text-facts pointer-coarse:h-11',
        value === '' ? 'border-line text-muted' : 'border-ink text-ink',
      )}
    >
      <option value="">{label}</option>
      {options.map(([each, name]) => (
        <option key={each} value={each}>
          {name}
        </option>
      ))}
    </select>
  );
}

/** The configured agents, and those of the loaded conversations. */
function useAgentNames(): readonly string[] {
  const { agents } = useAgents();
  const known = useList((list) => list.known);
  const used = [...known.values()].flatMap(({ lastAgent }) => lastAgent ?? []);
  return [...new Set([...agents.map(({ name }) => name), ...used])].sort();
}
