import type { Door } from './door.ts';
import { Refusal } from './refusal.ts';

type Headers = (name: string) => string | undefined;

/** By an exact name only. A page that had its own name pointed here (DNS rebinding) still sends that name. */
export function checkHost(header: Headers, { hosts }: Door): void {
  const host = header('host');
  if (host !== undefined && hosts.has(host.toLowerCase())) return;
  throw new Refusal('misdirected', 'This server is not called that.', { hint: `It is ${[...hosts].join(', ')}.` });
}

/** What a browser says of where a request comes from. Saying nothing is allowed here, and grants nothing later. */
export function checkOrigin(header: Headers, { origins }: Door): void {
  const origin = header('origin');
  const site = header('sec-fetch-site');
  const foreign = origin !== undefined && !origins.has(origin);
  const crossed = site !== undefined && site !== 'same-origin' && site !== 'none';
  if (foreign || crossed) {
    throw new Refusal('forbidden', 'Requests of other pages are not served.', {
      hint: `Pages of ${[...origins].join(', ') || 'none'} are. Others ask through a server of their own, with a key.`,
    });
  }
}

/**
 * Whether a cookie counts. Browsers add it by themselves, so it needs their word that a page of ours asked: a missing header
 * is no such word. What only reads may also be typed into the address bar.
 */
export function cookieCounts(method: string, header: Headers, { origins }: Door): boolean {
  const site = header('sec-fetch-site');
  if (method === 'GET') return site === 'same-origin' || site === 'none';
  return site === 'same-origin' && origins.has(header('origin') ?? '');
}
