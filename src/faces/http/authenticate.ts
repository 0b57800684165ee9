import { checkText } from '../../core/arguments.ts';
import { isValid, SCOPES, type Scope } from '../../core/key.ts';
import type { Store } from '../../ports/store.ts';
import { OWNER_HEADER } from '../../wire/operations.ts';
import type { Door } from './door.ts';
import { cookieCounts } from './guard.ts';
import type { Principal } from './principal.ts';
import { Refusal } from './refusal.ts';
import { hasHash, keyParts, sameSecret } from './secrets.ts';
import { cookieIn, type SignIn } from './sign-in.ts';

export interface Gatekeeper {
  readonly token: string;
  readonly signIn: SignIn;
  readonly keys: Pick<Store, 'findKey'>;
  readonly owner: string;
  readonly now: () => number;
}

export interface Credentials {
  readonly method: string;
  readonly header: (name: string) => string | undefined;
  readonly door: Door;
}

const EVERYTHING: ReadonlySet<Scope> = new Set(SCOPES);

/** Finds out who asks. Throws `unauthenticated` with nothing said of why: a guess must learn nothing. */
export async function authenticate(keeper: Gatekeeper, asked: Credentials): Promise<Principal> {
  const found = await principalOf(keeper, asked);
  if (found === null) {
    throw new Refusal('unauthenticated', 'Who asks is not known.', {
      hint: 'Send "Authorization: Bearer …" with the token of the data home or a key, or open a link of "throughline link".',
      headers: { 'www-authenticate': 'Bearer realm="throughline"' },
    });
  }
  return onBehalf(found, asked);
}

async function principalOf(keeper: Gatekeeper, asked: Credentials): Promise<Principal | null> {
  const authorization = asked.header('authorization');
  if (authorization !== undefined) {
    const [, given] = /^Bearer ([\x21-\x7e]{1,256})$/i.exec(authorization) ?? [];
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

/** Only whoever has the token may name another owner: it opens the file with everybody's conversations anyhow. */
function onBehalf(principal: Principal, { header }: Credentials): Principal {
  const named = header(OWNER_HEADER);
  if (named === undefined || named === principal.owner) return principal;
  if (principal.by !== 'token') throw new Refusal('forbidden', 'Only the token of the data home acts for others.');
  return { ...principal, owner: checkText(decoded(named), 'owner') };
}

/** A header is ASCII, an owner need not be. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new Refusal('invalid', 'The owner is not percent-encoded UTF-8.');
  }
}

/** For what would make more of a key than it is: not even all scopes are enough. */
export function checkToken({ by }: Principal): void {
  if (by !== 'token') throw new Refusal('forbidden', 'This is only for whoever has the token of the data home.');
}

export function checkScope({ scopes }: Principal, needed: Scope, what = 'This'): void {
  if (scopes.has(needed)) return;
  throw new Refusal('forbidden', `${what} needs the scope "${needed}".`, {
    hint: `This key has ${[...scopes].join(', ') || 'none'}.`,
  });
}
