/*
 * A permission is a question that an agent asks in the middle of a turn.
 *
 *   open ──▶ answered    the first answer wins
 *        ──▶ denied      nobody could answer, or nobody did in time; for the agent that is a no
 *        ──▶ withdrawn   its attempt ended before
 */
export const PERMISSION_STATES = ['open', 'answered', 'denied', 'withdrawn'] as const;
export type PermissionState = (typeof PERMISSION_STATES)[number];

export type PermissionKind = 'allow_once' | 'allow_always' | 'reject_once' | 'reject_always';

export interface PermissionOption {
  readonly optionId: string;
  readonly name: string;
  readonly kind: PermissionKind;
}

export interface Permission {
  readonly id: string;
  readonly conversation: string;
  readonly turn: string;
  readonly attempt: number;
  readonly title: string;
  /** What the agent wants to do, as it said it (an ACP tool call). */
  readonly toolCall: unknown;
  readonly options: readonly PermissionOption[];
  readonly state: PermissionState;
  /** The option chosen; null: not answered. */
  readonly optionId: string | null;
  /** Who answered; null: not answered. */
  readonly answeredBy: string | null;
  /** Why it was denied or withdrawn; null: it was not. */
  readonly reason: string | null;
  readonly askedAt: number;
  readonly endedAt: number | null;
}

/** A question of a turn that was denied because nobody answered it. */
export interface Denial {
  readonly permissionId: string;
  readonly title: string;
  readonly reason: string;
}

export function denialsIn(permissions: readonly Permission[]): Denial[] {
  return permissions.flatMap(({ id, title, state, reason }) =>
    state === 'denied' ? [{ permissionId: id, title, reason: reason ?? NOBODY_THERE }] : [],
  );
}

export const NOBODY_THERE = 'nobody can answer here';

export function nobodyAnswered(waitMs: number): string {
  return `nobody answered within ${waitMs / 1000} seconds`;
}

/** What to do so that the same question is not denied again. */
export const HOW_TO_ALLOW =
  'Let somebody answer: onPermission in the library, permissions "ask" with the turn, --permissions ask on the command line; ' +
  'permissions.waitSeconds in the settings says how long it is waited for. ' +
  'Or let the agent do it without asking, in its own settings.';

/** The option that means yes, once rather than always: nobody is granted more than was asked. Null: the agent offered none. */
export function allowOption(options: readonly PermissionOption[]): PermissionOption | null {
  return options.find((o) => o.kind === 'allow_once') ?? options.find((o) => o.kind === 'allow_always') ?? null;
}

/** The option that means no; null: the agent offered none, and the question is cancelled instead. */
export function denyOption(options: readonly PermissionOption[]): PermissionOption | null {
  return options.find((o) => o.kind === 'reject_once') ?? options.find((o) => o.kind === 'reject_always') ?? null;
}
