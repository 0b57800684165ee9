import { checked, flag, invalidValue, type Output, object, oneOf, orNull, type Wrong, whole } from '../input/schema.ts';

export const RUNGS = ['live', 'resume', 'rehydrate', 'transcript', 'replay'] as const;

/**
 * One way of bringing a session to the head.
 *
 * @example
 * import type { Rung } from 'throughline';
 *
 * const rung: Rung = 'rehydrate';
 * await chat.warm({ restore: { rung, rebuild: true } });
 */
export type Rung = (typeof RUNGS)[number];

/** Whether the rung continues in a session that has turns already. All others build a new session, and tell it the history. */
export function continues(rung: ReceiptRung | null): boolean {
  return rung === 'live' || rung === 'resume';
}

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
  /**
   * Restore by this rung and no other, once a restore is needed: a session that is live or can be resumed continues. With `live` or `resume`,
   * nothing below it is used. Null: the ladder decides.
   */
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

const FIELDS = {
  policy: oneOf(POLICIES),
  rung: orNull(oneOf(RUNGS)),
  budgetTokens: HISTORY,
  lastTurns: HISTORY,
  allowTools: flag,
} satisfies Record<keyof RestoreSettings, unknown>;

/** What the settings or a conversation may set. What is left out is taken from the next level (turn, conversation, settings, default). */
export const RESTORE = checked(object(FIELDS), contradiction);
/**
 * What one conversation sets differently from the settings.
 *
 * @example
 * await tl.conversation('notes', { restore: { policy: 'auto', budgetTokens: 20_000 } }).ask('Go on.');
 */
export type RestoreOverride = Output<typeof RESTORE>;

/** A rebuild is asked for once: as a setting, it would replace the session with every prompt. */
const TURN_RESTORE = checked(object({ ...FIELDS, rebuild: flag }), contradiction);
/**
 * What one turn or one warm-up sets differently. `rebuild`: a new session is told the history now, although the present one could
 * continue; `rung` says how.
 *
 * @example
 * await chat.ask('Go on.', { restore: { rebuild: true, rung: 'transcript', budgetTokens: 20_000 } });
 */
export type TurnRestore = Output<typeof TURN_RESTORE>;

/** What one turn or one warm-up is restored with. */
export type EffectiveRestore = RestoreSettings & Pick<TurnRestore, 'rebuild'>;

interface Asked {
  readonly policy?: Policy | undefined;
  readonly rung?: Rung | null | undefined;
  readonly rebuild?: boolean | undefined;
}

function contradiction({ policy, rung = null, rebuild = false }: Asked): Wrong | null {
  const hint = 'Leave one of them out.';
  const asked = rung === null ? (rebuild ? 'rebuild a session' : null) : 'have a rung';
  if (policy === 'off' && asked !== null) {
    return { says: `The policy "off" carries no history, so it cannot ${asked}`, hint };
  }
  if (!rebuild || !continues(rung)) return null;
  return { says: `A rebuild opens a new session, and the rung "${rung}" continues in the present one`, hint };
}

/** The settings of a turn: its own, else those of its conversation, else the settings. */
export function effectiveRestore(
  settings: RestoreSettings,
  conversation: RestoreOverride,
  turn: TurnRestore = {},
): EffectiveRestore {
  return overridden(overridden(settings, conversation), turn);
}

/** What carries the history beats a policy "off" of the level below, and the reverse. A rebuild beats a rung that continues. */
function overridden(below: RestoreSettings, above: TurnRestore): EffectiveRestore {
  const { rebuild = false } = above;
  const policy = above.policy ?? (below.policy === 'off' && (above.rung || rebuild) ? 'required' : below.policy);
  const kept = policy === 'off' || (rebuild && continues(below.rung)) ? null : below.rung;
  return { ...below, ...above, policy, rung: above.rung === undefined ? kept : above.rung };
}

/** Checks what a conversation sets, and names the fault. Throws `invalid`. */
export function parseRestore(input: unknown, where = 'restore'): RestoreOverride {
  return input === undefined || input === null ? {} : RESTORE.read(input, [where], invalidValue());
}

/** Checks what a turn or a warm-up sets, and names the fault. Throws `invalid`. */
export function parseTurnRestore(input: unknown): TurnRestore {
  return input === undefined || input === null ? {} : TURN_RESTORE.read(input, ['restore'], invalidValue());
}

// ── what to do when the context could not be given, or was too much ──────────────────────────────────────────────────

export const WHEN_UNPROVED =
  'Allow steps without proof (policy "auto", --restore auto), or send the prompt to another agent.';

export const WHEN_REPLAY_FAILED = 'Prefer another rung than "replay", or none ("rung": null, --rung none).';

/** `shrink`: how often the agent has refused a longer history. */
export function whenNothingFits({ budgetTokens, lastTurns }: RestoreSettings, shrink: number): string {
  if (lastTurns === 0) return 'Raise restore.lastTurns (--last-turns).';
  const agent = 'or send the prompt to another agent';
  if (shrink > 0) return `Its agent has refused a longer history: use a model with a larger window, ${agent}.`;
  const now = budgetTokens === null ? 'Without that setting, it is half of the window of the model.' : '';
  return `Raise the budget (restore.budgetTokens, --budget-tokens), ${agent}. ${now}`.trimEnd();
}

/** Of a prompt that its agent refused as too long, by how its session got its context. */
export function whenTooLong({ rung, told }: { readonly rung: ReceiptRung; readonly told: number }): string {
  if (told === 0) return 'Send a shorter prompt, or use a model with a larger window.';
  if (continues(rung)) {
    return 'Send a shorter prompt, or rebuild the session ("rebuild": true, --rebuild): a new one gets only as much history as fits into the budget.';
  }
  return 'Send a shorter prompt, or less of the history: lower restore.budgetTokens (--budget-tokens) or restore.lastTurns (--last-turns).';
}
