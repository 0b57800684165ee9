import { createHmac } from 'node:crypto';
import type { SignInLink } from '../../../ports/server.ts';
import type { Door } from './door.ts';
import { freshSecret, sameSecret } from './secrets.ts';

const CODE_MS = 15 * 60_000;
const COOKIE_MS = 7 * 24 * 3_600_000;
/** The oldest unused codes are dropped beyond this many. */
const MOST_CODES = 64;

/**
 * Signs browsers in: a link with a code that works once gives a cookie that no script can read. The cookie holds its expiry and
 * is signed with a key made from the token. So it survives a restart, and becomes invalid with the token.
 */
export class SignIn {
  readonly #key: Buffer;
  readonly #now: () => number;
  readonly #codes = new Map<string, number>();

  constructor(token: string, now: () => number) {
    this.#key = createHmac('sha256', token).update('throughline cookie').digest();
    this.#now = now;
  }

  newLink(url: string): SignInLink {
    const [oldest] = this.#codes.keys();
    if (oldest !== undefined && this.#codes.size >= MOST_CODES) this.#codes.delete(oldest);
    const code = freshSecret();
    const expiresAt = this.#now() + CODE_MS;
    this.#codes.set(code, expiresAt);
    return { link: `${url}/enter?code=${code}`, expiresAt };
  }

  /** The value of `Set-Cookie`; null: the code is unknown, used or expired. */
  redeem(code: string, { secure, cookie }: Pick<Door, 'secure' | 'cookie'>): string | null {
    const until = this.#codes.get(code);
    this.#codes.delete(code);
    if (until === undefined || this.#now() >= until) return null;
    const claim = `${this.#now() + COOKIE_MS}.${freshSecret()}`;
    const attributes = `Path=/; HttpOnly; SameSite=Strict; Max-Age=${COOKIE_MS / 1_000}${secure ? '; Secure' : ''}`;
    return `${cookie}=${claim}.${this.#sign(claim)}; ${attributes}`;
  }

  isGood(cookie: string): boolean {
    const at = cookie.lastIndexOf('.');
    const claim = cookie.slice(0, Math.max(at, 0));
    return sameSecret(cookie.slice(at + 1), this.#sign(claim)) && this.#now() < Number(claim.split('.', 1)[0]);
  }

  #sign(claim: string): string {
    return createHmac('sha256', this.#key).update(claim).digest('base64url');
  }
}

/** The value of our cookie in the header; null: missing, or given twice. */
export function cookieIn(header: string | undefined, { cookie: name }: Pick<Door, 'cookie'>): string | null {
  const ours = (header ?? '')
    .split(';')
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(`${name}=`));
  return ours.length === 1 ? (ours[0] as string).slice(name.length + 1) : null;
}
