/*
 * A permission is a question that an agent asks in the middle of a turn.
 *
 *   open ──▶ answered    the first answer wins
 *        ──▶ withdrawn   its attempt ended, or nobody answered in time; for the agent that is a no
 */
export type PermissionState = 'open' | 'answered' | 'withdrawn';

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
  readonly askedAt: number;
  readonly endedAt: number | null;
}

/** The option that means no; null: the agent offered none, and the question is cancelled instead. */
export function denyOption(options: readonly PermissionOption[]): PermissionOption | null {
  return options.find((o) => o.kind === 'reject_once') ?? options.find((o) => o.kind === 'reject_always') ?? null;
}
