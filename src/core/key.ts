import { ThroughlineError } from './errors.ts';
import { checkKey } from './input/names.ts';

/** The scopes that a signed-in browser can have. It acts for one person only, so `act-as` is not among them. */
export const PAGE_SCOPES = ['read', 'prompt', 'approve', 'admin'] as const;
export type PageScope = (typeof PAGE_SCOPES)[number];

/**
 * What a key allows: to `read`, to `prompt` agents, to `approve` what they ask for, and as `admin` to reach the machine. With `act-as`,
 * its other scopes also hold for other owners: for an application with its own login.
 */
export const SCOPES = [...PAGE_SCOPES, 'act-as'] as const;
export type Scope = (typeof SCOPES)[number];

/** What a signed-in browser may do. */
export interface Grant {
  readonly owner: string;
  readonly scopes: readonly PageScope[];
  /** When the sign-in ends. In a sign-in link, null means a week after it was opened. */
  readonly expiresAt: number | null;
}

/** A key to the HTTP interface, as stored: its secret only as a SHA-256 hash. */
export interface ApiKey {
  /** The part of the key that may be shown. */
  readonly id: string;
  /** For whom it acts. */
  readonly owner: string;
  /** What it is for, as its creator described it. */
  readonly name: string;
  readonly scopes: readonly Scope[];
  /** With `act-as`: the other owners that it acts for, as `app:*`; null: all of them. */
  readonly owners: string | null;
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

/** Every owner. */
export const ALL_OWNERS = '*';

/** Which other owners a key acts for: `*`, or `app:*`. Null: none. */
export function ownersOf({ scopes, owners }: Pick<ApiKey, 'scopes' | 'owners'>): string | null {
  return scopes.includes('act-as') ? (owners ?? ALL_OWNERS) : null;
}

/**
 * Whether the owner is one of these. Case matters, and a name has at least one character after the prefix. A prefix ends with a
 * separator, so that `app:*` matches neither `app2:ann` nor `application`.
 */
export function isAmong(owners: string | null, owner: string): boolean {
  if (owners === null || owners === ALL_OWNERS) return owners !== null;
  const prefix = owners.slice(0, -1);
  return OWNERS.test(owners) && owner.length > prefix.length && owner.startsWith(prefix);
}

const OWNERS = /^[^*]+[:/]\*$/;

/** Checks the rights of a new key. Throws `invalid`. */
export function checkRights({ scopes, owners }: Pick<ApiKey, 'scopes' | 'owners'>): void {
  const isActing = scopes.includes('act-as');
  if (isActing && scopes.every((scope) => scope === 'act-as')) {
    throw new ThroughlineError('invalid', 'A key with "act-as" alone has no permissions.', {
      hint: 'Add the scopes that it may use for the owners: act-as,read,prompt.',
    });
  }
  if (owners === null) return;
  if (!isActing) {
    throw new ThroughlineError('invalid', 'Only a key with the scope "act-as" acts for other owners.', {
      hint: 'Add "act-as" to its scopes, or leave the owners out.',
    });
  }
  if (!OWNERS.test(checkKey(owners, 'pattern of owners'))) {
    throw new ThroughlineError('invalid', `${JSON.stringify(owners)} is not a prefix of owners.`, {
      hint:
        'Write the beginning of their names, ended by ":" or "/", and one "*": "app:*" stands for "app:ann", not for "app2:ann". ' +
        'For all owners, leave it out.',
    });
  }
}
