import { isObject } from '../../../../src/core/turn/content.ts';
import type { Update } from '../../../../src/core/turn/update.ts';

/** What an agent announces about itself in updates of its turns (ACP). Unexpected values are ignored. */
export interface Announced {
  /** Its latest plan; null: none. */
  readonly plan: readonly PlanEntry[] | null;
  readonly commands: readonly AgentCommand[];
  /** Empty: it has announced none. */
  readonly options: readonly ConfigOption[];
  readonly modes: readonly Named[];
  readonly mode: string | null;
}

export interface PlanEntry {
  readonly content: string;
  readonly status: 'pending' | 'in_progress' | 'completed';
}

export interface AgentCommand {
  readonly name: string;
  readonly description: string;
  /** What to type after it; null: nothing. */
  readonly hint: string | null;
}

export interface Named {
  readonly id: string;
  readonly name: string;
}

export interface ConfigOption extends Named {
  readonly category: string | null;
  readonly current: string | boolean | null;
  /** Null: true or false. */
  readonly values: readonly Named[] | null;
}

export const NOTHING_ANNOUNCED: Announced = { plan: null, commands: [], options: [], modes: [], mode: null };

/** Returns the same object if the update is about something else. */
export function afterUpdate(before: Announced, update: Update): Announced {
  const fields = update as Readonly<Record<string, unknown>>;
  switch (update.sessionUpdate) {
    case 'plan':
      return { ...before, plan: objectsIn(fields.entries).flatMap(planEntry) };
    case 'available_commands_update':
      return { ...before, commands: objectsIn(fields.availableCommands).flatMap(command) };
    case 'config_option_update':
      return { ...before, options: objectsIn(fields.configOptions).flatMap(configOption) };
    case 'current_mode_update': {
      const modes = objectsIn(fields.availableModes).flatMap((mode) => named(mode, 'id'));
      const mode = textIn(fields.currentModeId) ?? before.mode;
      return { ...before, mode, modes: modes.length > 0 ? modes : before.modes };
    }
    default:
      return before;
  }
}

/**
 * The models, modes and options of an agent, as the server knows them before the first turn. Their current values belong to the
 * conversation that announced them, and not to a new one.
 */
export function announcedBy(updates: readonly Update[]): Announced {
  const { options, modes } = updates.reduce(afterUpdate, NOTHING_ANNOUNCED);
  return { ...NOTHING_ANNOUNCED, modes, options: options.map((option) => ({ ...option, current: null })) };
}

/** The option for the model; null: the agent has announced none. */
export function modelOption({ options }: Pick<Announced, 'options'>): ConfigOption | null {
  return options.find(({ id }) => id === 'model') ?? options.find(({ category }) => category === 'model') ?? null;
}

/** The modes of the agent, announced as modes or as an option. */
export function modesOf({ modes, mode, options }: Announced): { values: readonly Named[]; current: string | null } {
  if (modes.length > 0) return { values: modes, current: mode };
  const option = options.find(({ id, category }) => id === 'mode' || category === 'mode');
  const current = typeof option?.current === 'string' ? option.current : mode;
  return { values: option?.values ?? [], current };
}

/** The options that are neither the model nor the mode. */
export function otherOptions(announced: Announced): readonly ConfigOption[] {
  const model = modelOption(announced);
  return announced.options.filter((option) => option !== model && option.id !== 'mode' && option.category !== 'mode');
}

const STATUSES = ['pending', 'in_progress', 'completed'] as const;

function planEntry({ content, status }: Record<string, unknown>): PlanEntry[] {
  if (typeof content !== 'string') return [];
  return [{ content, status: STATUSES.find((one) => one === status) ?? 'pending' }];
}

function command({ name, description, input }: Record<string, unknown>): AgentCommand[] {
  if (typeof name !== 'string' || name === '') return [];
  const hint = isObject(input) ? (textIn(input.hint) ?? '') : null;
  return [{ name, description: textIn(description) ?? '', hint }];
}

function configOption(option: Record<string, unknown>): ConfigOption[] {
  const { type, category, currentValue, options } = option;
  const current = typeof currentValue === 'string' || typeof currentValue === 'boolean' ? currentValue : null;
  // Values may be grouped.
  const flat = objectsIn(options).flatMap((one) => (Array.isArray(one.options) ? objectsIn(one.options) : [one]));
  const values = type === 'boolean' ? null : flat.flatMap((one) => named(one, 'value'));
  return named(option, 'id').map((name) => ({ ...name, category: textIn(category), current, values }));
}

function named(value: Record<string, unknown>, field: string): Named[] {
  const id = textIn(value[field]);
  return id === null ? [] : [{ id, name: textIn(value.name) ?? id }];
}

function objectsIn(value: unknown): Record<string, unknown>[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}

function textIn(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null;
}
