import { checkKey } from '../../../core/input/names.ts';
import { isValid, SCOPES, type Scope } from '../../../core/key.ts';
import type { Store } from '../../../ports/store.ts';
import { OWNER_HEADER } from '../../../wire/operations/operation.ts';
import { Refusal } from '../refusal.ts';
import { clientAddress, cookieCounts, type Door } from './door.ts';
import type { Failures } from './failures.ts';
import { hasHash, keyParts, sameSecret } from './secrets.ts';
import { cookieIn, type SignIn } from './sign-in.ts';

/** The authenticated caller. */
export interface Principal {
  /** The owner it acts for. */
  readonly owner: string;
  /** Which credentials it used, for the record: `token`, `page`, or `key ID`. */
  readonly by: string;
  readonly scopes: ReadonlySet<Scope>;
  /** Identifies the credentials: principals with the same proof become invalid together. Never shown. */
  readonly proof: string;
  /** Checked again while a stream lasts: a key may be revoked meanwhile. */
  stillValid(): Promise<boolean>;
}

/** What credentials are checked against. */
export interface Gatekeeper {
  readonly token: string;
  readonly signIn: SignIn;
  readonly keys: Pick<Store, 'findKey'>;
  readonly owner: string;
  readonly now: () => number;
  readonly failures: Failures;
}

export interface Credentials {
  readonly method: string;
  readonly header: (name: string) => string | undefined;
  readonly door: Door;
  /** Aborted when nobody waits for the answer any more. */
  readonly signal: AbortSignal;
}

const EVERYTHING: ReadonlySet<Scope> = new Set(SCOPES);

/** Checks the credentials. Throws `unauthenticated` without a reason, so that guessing reveals nothing. */
export async function authenticate(keeper: Gatekeeper, asked: Credentials): Promise<Principal> {
  const found = await principalOf(keeper, asked);
  if (found !== null) return onBehalf(found, asked);
  await failed(keeper, asked, credentialsIn(asked));
  throw unauthenticated();
}

/** Credentials were refused. Resolves when that may be answered. */
export function failed({ failures }: Gatekeeper, asked: Credentials, by: string | null): Promise<void> {
  return failures.add({ by, address: clientAddress(asked.header, asked.door) }, asked.signal);
}

/** The name of what was given, without anything secret; null: nothing was. */
function credentialsIn({ header, door }: Credentials): string | null {
  const authorization = header('authorization');
  if (authorization === undefined) return cookieIn(header('cookie'), door) === null ? null : 'page';
  const key = keyParts(bearerIn(authorization) ?? '');
  return key === null ? 'token' : `key ${key.id}`;
}

function bearerIn(authorization: string): string | undefined {
  return /^Bearer ([\x21-\x7e]{1,256})$/i.exec(authorization)?.[1];
}

export function unauthenticated(): Refusal {
  return new Refusal('unauthenticated', 'Missing or invalid credentials.', {
    hint: 'Send "Authorization: Bearer …" with the token of the data home or a key, or open a link from "throughline link".',
    headers: { 'www-authenticate': 'Bearer realm="throughline"' },
  });
}

async function principalOf(keeper: Gatekeeper, asked: Credentials): Promise<Principal | null> {
  const authorization = asked.header('authorization');
  if (authorization !== undefined) {
    const given = bearerIn(authorization);
    return given === undefined ? null : bearer(keeper, given, asked.door);
  }
  const cookie = cookieIn(asked.header('cookie'), asked.door);
  if (cookie === null || !cookieCounts(asked.method, asked.header, asked.door) || !keeper.signIn.isGood(cookie)) {
    return null;
  }
  const stillValid = async () => keeper.signIn.isGood(cookie);
  return { owner: keeper.owner, by: 'page', scopes: EVERYTHING, proof: cookie, stillValid };
}

async function bearer(keeper: Gatekeeper, given: string, door: Door): Promise<Principal | null> {
  const parts = keyParts(given);
  if (parts === null) {
    if (!door.token || !sameSecret(given, keeper.token)) return null;
    return { owner: keeper.owner, by: 'token', scopes: EVERYTHING, proof: 'token', stillValid: async () => true };
  }
  const key = await keeper.keys.findKey(parts.id);
  if (key === null || !hasHash(parts.secret, key.hash) || !isValid(key, keeper.now())) return null;
  const stillValid = async () => {
    const now = await keeper.keys.findKey(key.id);
    return now !== null && isValid(now, keeper.now());
  };
  const by = `key ${key.id}`;
  return { owner: key.owner, by, scopes: new Set(key.scopes), proof: by, stillValid };
}

/** Only the token may name another owner: whoever has it can read the data of all owners anyway. */
function onBehalf(principal: Principal, { header }: Credentials): Principal {
  const named = header(OWNER_HEADER);
  if (named === undefined || named === principal.owner) return principal;
  if (principal.by !== 'token')
    throw new Refusal('forbidden', 'Only the token of the data home can act for other owners.');
  return { ...principal, owner: checkKey(decoded(named), 'owner') };
}

/** A header is ASCII, an owner need not be. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new Refusal('invalid', `The header ${OWNER_HEADER} is not percent-encoded UTF-8.`);
  }
}

/** For operations that would give a key more rights than it has: all scopes are not enough. */
export function checkToken({ by }: Principal): void {
  if (by !== 'token') throw new Refusal('forbidden', 'This needs the token of the data home; a key is not enough.');
}

export function checkScope({ scopes }: Principal, needed: Scope, what = 'This'): void {
  if (scopes.has(needed)) return;
  throw new Refusal('forbidden', `${what} needs the scope "${needed}".`, {
    hint: `These credentials have: ${[...scopes].join(', ') || 'no scopes'}.`,
  });
}
