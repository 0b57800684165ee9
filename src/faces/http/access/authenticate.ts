import { checkKey } from '../../../core/input/names.ts';
import { ALL_OWNERS, isAmong, isValid, ownersOf, SCOPES, type Scope } from '../../../core/key.ts';
import type { Store } from '../../../ports/store.ts';
import { OWNER_HEADER } from '../../../wire/operations/operation.ts';
import { Refusal } from '../refusal.ts';
import { clientAddress, cookieCounts, type Door } from './door.ts';
import type { Failures } from './failures.ts';
import { isFromAllowedOrigin } from './origins.ts';
import { hasHash, keyParts, sameSecret } from './secrets.ts';
import { cookieIn, type SignIn } from './sign-in.ts';

/** The authenticated caller. */
export interface Principal {
  /** The owner it acts for. */
  readonly owner: string;
  /** Which credentials it used, for the record: `token`, `page`, or `key ID`. */
  readonly by: string;
  readonly scopes: ReadonlySet<Scope>;
  /** The other owners that it can act for: `*`, `app:*`; null: none. */
  readonly owners: string | null;
  /** Whether it acts for another owner than that of the credentials. */
  readonly isActing: boolean;
  /** When the credentials expire; null: never. */
  readonly expiresAt: number | null;
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
  /** Aborted when the client has gone or the server stops. */
  readonly signal: AbortSignal;
}

const EVERYTHING: ReadonlySet<Scope> = new Set(SCOPES);

/** Checks the credentials. Throws `unauthenticated` without a reason, so that guessing reveals nothing. */
export async function authenticate(keeper: Gatekeeper, asked: Credentials): Promise<Principal> {
  const found = await principalOf(keeper, asked);
  if (found !== null) return onBehalf(found, asked);
  await failed(keeper, asked, credentialsIn(asked));
  throw unauthenticated(asked);
}

/** Records refused credentials. Resolves when the refusal may be sent. */
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

/** The hint names only what is accepted at this door: a page must not be told to use the token. */
export function unauthenticated(asked?: Credentials): Refusal {
  const isCrossOrigin = asked !== undefined && isFromAllowedOrigin(asked.header, asked.door);
  const what = asked?.door.token === false || isCrossOrigin ? 'a key' : 'the token of the data home or a key';
  const how = isCrossOrigin ? ' ("throughline keys create")' : ', or open a link from "throughline link"';
  return new Refusal('unauthenticated', 'Missing or invalid credentials.', {
    hint: `Send "Authorization: Bearer …" with ${what}${how}.`,
    headers: { 'www-authenticate': 'Bearer realm="throughline"' },
  });
}

async function principalOf(keeper: Gatekeeper, asked: Credentials): Promise<Principal | null> {
  const authorization = asked.header('authorization');
  const isCrossOrigin = isFromAllowedOrigin(asked.header, asked.door);
  if (authorization !== undefined) {
    const given = bearerIn(authorization);
    // Refused before the token is compared: a page must not have it.
    if (isCrossOrigin && given !== undefined && keyParts(given) === null) throw keyNeeded();
    return given === undefined ? null : bearer(keeper, given, asked.door);
  }
  const cookie = cookieIn(asked.header('cookie'), asked.door);
  if (isCrossOrigin || cookie === null || !cookieCounts(asked.method, asked.header, asked.door)) return null;
  const grant = keeper.signIn.grantOf(cookie);
  if (grant === null) return null;
  const { owner, scopes, expiresAt } = grant;
  const stillValid = async () => keeper.signIn.grantOf(cookie) !== null;
  const alone = { owners: null, isActing: false };
  return { owner, by: 'page', scopes: new Set(scopes), ...alone, expiresAt, proof: cookie, stillValid };
}

function keyNeeded(): Refusal {
  return new Refusal(
    'forbidden',
    'A page of another origin needs a key; the token of the data home is not accepted from it.',
    {
      hint: 'Create one with "throughline keys create", for the owner and with the scopes that the page needs.',
    },
  );
}

async function bearer(keeper: Gatekeeper, given: string, door: Door): Promise<Principal | null> {
  const parts = keyParts(given);
  if (parts === null) {
    if (!door.token || !sameSecret(given, keeper.token)) return null;
    const forever = { expiresAt: null, stillValid: async () => true };
    const anybody = { owners: ALL_OWNERS, isActing: false };
    return { owner: keeper.owner, by: 'token', scopes: EVERYTHING, proof: 'token', ...anybody, ...forever };
  }
  const key = await keeper.keys.findKey(parts.id);
  if (key === null || !hasHash(parts.secret, key.hash) || !isValid(key, keeper.now())) return null;
  const stillValid = async () => {
    const now = await keeper.keys.findKey(key.id);
    return now !== null && isValid(now, keeper.now());
  };
  const by = `key ${key.id}`;
  const { owner, scopes, expiresAt } = key;
  const acts = { owners: ownersOf(key), isActing: false };
  return { owner, by, scopes: new Set(scopes), ...acts, expiresAt, proof: by, stillValid };
}

/**
 * The request acts for the owner that the header names, or is refused. The token can name any owner: its holder can read all data anyway.
 * A key needs the scope `act-as`, and keeps its other scopes; a signed-in browser is one person.
 */
function onBehalf(principal: Principal, { header }: Credentials): Principal {
  const named = ownerIn(header(OWNER_HEADER));
  if (named === null || named === principal.owner) return principal;
  const owner = checkKey(named, 'owner');
  if (isAmong(principal.owners, owner)) return { ...principal, owner, isActing: true };
  const whom = principal.owners === null ? `"${principal.owner}" only` : `"${principal.owners}"`;
  throw new Refusal('forbidden', `These credentials act for ${whom}, not for "${owner}".`, {
    hint: `Use a key of "${owner}", or one that acts for several owners: "throughline keys create NAME --scopes act-as,read,prompt --owners 'app:*'".`,
  });
}

/** One name in printable ASCII. Repeated headers arrive joined by commas, so a comma in a name has to be encoded. */
const ENCODED = /^[\x21-\x2b\x2d-\x7e]+$/;

/** Null: there is no such header. A header is ASCII, an owner need not be. */
function ownerIn(header: string | undefined): string | null {
  if (header === undefined) return null;
  try {
    if (ENCODED.test(header)) return decodeURIComponent(header);
  } catch {
    // Refused below.
  }
  const what = header === '' ? 'is empty' : 'is not one percent-encoded name';
  throw new Refusal('invalid', `The header ${OWNER_HEADER} ${what}.`, {
    hint: 'Send it once, with the name in UTF-8: a space is %20, a comma %2C, "ä" %C3%A4. Leave it out to act for the owner of the credentials.',
  });
}

/** For what would outlive a key: revoking a key must end everything. */
export function checkNoKey({ by }: Principal): void {
  if (by === 'token' || by === 'page') return;
  throw new Refusal('forbidden', 'A key is not enough: this needs the token of the data home, or a signed-in browser.');
}

/**
 * Whether the caller may see what is about all owners. An `admin` of another owner may not, nor a key of another owner that acts for
 * this one. `serverOwner`: the owner that the server was started for.
 */
export function isOperator({ by, owner, isActing }: Principal, serverOwner: string): boolean {
  return by === 'token' || (owner === serverOwner && !isActing);
}

export function checkOperator(principal: Principal, serverOwner: string, why = 'This is about all owners.'): void {
  if (isOperator(principal, serverOwner)) return;
  const { owner, isActing } = principal;
  const whose = isActing ? `These credentials only act for "${owner}".` : `These credentials belong to "${owner}".`;
  throw new Refusal('forbidden', `${why} ${whose}`, {
    hint: `Use the token of the data home, or a key with "admin" of "${serverOwner}".`,
  });
}

export function checkScope({ scopes }: Principal, needed: Scope, what = 'This'): void {
  if (scopes.has(needed)) return;
  throw new Refusal('forbidden', `${what} needs the scope "${needed}".`, {
    hint: `These credentials have: ${[...scopes].join(', ') || 'no scopes'}.`,
  });
}
