/** What a key may do. `read` looks, `prompt` speaks to agents, `approve` answers their questions, `admin` reaches the machine. */
export const SCOPES = ['read', 'prompt', 'approve', 'admin'] as const;
export type Scope = (typeof SCOPES)[number];

/** A key to the HTTP interface, as stored: its secret only as a SHA-256 hash. */
export interface ApiKey {
  /** The part of the key that may be shown. */
  readonly id: string;
  /** On whose behalf it acts. */
  readonly owner: string;
  /** What it is for, as its creator described it. */
  readonly name: string;
  readonly scopes: readonly Scope[];
  /** In hexadecimal. */
  readonly hash: string;
  readonly createdAt: number;
  /** Null: it does not expire. */
  readonly expiresAt: number | null;
  /** Null: it was not revoked. */
  readonly revokedAt: number | null;
}

/** Whether the key is valid at this time. */
export function isValid({ expiresAt, revokedAt }: Pick<ApiKey, 'expiresAt' | 'revokedAt'>, now: number): boolean {
  return revokedAt === null && (expiresAt === null || now < expiresAt);
}
