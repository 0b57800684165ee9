import { createHmac } from 'node:crypto';
import { checkKey } from '../../../core/input/names.ts';
import { type Grant, PAGE_SCOPES, type PageScope, type Scope } from '../../../core/key.ts';
import { shellWord } from '../../../core/turn/quoted.ts';
import type { SignInLink } from '../../../ports/server.ts';
import type { LinkStore } from '../../../ports/store.ts';
import { Refusal } from '../refusal.ts';
import type { Door } from './door.ts';
import { freshSecret, sameSecret } from './secrets.ts';

const CODE_MS = 15 * 60_000;
const COOKIE_MS = 7 * 24 * 3_600_000;
/** An owner's oldest unused links are dropped beyond this many. */
const MOST_LINKS = 64;

/**
 * Signs browsers in: a link with a code that works once gives a cookie that no script can read. The store has the hash of the code, so
 * that a link works at every server of the store, and once at all of them together. The cookie holds its expiry, its owner
 * and its scopes. Hash and signature are made with keys from the token: both survive a restart, become invalid with the token, and count at
 * every server that has the same one.
 */
export class SignIn {
  readonly #codeKey: Buffer;
  readonly #key: Buffer;
  readonly #links: LinkStore;
  readonly #now: () => number;

  constructor(token: string, links: LinkStore, now: () => number) {
    this.#codeKey = createHmac('sha256', token).update('throughline link').digest();
    this.#key = createHmac('sha256', token).update('throughline cookie').digest();
    this.#links = links;
    this.#now = now;
  }

  /** Throws what the store throws. */
  async newLink(url: string, { owner, scopes, expiresAt: grantEnds }: Grant): Promise<SignInLink> {
    const code = freshSecret();
    const link = { hash: this.#hash(code), scopes, grantEnds, validMs: CODE_MS, most: MOST_LINKS };
    const expiresAt = await this.#links.createLink(owner, link);
    return { link: `${url}/enter?code=${code}`, expiresAt, owner, scopes };
  }

  /** The value of `Set-Cookie`; null: the code is unknown, used or expired. */
  async redeem(code: string, { secure, cookie }: Pick<Door, 'secure' | 'cookie'>): Promise<string | null> {
    const granted = await this.#links.takeLink(this.#hash(code));
    if (granted === null) return null;
    const now = this.#now();
    const { owner, scopes, expiresAt } = granted;
    const until = Math.min(now + COOKIE_MS, expiresAt ?? Number.POSITIVE_INFINITY);
    const who = Buffer.from(JSON.stringify({ owner, scopes })).toString('base64url');
    const claim = `${until}.${freshSecret()}.${who}`;
    const age = Math.max(0, Math.floor((until - now) / 1_000));
    const attributes = `Path=/; HttpOnly; SameSite=Strict; Max-Age=${age}${secure ? '; Secure' : ''}`;
    return `${cookie}=${claim}.${this.#sign(claim)}; ${attributes}`;
  }

  /** What the cookie grants now; null: it is not ours, or has expired. */
  grantOf(cookie: string): Grant | null {
    const at = cookie.lastIndexOf('.');
    const claim = cookie.slice(0, Math.max(at, 0));
    if (!sameSecret(cookie.slice(at + 1), this.#sign(claim))) return null;
    const [until, , who] = claim.split('.');
    // Without an owner: of an older version, when every cookie had every scope.
    if (who === undefined || this.#now() >= Number(until)) return null;
    const { owner, scopes } = JSON.parse(Buffer.from(who, 'base64url').toString()) as Grant;
    return { owner, scopes, expiresAt: Number(until) };
  }

  #hash(code: string): string {
    return createHmac('sha256', this.#codeKey).update(code).digest('hex');
  }

  #sign(claim: string): string {
    return createHmac('sha256', this.#key).update(claim).digest('base64url');
  }
}

/** What a caller asks for; left out: its own owner and scopes. */
export interface AskedGrant {
  readonly owner?: string;
  readonly scopes?: readonly PageScope[];
}

/** Who makes a link. `serverOwner`: the owner that the server was started for. */
interface Maker {
  readonly owner: string;
  readonly by: string;
  readonly scopes: ReadonlySet<Scope>;
  readonly expiresAt: number | null;
  readonly serverOwner: string;
}

/**
 * What a link of this caller grants: never another owner, more scopes or more time than the caller has itself. Only the token can act
 * for every owner. Throws `forbidden` and `invalid`.
 */
export function grantBy(maker: Maker, asked: AskedGrant): Grant {
  const owner = asked.owner === undefined ? maker.owner : checkKey(asked.owner, 'owner');
  if (owner !== maker.owner && maker.by !== 'token') {
    throw new Refusal('forbidden', `A link for "${owner}" needs the token of the data home.`, {
      hint: `On the machine of the server: "throughline link --as ${shellWord(owner)} --scopes read,prompt".`,
    });
  }
  if (asked.scopes === undefined && owner !== maker.serverOwner && maker.by === 'token') {
    throw new Refusal('invalid', `Name the scopes that a link for "${owner}" has.`, {
      hint: `For example read,prompt,approve. With "admin" it reaches this machine. Scopes: ${PAGE_SCOPES.join(', ')}.`,
    });
  }
  const scopes = PAGE_SCOPES.filter((scope) => asked.scopes?.includes(scope) ?? maker.scopes.has(scope));
  const missing = scopes.find((scope) => !maker.scopes.has(scope));
  if (missing !== undefined) {
    throw new Refusal('forbidden', `A link cannot have the scope "${missing}": these credentials do not have it.`, {
      hint: `They have: ${[...maker.scopes].join(', ')}.`,
    });
  }
  if (!scopes.includes('read')) {
    throw new Refusal('invalid', 'A link needs the scope "read": without it the page shows nothing.');
  }
  return { owner, scopes, expiresAt: maker.expiresAt };
}

/** The value of our cookie in the header; null: missing, or given twice. */
export function cookieIn(header: string | undefined, { cookie: name }: Pick<Door, 'cookie'>): string | null {
  const ours = (header ?? '')
    .split(';')
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(`${name}=`));
  return ours.length === 1 ? (ours[0] as string).slice(name.length + 1) : null;
}
