import { createHmac } from 'node:crypto';
import { checkKey } from '../../../core/input/names.ts';
import { PAGE_SCOPES, type PageScope, type Scope } from '../../../core/key.ts';
import type { SignInLink } from '../../../ports/server.ts';
import { Refusal } from '../refusal.ts';
import type { Door } from './door.ts';
import { freshSecret, sameSecret } from './secrets.ts';

const CODE_MS = 15 * 60_000;
const COOKIE_MS = 7 * 24 * 3_600_000;
/** The oldest unused codes are dropped beyond this many. */
const MOST_CODES = 64;

/** What a signed-in browser may do. */
export interface Grant {
  readonly owner: string;
  readonly scopes: readonly PageScope[];
  /** When it ends. In a link: at the latest; null: a week after it was opened. */
  readonly expiresAt: number | null;
}

/**
 * Signs browsers in: a link with a code that works once gives a cookie that no script can read. The cookie holds its expiry, its owner
 * and its scopes, and is signed with a key made from the token. So it survives a restart, and becomes invalid with the token.
 */
export class SignIn {
  readonly #key: Buffer;
  readonly #now: () => number;
  readonly #codes = new Map<string, { readonly until: number; readonly grant: Grant }>();

  constructor(token: string, now: () => number) {
    this.#key = createHmac('sha256', token).update('throughline cookie').digest();
    this.#now = now;
  }

  newLink(url: string, grant: Grant): SignInLink {
    const [oldest] = this.#codes.keys();
    if (oldest !== undefined && this.#codes.size >= MOST_CODES) this.#codes.delete(oldest);
    const code = freshSecret();
    const expiresAt = this.#now() + CODE_MS;
    this.#codes.set(code, { until: expiresAt, grant });
    return { link: `${url}/enter?code=${code}`, expiresAt, owner: grant.owner, scopes: grant.scopes };
  }

  /** The value of `Set-Cookie`; null: the code is unknown, used or expired. */
  redeem(code: string, { secure, cookie }: Pick<Door, 'secure' | 'cookie'>): string | null {
    const found = this.#codes.get(code);
    this.#codes.delete(code);
    const now = this.#now();
    if (found === undefined || now >= found.until) return null;
    const { owner, scopes, expiresAt } = found.grant;
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
      hint: `On the machine of the server: "throughline link --as ${owner} --scopes read,prompt".`,
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
    throw new Refusal('forbidden', `A link cannot have the scope "${missing}": its maker does not have it.`, {
      hint: `These credentials have: ${[...maker.scopes].join(', ')}.`,
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
