import { type Context, Hono } from 'hono';
import type { Engine } from '../../ports/engine.ts';
import type { Tasks } from '../../ports/tasks.ts';
import { openApi } from '../../wire/openapi.ts';
import { BASE_PATH, INTERFACE, INTERFACE_HEADER, type Operation } from '../../wire/operations/operation.ts';
import { OPERATIONS, type OperationName } from '../../wire/operations.ts';
import { PROBLEM_TYPE } from '../../wire/problem-codes.ts';
import { authenticate, checkScope, checkToken, type Gatekeeper, type Principal } from './access/authenticate.ts';
import { checkHost, checkOrigin, type Door } from './access/door.ts';
import type { Link } from './access/sign-in.ts';
import type { Call } from './call.ts';
import { HANDLERS } from './handlers.ts';
import { readRequest } from './read-request.ts';
import { referencePage } from './reference.ts';
import { FAULT, problemOf, Refusal } from './refusal.ts';
import { type BeginStream, type Feed, type StreamSettings, writeStream } from './streams/event-stream.ts';
import { Readers } from './streams/readers.ts';
import { TASK_HANDLERS } from './task-handlers.ts';
import type { Log } from './telemetry/log.ts';
import type { Metrics } from './telemetry/metrics.ts';

export interface AppParts {
  readonly engine: Engine;
  /** Left out: this server has no tasks. */
  readonly tasks?: Tasks;
  readonly keeper: Gatekeeper;
  readonly metrics: Metrics;
  readonly log: Log;
  readonly version: string;
  readonly stream: StreamSettings;
  /** The most event streams at a time. */
  readonly mostReaders: number;
  /** A link that signs a browser in, once. Throws `forbidden` for another owner than that of this server. */
  readonly newLink: (owner: string) => Link;
  /** Aborted when the server begins to stop: it accepts no new work. */
  readonly draining: AbortSignal;
  /** Aborted when the server has stopped: every stream ends. */
  readonly shutdown: AbortSignal;
}

/** What each listener adds to its requests: the address they came to, and how to begin a stream. */
export interface AppEnv {
  readonly Bindings: { readonly door: Door; readonly begin: BeginStream };
  readonly Variables: { operation: string };
}

const ALWAYS = {
  [INTERFACE_HEADER]: INTERFACE,
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-resource-policy': 'same-origin',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
};

const STREAM_HEADERS = { 'content-type': 'text/event-stream; charset=utf-8', 'x-accel-buffering': 'no' };
const METHODS = ['GET', 'POST', 'PATCH', 'DELETE'];

/** The HTTP interface. Checks in this order: host, origin, interface, credentials, scope; the engine then checks the owner. */
export function createApp(parts: AppParts): Hono<AppEnv> {
  const app = new Hono<AppEnv>();
  const { metrics, log, draining } = parts;
  let documents: Documents | null = null;
  const described = () => (documents ??= describe(parts.version));
  const readers = new Readers({ most: parts.mostReaders, checkMs: parts.stream.checkMs, shutdown: parts.shutdown });

  app.use(async (c, next) => {
    const start = performance.now();
    c.set('operation', 'none');
    for (const [name, value] of Object.entries(ALWAYS)) c.header(name, value);
    await next();
    const ms = performance.now() - start;
    const operation = c.get('operation');
    metrics.requested(operation, c.res.status, ms);
    log.info({ method: c.req.method, operation, status: c.res.status, ms: Math.round(ms * 10) / 10 }, 'request');
  });
  app.use(async (c, next) => {
    const header = (name: string) => c.req.header(name);
    checkHost(header, c.env.door);
    checkOrigin(header, c.env.door);
    checkInterface(header(INTERFACE_HEADER));
    if (!METHODS.includes(c.req.method)) throw methodNotAllowed(c.req.method, METHODS);
    await next();
  });

  // ── without credentials ──
  app.get('/healthz', (c) => {
    c.set('operation', 'healthz');
    return draining.aborted ? c.json({ status: 'stopping' }, 503) : c.json({ status: 'ok', version: parts.version });
  });
  app.get('/openapi.json', (c) => {
    c.set('operation', 'openapi');
    return c.body(described().text, 200, { 'content-type': 'application/json' });
  });
  app.get('/', (c) => {
    c.set('operation', 'reference');
    const { html, policy } = described().page;
    return c.body(html, 200, { 'content-type': 'text/html; charset=utf-8', 'content-security-policy': policy });
  });
  app.get('/enter', (c) => {
    c.set('operation', 'enter');
    const cookie = parts.keeper.signIn.redeem(c.req.query('code') ?? '', c.env.door);
    if (cookie !== null) return c.body(null, 303, { location: '/', 'set-cookie': cookie });
    throw new Refusal('unauthenticated', 'This link was already used, or has expired.', {
      hint: 'A link works once, within 15 minutes. Run "throughline link" for a new one.',
    });
  });
  app.get('/metrics', async (c) => {
    c.set('operation', 'metrics');
    checkScope(await whoAsks(c.env.door, c.req.raw), 'admin');
    return c.body(metrics.text(), 200, { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' });
  });

  // ── the table ──
  const methods = new Map<string, string[]>();
  for (const [name, operation] of Object.entries(OPERATIONS) as [OperationName, Operation][]) {
    const path = `${BASE_PATH}${operation.path.replaceAll(/\{(\w+)\}/g, ':$1')}`;
    methods.set(path, [...(methods.get(path) ?? []), operation.method]);
    app.on(operation.method, path, async (c) => {
      c.set('operation', name);
      const principal = await whoAsks(c.env.door, c.req.raw);
      checkScope(principal, operation.scope);
      if (operation.tokenOnly) checkToken(principal);
      if (operation.begins && draining.aborted) throw new Refusal('closed', 'The server is stopping.');
      const asked = await readRequest(operation, c.req.raw, c.req.param());
      const by = `${principal.owner} by ${principal.by}`;
      const engine = parts.engine.as(principal.owner, by);
      const tasks = parts.tasks?.as(principal.owner, by);
      if (tasks === undefined && name in TASK_HANDLERS)
        throw new Refusal('not_found', 'This server does not run tasks.');
      const lastEventId = operation.stream ? lastNumber(c.req.header('last-event-id')) : null;
      const { newLink } = parts;
      const answer = await HANDLERS[name]({ ...asked, engine, tasks, newLink, principal, lastEventId } as Call<never>);
      if (operation.stream) return streamed(answer as Feed, principal, c.env.begin);
      return c.body(JSON.stringify(answer), operation.status as 200, { 'content-type': 'application/json' });
    });
  }
  for (const [path, allowed] of methods) {
    app.all(path, (c) => {
      throw methodNotAllowed(c.req.method, allowed);
    });
  }

  app.notFound((c) => refused(c, new Refusal('not_found', 'No such path.')));
  app.onError((error, c) => refused(c, error));
  return app;

  function whoAsks(door: Door, request: Request): Promise<Principal> {
    const header = (name: string) => request.headers.get(name) ?? undefined;
    return authenticate(parts.keeper, { method: request.method, header, door });
  }

  function streamed(feed: Feed, principal: Principal, begin: BeginStream): Response {
    const reader = readers.come(principal);
    metrics.readerCame();
    return begin({ ...ALWAYS, ...STREAM_HEADERS }, async (outgoing) => {
      const end = await writeStream(outgoing, { ...parts.stream, feed, stop: reader.stop });
      readers.leave(reader);
      metrics.readerLeft(end.why);
      if (end.why === 'slow') log.info({ by: principal.by }, 'disconnected a reader that was too slow');
      if (end.why === 'failed') log.warn({ err: end.error }, 'a stream failed');
    });
  }

  function refused(c: Context<AppEnv>, error: unknown): Response {
    const known = problemOf(error);
    if (known === null) log.error({ err: error }, 'internal error');
    const { body, headers } = known ?? FAULT;
    return c.body(JSON.stringify(body), body.status as 400, { 'content-type': PROBLEM_TYPE, ...headers });
  }
}

type Documents = ReturnType<typeof describe>;

/** The OpenAPI document and the page. Made at the first request for one, so that the server starts faster. */
function describe(version: string) {
  const document = openApi(version);
  return { text: JSON.stringify(document), page: referencePage(document) };
}

function methodNotAllowed(method: string, allowed: readonly string[]): Refusal {
  return new Refusal('method_not_allowed', `${method} is not allowed for this path.`, {
    headers: { allow: allowed.join(', ') },
  });
}

/** Refuses a client of another version before anything is done for it. A client that names no interface is not checked. */
function checkInterface(spoken: string | undefined): void {
  if (spoken === undefined || spoken === INTERFACE) return;
  const isOlder = Number(spoken) < Number(INTERFACE);
  throw new Refusal('invalid', `This server speaks interface ${INTERFACE}, and not interface ${spoken.slice(0, 20)}.`, {
    hint: isOlder
      ? 'Update the client to the version of this server.'
      : 'Update Throughline on the server and restart it, or use an older client.',
  });
}

/** A browser sends this header when it reconnects. */
function lastNumber(header: string | undefined): number | null {
  if (header === undefined || header === '') return null;
  if (!/^\d{1,15}$/.test(header)) throw new Refusal('invalid', 'Last-Event-ID must be the number of an event.');
  return Number(header);
}
