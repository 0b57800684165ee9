import { addAbortListener } from 'node:events';
import { type Context, Hono, type MiddlewareHandler } from 'hono';
import { failureOf, type ThroughlineError } from '../../core/errors.ts';
import { type HealthReport, healthReport } from '../../core/health.ts';
import type { Engine } from '../../ports/engine.ts';
import type { Health } from '../../ports/health.ts';
import type { SignInLink } from '../../ports/server.ts';
import type { Tasks } from '../../ports/tasks.ts';
import { openApi } from '../../wire/openapi.ts';
import { BASE_PATH, INTERFACE, INTERFACE_HEADER, LOG_HEADER, type Operation } from '../../wire/operations/operation.ts';
import { OPERATIONS } from '../../wire/operations.ts';
import { PROBLEM_TYPE } from '../../wire/problem-codes.ts';
import { type OperationName, ROUTES } from '../../wire/routes.ts';
import {
  authenticate,
  type Credentials,
  checkScope,
  checkToken,
  failed,
  type Gatekeeper,
  type Principal,
} from './access/authenticate.ts';
import { checkHost, checkOrigin, type Door } from './access/door.ts';
import { type MakeBackup, sendBackup } from './backup.ts';
import { HANDLERS } from './handlers.ts';
import { writeJson } from './json/write-json.ts';
import { readRequest } from './read-request.ts';
import { referencePage } from './reference.ts';
import { problemOf, Refusal } from './refusal.ts';
import { type BeginStream, type Feed, type StreamSettings, writeStream } from './streams/event-stream.ts';
import { Readers, type Waiting } from './streams/readers.ts';
import { TASK_HANDLERS } from './task-handlers.ts';
import type { Log } from './telemetry/log.ts';
import type { Metrics } from './telemetry/metrics.ts';

export interface AppParts {
  readonly engine: Engine;
  /** Left out: this server has no tasks. */
  readonly tasks?: Tasks;
  readonly keeper: Gatekeeper;
  readonly metrics: Metrics;
  /** What does not work. Left out: nobody says. */
  readonly health?: Health;
  readonly log: Log;
  readonly version: string;
  readonly stream: StreamSettings;
  /** The most event streams at a time. */
  readonly mostReaders: number;
  /** Left out: this server makes no backups. */
  readonly backup?: MakeBackup;
  /** A link that signs a browser in, once. Throws `forbidden` for another owner than that of this server. */
  readonly newLink: (owner: string) => SignInLink;
  /** Aborted when the server begins to stop, with a `closed`: it accepts no new work. */
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
  app.use(logged(parts), checked);
  addPages(app, parts);
  addOperations(app, parts);
  app.notFound((c) => refused(c, parts.log, new Refusal('not_found', 'No such path.')));
  app.onError((error, c) => refused(c, parts.log, error));
  return app;
}

/** Sets the headers of every answer, counts the request and logs it. */
function logged({ metrics, log }: AppParts): MiddlewareHandler<AppEnv> {
  return async (c, next) => {
    const start = performance.now();
    c.set('operation', 'none');
    for (const [name, value] of Object.entries(ALWAYS)) c.header(name, value);
    await next();
    const ms = performance.now() - start;
    const operation = c.get('operation');
    metrics.requested(operation, c.res.status, ms);
    const facts = { method: c.req.method, operation, status: c.res.status, ms: Math.round(ms * 10) / 10 };
    // Anybody can cause these. `Failures` logs them, as far as the log has room for them.
    if (c.res.status === 401) log.debug(facts, 'request');
    else log.info(facts, 'request');
  };
}

/** The checks before anything is known of the caller. */
const checked: MiddlewareHandler<AppEnv> = async (c, next) => {
  const header = (name: string) => c.req.header(name);
  checkHost(header, c.env.door);
  checkOrigin(header, c.env.door);
  checkInterface(header(INTERFACE_HEADER));
  if (!METHODS.includes(c.req.method)) throw methodNotAllowed(c.req.method, METHODS);
  await next();
};

/** What is not below `/v1`: health, the document, its page, signing in, metrics and backups. Only the last two need credentials. */
function addPages(app: Hono<AppEnv>, parts: AppParts): void {
  let documents: ReturnType<typeof describe> | null = null;
  // Made at the first request for one, so that the server starts faster.
  const described = () => (documents ??= describe(parts.version));

  for (const path of ['/healthz', '/livez', '/readyz']) {
    app.get(path, (c) => {
      c.set('operation', path.slice(1));
      const { reasons, ...health } = healthOf(parts);
      // Everybody may ask, so the words stay inside; `/v1/health` has them.
      const codes = reasons.map(({ code }) => ({ code }));
      const body = { ...health, version: parts.version, reasons: codes };
      return c.json(body, health.ready || path === '/livez' ? 200 : 503);
    });
  }
  app.get('/openapi.json', (c) => {
    c.set('operation', 'openapi');
    return c.body(described().text, 200, { 'content-type': 'application/json' });
  });
  app.get('/', (c) => {
    c.set('operation', 'reference');
    const { html, policy } = described().page;
    return c.body(html, 200, { 'content-type': 'text/html; charset=utf-8', 'content-security-policy': policy });
  });
  app.get('/enter', async (c) => {
    c.set('operation', 'enter');
    const cookie = parts.keeper.signIn.redeem(c.req.query('code') ?? '', c.env.door);
    if (cookie !== null) return c.body(null, 303, { location: '/', 'set-cookie': cookie });
    await failed(parts.keeper, credentialsOf(c, parts), 'link');
    throw new Refusal('unauthenticated', 'This link was already used, or has expired.', {
      hint: 'A link works once, within 15 minutes. Run "throughline link" for a new one.',
    });
  });
  app.get('/backup', async (c) => {
    c.set('operation', 'backup');
    const principal = await principalOf(c, parts);
    const { backup: make, keeper, draining, log } = parts;
    const asked = { principal, owner: keeper.owner, make, left: c.req.raw.signal, draining, log };
    return sendBackup({ ...asked, begin: c.env.begin, headers: ALWAYS });
  });
  app.get('/metrics', async (c) => {
    c.set('operation', 'metrics');
    checkScope(await principalOf(c, parts), 'admin');
    return c.body(parts.metrics.text(), 200, { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' });
  });
}

/** Asks neither the store nor an agent: it answers whatever does not work. */
function healthOf({ health, draining }: AppParts): HealthReport {
  const stopping = draining.aborted ? failureOf(draining.reason as ThroughlineError) : null;
  return healthReport(health?.reasons() ?? [], stopping);
}

/** One route for every operation of the table. */
function addOperations(app: Hono<AppEnv>, parts: AppParts): void {
  const { mostReaders: most, stream, shutdown } = parts;
  const readers = new Readers({ most, checkMs: stream.checkMs, shutdown });
  const heavy = new HeavyCalls();
  const methods = new Map<string, string[]>();
  for (const name of Object.keys(ROUTES) as OperationName[]) {
    const operation: Operation = OPERATIONS[name];
    const { method } = ROUTES[name];
    const path = `${BASE_PATH}${ROUTES[name].path.replaceAll(/\{(\w+)\}/g, ':$1')}`;
    methods.set(path, [...(methods.get(path) ?? []), method]);
    app.on(method, path, async (c) => {
      c.set('operation', name);
      const principal = await admitted(c, parts, operation);
      const leave = operation.heavy ? heavy.come(principal.owner) : () => {};
      try {
        const call = await readCall(c, parts, name, operation, principal, readers);
        const answer = await HANDLERS[name](call as never);
        if (operation.stream) return streamed(answer as Feed, principal, parts, readers, c.env.begin);
        // Whoever has gone reads nothing: then the answer is neither read to its end nor cancelled.
        if (operation.heavy) addAbortListener(c.req.raw.signal, leave);
        const type = { 'content-type': 'application/json' };
        return c.body(writeJson(answer, leave), (operation.status ?? 200) as 200, type);
      } catch (error) {
        leave();
        throw error;
      }
    });
  }
  for (const [path, allowed] of methods) {
    app.all(path, (c) => {
      throw methodNotAllowed(c.req.method, allowed);
    });
  }
}

/** Calls that take long or much memory. Work of one owner must not crowd out that of others. */
class HeavyCalls {
  readonly #running = new Map<string, number>();

  /** Returns how to leave. Throws `too_many`. */
  come(owner: string): () => void {
    const running = this.#running.get(owner) ?? 0;
    if (running >= MOST_HEAVY) {
      throw new Refusal('too_many', `"${owner}" has ${running} requests for whole conversations already.`, {
        hint: 'Wait until one has ended, and try again. Turns can be read in pages at any time.',
      });
    }
    this.#running.set(owner, running + 1);
    let isIn = true;
    return () => {
      const left = (this.#running.get(owner) ?? 0) - (isIn ? 1 : 0);
      isIn = false;
      if (left > 0) this.#running.set(owner, left);
      else this.#running.delete(owner);
    };
  }
}

/** How many heavy calls one owner may have at once. */
const MOST_HEAVY = 4;

/** Who asks, if they may. */
async function admitted(c: Context<AppEnv>, parts: AppParts, operation: Operation): Promise<Principal> {
  const principal = await principalOf(c, parts);
  checkScope(principal, operation.scope);
  if (operation.tokenOnly) checkToken(principal);
  if (operation.begins) parts.draining.throwIfAborted();
  return principal;
}

/** Reads and checks a request of an operation. */
async function readCall(
  c: Context<AppEnv>,
  parts: AppParts,
  name: OperationName,
  operation: Operation,
  principal: Principal,
  readers: Readers,
) {
  const request = await readRequest(operation, c.req.raw, c.req.param());
  const by = `${principal.owner} by ${principal.by}`;
  const engine = parts.engine.as(principal.owner, by);
  const tasks = parts.tasks?.as(principal.owner, by);
  if (tasks === undefined && name in TASK_HANDLERS) throw new Refusal('not_found', 'This server does not run tasks.');
  const lastEventId = operation.stream ? lastNumber(c.req.header('last-event-id')) : null;
  const waiting: Waiting = (work) => readers.waiting(principal, [c.req.raw.signal, parts.draining], work);
  const health = () => healthOf(parts);
  return { ...request, engine, tasks, newLink: parts.newLink, health, principal, waiting, lastEventId };
}

function principalOf(c: Context<AppEnv>, parts: AppParts): Promise<Principal> {
  return authenticate(parts.keeper, credentialsOf(c, parts));
}

function credentialsOf(c: Context<AppEnv>, { draining }: AppParts): Credentials {
  const { method, raw } = c.req;
  return {
    ...{ method, header: (name) => c.req.header(name), door: c.env.door },
    get signal() {
      return AbortSignal.any([raw.signal, draining]);
    },
  };
}

function streamed(feed: Feed, principal: Principal, parts: AppParts, readers: Readers, begin: BeginStream): Response {
  const { metrics, log } = parts;
  const reader = readers.come(principal);
  metrics.readerCame();
  return begin({ ...ALWAYS, ...STREAM_HEADERS, ...(feed.numbered && { [LOG_HEADER]: feed.log }) }, async (outgoing) => {
    const end = await writeStream(outgoing, { ...parts.stream, feed, stop: reader.stop });
    readers.leave(reader);
    metrics.readerLeft(end.why);
    if (end.why === 'slow') log.info({ by: principal.by }, 'disconnected a reader that was too slow');
    if (end.why === 'failed') log.warn({ err: end.error }, 'a stream failed');
  });
}

function refused(c: Context<AppEnv>, log: Log, error: unknown): Response {
  const { body, headers } = problemOf(error);
  if (body.code === 'internal') log.error({ err: error }, 'internal error');
  return c.body(JSON.stringify(body), body.status as 400, { 'content-type': PROBLEM_TYPE, ...headers });
}

/** The OpenAPI document, as JSON and as a page. */
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
