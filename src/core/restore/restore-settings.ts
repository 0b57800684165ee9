import { ThroughlineError } from '../errors.ts';
import { shown } from '../input/arguments.ts';
import { isObject } from '../turn/content.ts';

export const RUNGS = ['live', 'resume', 'rehydrate', 'transcript', 'replay'] as const;

/** One way of bringing a session to the head. */
export type Rung = (typeof RUNGS)[number];

/**
 * How a turn was given its context. Beside the rungs: `new`, a first session with no history to carry; `fresh`, a session
 * that knowingly starts without the history; `none`, nothing worked and the turn failed.
 */
export type ReceiptRung = Rung | 'new' | 'fresh' | 'none';

export const POLICIES = ['required', 'auto', 'off'] as const;
export type Policy = (typeof POLICIES)[number];

export interface RestoreSettings {
  /** `required`: only steps with some proof, else the turn fails. `auto`: also others, at last a fresh session. `off`: always fresh. */
  readonly policy: Policy;
  /** Use this rung and no other; null: the ladder decides. */
  readonly rung: Rung | null;
  /** The most tokens (estimated) of history to deliver; null: half the agent's window. */
  readonly budgetTokens: number | null;
  /** The most turns of history to deliver; null: as many as fit. */
  readonly lastTurns: number | null;
  /** Replay may run tools on an agent without a no-tools profile. */
  readonly allowTools: boolean;
}

export const DEFAULT_RESTORE: RestoreSettings = {
  policy: 'required',
  rung: null,
  budgetTokens: null,
  lastTurns: null,
  allowTools: false,
};

/** What a caller may set; what is left out is taken from the level below (turn, conversation, settings, default). */
export type RestoreOverride = { -readonly [K in keyof RestoreSettings]?: RestoreSettings[K] };

/**
 * The settings of a turn: what it says itself, else its conversation, else the settings. A rung beats a policy of "off" from a
 * lower level: whoever names a rung wants the history.
 */
export function effectiveRestore(
  settings: RestoreSettings,
  conversation: RestoreOverride,
  turn: RestoreOverride = {},
): RestoreSettings {
  const below = { ...settings, ...conversation };
  const policy = turn.policy ?? (turn.rung && below.policy === 'off' ? 'required' : below.policy);
  const rung = turn.rung === undefined && turn.policy === 'off' ? null : (turn.rung ?? below.rung);
  return { ...below, ...turn, policy, rung };
}

/** Checks a caller's value and names the fault. Throws `invalid`. */
export function parseRestore(input: unknown, where = 'restore'): RestoreOverride {
  if (input === undefined || input === null) return {};
  if (!isObject(input)) throw new ThroughlineError('invalid', `${where} must be an object.`);
  const result: RestoreOverride = {};
  for (const [name, value] of Object.entries(input)) {
    if (value === undefined) continue;
    switch (name) {
      case 'policy':
        result.policy = oneOf(POLICIES, value, `${where}.policy`);
        break;
      case 'rung':
        result.rung = value === null ? null : oneOf(RUNGS, value, `${where}.rung`);
        break;
      case 'budgetTokens':
        result.budgetTokens = value === null ? null : wholeNumber(value, `${where}.budgetTokens`);
        break;
      case 'lastTurns':
        result.lastTurns = value === null ? null : wholeNumber(value, `${where}.lastTurns`);
        break;
      case 'allowTools':
        if (typeof value !== 'boolean')
          throw new ThroughlineError('invalid', `${where}.allowTools must be true or false.`);
        result.allowTools = value;
        break;
      default:
        throw new ThroughlineError('invalid', `${where}.${name} is not known.`, {
          hint: `Known settings: ${Object.keys(DEFAULT_RESTORE).join(', ')}.`,
        });
    }
  }
  if (result.policy === 'off' && result.rung) {
    throw new ThroughlineError('invalid', `${where}: the policy "off" carries no history, so it goes with no rung.`, {
      hint: 'Leave one of them out.',
    });
  }
  return result;
}

function oneOf<T extends string>(known: readonly T[], value: unknown, where: string): T {
  if (typeof value === 'string' && (known as readonly string[]).includes(value)) return value as T;
  throw new ThroughlineError('invalid', `${where} must be one of ${known.join(', ')}, not ${shown(value)}.`);
}

function wholeNumber(value: unknown, where: string): number {
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return value;
  throw new ThroughlineError('invalid', `${where} must be a whole number, not ${shown(value)}.`);
}
