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
 *   all others           nothing; only `/livez` shows a page that there is a server, so that its client can say what is wrong;
 *                        and a link to our page may be followed from anywhere
 */

type Headers = (name: string) => string | undefined;

const METHODS = 'GET, POST, PATCH, DELETE';
const ALLOWED_HEADERS = ['authorization', 'content-type', 'last-event-id', INTERFACE_HEADER, OWNER_HEADER].join(', ');
const EXPOSED_HEADERS = [INTERFACE_HEADER, LOG_HEADER, 'retry-after', 'allow'].join(', ');
/** How long a browser may keep the answer to a preflight request, in seconds. */
const MAX_AGE = '600';

/** What pages of other origins may ask for. Signing in, the page of the server, metrics and backups are not for them. */
const SHARED = /^\/(v1\/|healthz$|livez$|readyz$|openapi\.json$)/;

/** Refuses requests that a browser sends for other sites. A request without these headers passes: it still needs credentials. */
export function checkOrigin(header: Headers, door: Door, path: string): void {
  const origin = header('origin');
  if (path === LIVE) return;
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

/** The path of sign-in links. They may be in a message on any site; a person who follows one from there is asked first. */
export const SIGN_IN = '/enter';

/** Whether a link on another site led here. False for browsers without this header: the cookie is `SameSite=Strict` anyway. */
export function isLinkedFromElsewhere(header: Headers): boolean {
  return ['cross-site', 'same-site'].includes(header('sec-fetch-site') ?? 'none');
}

/** Every page may see that this path answers, but not read the answer. */
const LIVE = '/livez';

function notAllowed(origin: string | undefined, { origins, allowed }: Door): Refusal {
  if (origin !== undefined && allowed.has(origin)) {
    return new Refusal(
      'forbidden',
      `Pages of ${origin} may use only /v1, the health and the OpenAPI document of this server.`,
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
      : `To allow them, start it with "--allow-origin ${which}"; they then need a key. Or let`;
  return new Refusal('forbidden', what, {
    hint: `${allow} the page call its own server, which calls this one (docs/browsers.md). Allowed origins: ${known}.`,
  });
}

/** Whether a page of another, allowed origin sends the request. */
export function isFromAllowedOrigin(header: Headers, { allowed, origins }: Door): boolean {
  const origin = header('origin');
  return origin !== undefined && allowed.has(origin) && !origins.has(origin);
}

/** Tells the browser which pages may read the answer. */
export function crossOriginHeaders(header: Headers, door: Door, path: string): Record<string, string> {
  const policy = { 'cross-origin-resource-policy': path === LIVE ? 'cross-origin' : 'same-origin' };
  if (door.allowed.size === 0) return policy;
  // Two origins get different answers, and a cache must not mix them up.
  const varies = { ...policy, vary: 'Origin' };
  if (!isFromAllowedOrigin(header, door) || !SHARED.test(path)) return varies;
  const origin = header('origin') as string;
  return { ...varies, 'access-control-allow-origin': origin, 'access-control-expose-headers': EXPOSED_HEADERS };
}

/** The answer to a preflight request; null: it is another request. */
export function preflight(method: string, header: Headers, door: Door): Record<string, string> | null {
  const asked = header('access-control-request-method');
  if (method !== 'OPTIONS' || asked === undefined || !isFromAllowedOrigin(header, door)) return null;
  // Some browsers ask this when a page of the internet calls a server on this machine.
  const isPrivate = header('access-control-request-private-network') === 'true';
  return {
    'access-control-allow-methods': METHODS,
    'access-control-allow-headers': ALLOWED_HEADERS,
    'access-control-max-age': MAX_AGE,
    ...(isPrivate && { 'access-control-allow-private-network': 'true' }),
    vary: 'Origin, Access-Control-Request-Method, Access-Control-Request-Headers, Access-Control-Request-Private-Network',
  };
}

const LOCAL = /^(localhost|127\.0\.0\.1|\[::1\]|[a-z0-9.-]+\.localhost)$/;
/** Pages with these schemes have no origin, or none that can be checked. */
const NO_ORIGIN = ['file:', 'data:', 'blob:', 'javascript:', 'about:', 'ws:', 'wss:', 'ftp:'];

/** Exact origins as a browser sends them. Throws `invalid`. */
export function parseOrigins(given: readonly string[]): ReadonlySet<string> {
  return new Set(given.map(parseOrigin));
}

/** Whether `--allow-origin` would accept it. */
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
      hint: 'Write scheme, name and port as the browser shows them, for example https://app.example.org or http://localhost:5173. Patterns are not supported, and pages of files have no origin.',
    });
  }
  if (url.protocol === 'http:' && !LOCAL.test(url.hostname)) {
    throw new ThroughlineError('invalid', `Anybody on the network could change the pages of ${url.origin}.`, {
      hint: 'Use https for pages that do not come from this machine.',
    });
  }
  // For the schemes of apps and extensions, `URL` gives no origin.
  return url.origin === 'null' ? `${url.protocol}//${url.host}` : url.origin;
}
