import { ThroughlineError } from '../../../core/errors.ts';
import { INTERFACE_HEADER, LOG_HEADER, OWNER_HEADER } from '../../../wire/operations/operation.ts';
import { isOpenToAll } from '../pages/page.ts';
import { Refusal } from '../refusal.ts';
import type { Door } from './door.ts';

/*
 * Which pages may call. A browser names the origin of the page in every request that matters:
 *
 *   our own pages        everything, with the cookie or any other credentials
 *   --allow-origin       `/v1`, health and the document, with a key: CORS without credentials, so no cookie is sent or counts, and
 *                        not with the token of the data home, which a page must not have
 *   all others           nothing; only `/livez` lets a page notice that there is a server, so that its client can say what is wrong;
 *                        and a link to our page may be followed from anywhere
 */

type Headers = (name: string) => string | undefined;

const METHODS = 'GET, POST, PATCH, DELETE';
const ASKED = ['authorization', 'content-type', 'last-event-id', INTERFACE_HEADER, OWNER_HEADER].join(', ');
const TOLD = [INTERFACE_HEADER, LOG_HEADER, 'retry-after', 'allow'].join(', ');
/** How long a browser need not ask again; in seconds. */
const KEPT = '600';

/** What pages of other origins may ask for. Signing in, the page of the server, metrics and backups are not for them. */
const SHARED = /^\/(v1\/|healthz$|livez$|readyz$|openapi\.json$)/;

/** Refuses requests that a browser sends for other sites. Without these headers a request passes here and gains nothing. */
export function checkOrigin(header: Headers, door: Door, path: string): void {
  const origin = header('origin');
  if (path === NOTICED) return;
  if (origin !== undefined && door.allowed.has(origin) && SHARED.test(path)) return;
  const site = header('sec-fetch-site');
  const isForeign = origin !== undefined && !door.origins.has(origin);
  const isCrossed = site !== undefined && site !== 'same-origin' && site !== 'none' && !isFollowed(header, path);
  if (isForeign || isCrossed) throw notAllowed(origin, door);
}

/**
 * Whether a person follows a link to our page, in a tab and not in a frame. The other site learns nothing, the cookie is not sent with it,
 * and what is opened is the same for everybody.
 */
function isFollowed(header: Headers, path: string): boolean {
  const isOpened = header('sec-fetch-mode') === 'navigate' && header('sec-fetch-dest') === 'document';
  return isOpened && (isOpenToAll(path) || path === SIGN_IN);
}

/** Its link may stand in a message on any site. Whoever follows it from there is asked first. */
export const SIGN_IN = '/enter';

/** Whether a link on another site led here. A browser that does not say it is taken at the cookie's word: `SameSite=Strict`. */
export function isLinkedFromElsewhere(header: Headers): boolean {
  return ['cross-site', 'same-site'].includes(header('sec-fetch-site') ?? 'none');
}

/** Every page may notice that it answers, and not what. */
const NOTICED = '/livez';

function notAllowed(origin: string | undefined, { origins, allowed }: Door): Refusal {
  if (origin !== undefined && allowed.has(origin)) {
    return new Refusal(
      'forbidden',
      `Pages of ${origin} may use /v1, the health and the document of this server alone.`,
      {
        hint: 'Call this path from a program, with the token of the data home or a key.',
      },
    );
  }
  const known = [...origins, ...allowed].join(', ') || 'none';
  const which = origin === undefined || origin === 'null' ? null : origin.slice(0, 200);
  const what =
    which === null ? 'A page without an origin may not use this server.' : `Pages of ${which} may not use this server.`;
  const allow =
    which === null || !isOrigin(which)
      ? 'Let'
      : `Start it with "--allow-origin ${which}" if they may: they need a key then. Or let`;
  return new Refusal('forbidden', what, {
    hint: `${allow} the page call its own server, and that one this one (docs/browsers.md). Allowed origins: ${known}.`,
  });
}

/** Whether a page of another origin that is allowed sends the request. */
export function isFromElsewhere(header: Headers, { allowed, origins }: Door): boolean {
  const origin = header('origin');
  return origin !== undefined && allowed.has(origin) && !origins.has(origin);
}

/** What an answer says to the browser about who may read it. */
export function crossOriginHeaders(header: Headers, door: Door, path: string): Record<string, string> {
  const policy = { 'cross-origin-resource-policy': path === NOTICED ? 'cross-origin' : 'same-origin' };
  if (door.allowed.size === 0) return policy;
  // Two origins get different answers, and a cache must not mix them up.
  const varies = { ...policy, vary: 'Origin' };
  if (!isFromElsewhere(header, door) || !SHARED.test(path)) return varies;
  const origin = header('origin') as string;
  return { ...varies, 'access-control-allow-origin': origin, 'access-control-expose-headers': TOLD };
}

/** The answer to a browser that asks whether it may send a request; null: it does not ask. */
export function preflight(method: string, header: Headers, door: Door): Record<string, string> | null {
  const asked = header('access-control-request-method');
  if (method !== 'OPTIONS' || asked === undefined || !isFromElsewhere(header, door)) return null;
  // Some browsers ask this of a page of the internet that calls a server on this machine.
  const isPrivate = header('access-control-request-private-network') === 'true';
  return {
    'access-control-allow-methods': METHODS,
    'access-control-allow-headers': ASKED,
    'access-control-max-age': KEPT,
    ...(isPrivate && { 'access-control-allow-private-network': 'true' }),
    vary: 'Origin, Access-Control-Request-Method, Access-Control-Request-Headers, Access-Control-Request-Private-Network',
  };
}

const LOCAL = /^(localhost|127\.0\.0\.1|\[::1\]|[a-z0-9.-]+\.localhost)$/;
/** Their pages have no origin of their own, or none that anybody could check. */
const NO_ORIGIN = ['file:', 'data:', 'blob:', 'javascript:', 'about:', 'ws:', 'wss:', 'ftp:'];

/** Exact origins as a browser sends them. Throws `invalid`. */
export function parseOrigins(given: readonly string[]): ReadonlySet<string> {
  return new Set(given.map(parseOrigin));
}

/** Whether it is one that could be allowed. */
function isOrigin(given: string): boolean {
  try {
    return parseOrigin(given) === given;
  } catch {
    return false;
  }
}

function parseOrigin(given: string): string {
  const url = /^[a-z][a-z0-9+.-]*:\/\/[^/?#@*\s]+\/?$/i.test(given) && URL.canParse(given) ? new URL(given) : null;
  if (url === null || NO_ORIGIN.includes(url.protocol)) {
    throw new ThroughlineError('invalid', `"${given}" is not an origin.`, {
      hint: 'Write scheme, name and port as the browser shows them, for example https://app.example.org or http://localhost:5173. Each origin is named: there are no patterns, and pages of files have none.',
    });
  }
  if (url.protocol === 'http:' && !LOCAL.test(url.hostname)) {
    throw new ThroughlineError('invalid', `Anybody on the network could change the pages of ${url.origin}.`, {
      hint: 'Use https for pages that do not come from this machine.',
    });
  }
  // Apps and extensions have schemes of their own, of which a URL knows no origin.
  return url.origin === 'null' ? `${url.protocol}//${url.host}` : url.origin;
}
