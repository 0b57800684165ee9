import { checked, flag, invalidValue, type Output, object, oneOf, orNull, whole } from '../input/schema.ts';

export const RUNGS = ['live', 'resume', 'rehydrate', 'transcript', 'replay'] as const;

/**
 * One way of bringing a session to the head.
 *
 * @example
 * import type { Rung } from 'throughline';
 *
 * const rung: Rung = 'rehydrate';
 * await chat.warm({ restore: { rung } });
 */
export type Rung = (typeof RUNGS)[number];

/**
 * How a turn was given its context. Besides the rungs: `new`, a first session with no history to carry; `fresh`, a session
 * that knowingly starts without the history; `none`, nothing worked and the turn failed.
 *
 * @example
 * const { receipt } = await chat.ask('Go on.');
 * if (receipt.rung === 'transcript') console.log('a new session was told the earlier turns');
 */
export type ReceiptRung = Rung | 'new' | 'fresh' | 'none';

export const POLICIES = ['required', 'auto', 'off'] as const;
/**
 * How strict a restore is. `required`: only with some proof. `auto`: at last also a fresh session. `off`: always fresh.
 *
 * @example
 * import type { Policy } from 'throughline';
 *
 * const policy: Policy = 'auto';
 * await chat.ask('Go on.', { restore: { policy } });
 */
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

const HISTORY = orNull(whole({ least: 0 }));

/** What a caller may set. A field that is left out is taken from the next level (turn, conversation, settings, default). */
export const RESTORE = checked(
  object({
    policy: oneOf(POLICIES),
    rung: orNull(oneOf(RUNGS)),
    budgetTokens: HISTORY,
    lastTurns: HISTORY,
    allowTools: flag,
  } satisfies Record<keyof RestoreSettings, unknown>),
  ({ policy, rung }) =>
    policy === 'off' && rung
      ? { says: 'The policy "off" carries no history, so it cannot have a rung', hint: 'Leave one of them out.' }
      : null,
);
/**
 * What one conversation or one turn sets differently from the settings.
 *
 * @example
 * await chat.ask('Go on.', { restore: { rung: 'transcript', budgetTokens: 20_000 } });
 */
export type RestoreOverride = Output<typeof RESTORE>;

/**
 * The settings of a turn: its own, else those of its conversation, else the settings. A rung beats a policy "off" of a lower level,
 * because a rung carries the history.
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
  return input === undefined || input === null ? {} : RESTORE.read(input, [where], invalidValue());
}
