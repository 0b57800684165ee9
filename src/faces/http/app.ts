import { addAbortListener } from 'node:events';
import { type Context, Hono, type MiddlewareHandler } from 'hono';
import { failureOf, isGone, type ThroughlineError } from '../../core/errors.ts';
import { type HealthReport, healthReport } from '../../core/health.ts';
import type { Grant } from '../../core/key.ts';
import type { Engine } from '../../ports/engine.ts';
import type { Health } from '../../ports/health.ts';
import type { Insight, SignInLink } from '../../ports/server.ts';
import type { Tasks } from '../../ports/tasks.ts';
import type { ClientTrackers } from '../../ports/tracker.ts';
import { openApi } from '../../wire/openapi.ts';
import { BASE_PATH, INTERFACE, INTERFACE_HEADER, LOG_HEADER, type Operation } from '../../wire/operations/operation.ts';
import { OPERATIONS } from '../../wire/operations.ts';
import { PROBLEM_TYPE } from '../../wire/problem-codes.ts';
import { type OperationName, ROUTES } from '../../wire/routes.ts';
import {
  authenticate,
  type Credentials,
  checkNoKey,
  checkOperator,
  checkScope,
  failed,
  type Gatekeeper,
  isOperator,
  type Principal,
} from './access/authenticate.ts';
import { checkHost, type Door } from './access/door.ts';
import { HeavyCalls } from './access/heavy-calls.ts';
import { checkOrigin, crossOriginHeaders, isLinkedFromElsewhere, preflight, SIGN_IN } from './access/origins.ts';
import { type AskedGrant, grantBy } from './access/sign-in.ts';
import { type MakeBackup, sendBackup } from './backup.ts';
import { HANDLERS } from './handlers.ts';
import { writeJson } from './json/write-json.ts';
import { askToSignIn, NO_LINK } from './pages/notice.ts';
import { type BuiltPage, isOfPage, isOpenToAll, type PageAnswer } from './pages/page.ts';
import { referencePage } from './pages/reference.ts';
import { readRequest } from './read-request.ts';
import { problemOf, Refusal } from './refusal.ts';
import { type BeginStream, type Feed, type StreamSettings, writeStream } from './streams/event-stream.ts';
import { OpenStreams } from './streams/open-streams.ts';
import { Readers, type Waiting } from './streams/readers.ts';
import { TASK_HANDLERS } from './task-handlers.ts';
import type { Log } from './telemetry/log.ts';
import type { Metrics } from './telemetry/metrics.ts';

export interface AppParts {
  readonly engine: Engine;
  /** Left out: this server has no tasks. */
  readonly tasks?: Tasks;
  /** Left out: this server tracks no requests. */
  readonly trackers?: ClientTrackers;
  readonly keeper: Gatekeeper;
  readonly metrics: Metrics;
  /** What does not work. Left out: unknown. */
  readonly health?: Health;
  readonly log: Log;
  readonly version: string;
  /** How a shell of this machine runs our commands for this data; left out: by their names. */
  readonly command?: string;
  readonly stream: StreamSettings;
  /** The most event streams at a time. */
  readonly mostReaders: number;
  /** Left out: this server makes no backups. */
  readonly backup?: MakeBackup;
  /** Left out: this server has no page. */
  readonly page?: BuiltPage;
  /** Left out: this server reports nothing about its store and what it runs. */
  readonly insight?: Insight;
  /** A link that signs a browser in, once. */
  readonly newLink: (grant: Grant) => Promise<SignInLink>;
  /** Aborted when the server begins to stop, with a `closed`: it accepts no new work. */
  readonly draining: AbortSignal;
  /** Aborted when the server has stopped: every stream ends. */
  readonly shutdown: AbortSignal;
}

/** What each listener adds to its requests: the address they came to, and how to begin a stream. */
export interface AppEnv {
  readonly Bindings: { readonly door: Door; readonly begin: BeginStream };
  /** `by`: the caller, as it is recorded; null: not authenticated. */
  readonly Variables: { operation: string; by: string | null; headers: Readonly<Record<string, string>> };
}

const ALWAYS = {
  [INTERFACE_HEADER]: INTERFACE,
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
};

const METHODS: ReadonlySet<string> = new Set(Object.values(ROUTES).map(({ method }) => method));
const STREAM_HEADERS = { 'content-type': 'text/event-stream; charset=utf-8', 'x-accel-buffering': 'no' };

/** The HTTP interface. Checks in this order: host, origin, interface, credentials, scope; the engine then checks the owner. */
export function createApp(parts: AppParts): Hono<AppEnv> {
  const app = new Hono<AppEnv>();
  app.use(logged(parts), checked);
  addDocuments(app, parts);
  addOperations(app, parts);
  if (parts.page !== undefined) addPage(app, parts.page);
  app.notFound((c) => refused(c, parts.log, new Refusal('not_found', 'No such path.')));
  app.onError((error, c) => refused(c, parts.log, error));
  return app;
}

/** Sets the headers of every answer, counts the request and logs it. */
function logged({ metrics, log }: AppParts): MiddlewareHandler<AppEnv> {
  return async (c, next) => {
    const start = performance.now();
    c.set('operation', 'none');
    c.set('by', null);
    const header = (name: string) => c.req.header(name);
    const headers = { ...ALWAYS, ...crossOriginHeaders(header, c.env.door, c.req.path) };
    c.set('headers', headers);
    for (const [name, value] of Object.entries(headers)) c.header(name, value);
    await next();
    const ms = performance.now() - start;
    const [operation, by] = [c.get('operation'), c.get('by')];
    metrics.requested(operation, c.res.status, ms);
    const who = by === null ? {} : { by };
    const facts = { method: c.req.method, operation, status: c.res.status, ms: Math.round(ms * 10) / 10, ...who };
    // Anybody can cause a 401, so `Failures` logs them, up to a limit. A page has many files.
    if (c.res.status === 401 || operation === 'asset') log.debug(facts, 'request');
    else log.info(facts, 'request');
  };
}

/** The checks before the caller is authenticated. */
const checked: MiddlewareHandler<AppEnv> = async (c, next) => {
  const header = (name: string) => c.req.header(name);
  checkHost(header, c.env.door);
  checkOrigin(header, c.env.door, c.req.path);
  const asked = preflight(c.req.method, header, c.env.door);
  if (asked !== null) {
    c.set('operation', 'preflight');
    return c.body(null, 204, asked);
  }
  checkInterface(header(INTERFACE_HEADER));
  // A request for headers only must not open a stream or use up a one-time link.
  if (c.req.method === 'HEAD' && isOpenToAll(c.req.path)) return next();
  if (!METHODS.has(c.req.method)) throw methodNotAllowed(c.req.method, c.req.path);
  return next();
};

/** What is not below `/v1`: health, the document, its reference, signing in, metrics and backups. Only the last two need credentials. */
function addDocuments(app: Hono<AppEnv>, parts: AppParts): void {
  let documents: ReturnType<typeof describe> | null = null;
  // Made at the first request for one, so that the server starts faster.
  const described = () => (documents ??= describe(parts.version));

  for (const path of ['/healthz', '/livez', '/readyz']) {
    app.get(path, (c) => {
      c.set('operation', path.slice(1));
      const { reasons, ...health } = healthOf(parts);
      // Needs no credentials, so it shows only the codes; `/v1/health` has the messages.
      const codes = reasons.map(({ code }) => ({ code }));
      const body = { ...health, version: parts.version, reasons: codes };
      return c.json(body, health.ready || path === '/livez' ? 200 : 503);
    });
  }
  app.get('/openapi.json', (c) => {
    c.set('operation', 'openapi');
    return c.body(described().text, 200, { 'content-type': 'application/json' });
  });
  app.get('/reference', (c) => {
    c.set('operation', 'reference');
    const { headers, body } = described().page;
    return c.body(body, 200, headers);
  });
  app.get(SIGN_IN, (c) => entered(c, parts));
  app.get('/backup', async (c) => {
    c.set('operation', 'backup');
    const principal = await principalOf(c, parts);
    const { backup: make, keeper, draining, log } = parts;
    const asked = { principal, owner: keeper.owner, make, left: c.req.raw.signal, draining, log };
    return sendBackup({ ...asked, begin: c.env.begin, headers: c.get('headers') });
  });
  app.get('/metrics', async (c) => {
    c.set('operation', 'metrics');
    checkScope(await principalOf(c, parts), 'admin');
    return c.body(parts.metrics.text(), 200, { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' });
  });
}

/** Signs a browser in, once for each link. */
async function entered(c: Context<AppEnv>, parts: AppParts): Promise<Response> {
  c.set('operation', 'enter');
  const code = c.req.query('code') ?? '';
  if (isLinkedFromElsewhere((name) => c.req.header(name))) {
    const { headers, body } = askToSignIn(code);
    return c.body(body, 200, headers);
  }
  const cookie = await parts.keeper.signIn.redeem(code, c.env.door);
  if (cookie !== null) return c.body(null, 303, { location: '/', 'set-cookie': cookie });
  await failed(parts.keeper, credentialsOf(c, parts), 'link');
  if (c.req.header('accept')?.includes('text/html')) return c.body(NO_LINK.body, 401, NO_LINK.headers);
  throw new Refusal('unauthenticated', 'This link was already used, or has expired.', {
    hint: 'A link works once, within 15 minutes. Run "throughline link" for a new one.',
  });
}

/** The page and its files. Added last: the page answers every address that a browser opens and nothing else answers. */
function addPage(app: Hono<AppEnv>, page: BuiltPage): void {
  const send = (c: Context<AppEnv>, { status, headers, body }: PageAnswer) => c.newResponse(body, status, headers);
  app.get('/assets/:name', async (c, next) => {
    c.set('operation', 'asset');
    const answer = await page.asset(c.req.param('name'), (name) => c.req.header(name));
    return answer === null ? next() : send(c, answer);
  });
  app.get('*', async (c, next) => {
    const header = (name: string) => c.req.header(name);
    if (!isOfPage(c.req.path, header)) return next();
    c.set('operation', 'page');
    return send(c, await page.document(header));
  });
}

/** Asks neither the store nor an agent, so that it always answers. */
function healthOf({ health, draining }: AppParts): HealthReport {
  const stopping = draining.aborted ? failureOf(draining.reason as ThroughlineError) : null;
  return healthReport(health?.reasons() ?? [], stopping);
}

/** One route for every operation of the table. */
function addOperations(app: Hono<AppEnv>, parts: AppParts): void {
  const { mostReaders: most, stream, shutdown } = parts;
  const readers = new Readers({ most, checkMs: stream.checkMs, shutdown });
  const streams = new OpenStreams(stream.heartbeatMs);
  const heavy = { conversation: new HeavyCalls('conversation'), sandbox: new HeavyCalls('sandbox') };
  for (const name of Object.keys(ROUTES) as OperationName[]) {
    const operation: Operation = OPERATIONS[name];
    const { method } = ROUTES[name];
    const path = `${BASE_PATH}${ROUTES[name].path.replaceAll(/\{(\w+)\}/g, ':$1')}`;
    app.on(method, path, async (c) => {
      c.set('operation', name);
      const principal = await admitted(c, parts, operation);
      const { heavy: kind } = operation;
      const leave = kind ? await heavy[kind].come(principal.owner, c.req.raw.signal) : () => {};
      try {
        const call = await readCall(c, parts, name, operation, principal, readers, streams);
        const answer = await HANDLERS[name](call as never);
        if (operation.stream) return streamed(answer as Feed, principal, parts, readers, c);
        // If the client has gone, the answer may be neither read to its end nor cancelled.
        if (kind) addAbortListener(c.req.raw.signal, leave);
        const type = { 'content-type': 'application/json' };
        return c.body(writeJson(answer, leave), (operation.status ?? 200) as 200, type);
      } catch (error) {
        leave();
        throw error;
      }
    });
  }
  app.all(`${BASE_PATH}/*`, (c) => {
    throw methodNotAllowed(c.req.method, c.req.path);
  });
}

/** The caller. Throws when it may not use the operation. */
async function admitted(c: Context<AppEnv>, parts: AppParts, operation: Operation): Promise<Principal> {
  const principal = await principalOf(c, parts);
  checkScope(principal, operation.scope);
  if (operation.notByKey) checkNoKey(principal);
  if (operation.operatorOnly) checkOperator(principal, parts.keeper.owner);
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
  streams: OpenStreams,
) {
  const request = await readRequest(operation, c.req.raw, c.req.param());
  const by = actorOf(principal);
  const engine = parts.engine.as(principal.owner, by);
  const tasks = parts.tasks?.as(principal.owner, by);
  if (tasks === undefined && name in TASK_HANDLERS) throw new Refusal('not_found', 'This server does not run tasks.');
  const { trackers } = parts;
  const tracker = trackers ? (holder: string) => trackers.clientTracker(principal.owner, holder) : null;
  const lastEventId = operation.stream ? lastNumber(c.req.header('last-event-id')) : null;
  const waiting: Waiting = (work) => readers.waiting(principal, [c.req.raw.signal, parts.draining], work);
  const health = () => healthOf(parts);
  const newLink = async (asked: AskedGrant) =>
    parts.newLink(grantBy({ ...principal, serverOwner: parts.keeper.owner }, asked));
  const { insight = null } = parts;
  const ours = { engine, tasks, board: tasks ?? null, tracker, streams, newLink, health, insight };
  const who = {
    principal,
    isOperator: isOperator(principal, parts.keeper.owner),
    command: parts.command ?? 'throughline',
  };
  return { ...request, ...ours, ...who, waiting, lastEventId };
}

async function principalOf(c: Context<AppEnv>, parts: AppParts): Promise<Principal> {
  const principal = await authenticate(parts.keeper, credentialsOf(c, parts));
  c.set('by', actorOf(principal));
  return principal;
}

/** The owner and the credentials, as they are recorded. */
const actorOf = ({ owner, by }: Principal) => `${owner} by ${by}`;

function credentialsOf(c: Context<AppEnv>, { draining }: AppParts): Credentials {
  const { method, raw } = c.req;
  return {
    method,
    header: (name) => c.req.header(name),
    door: c.env.door,
    get signal() {
      return AbortSignal.any([raw.signal, draining]);
    },
  };
}

function streamed(feed: Feed, principal: Principal, parts: AppParts, readers: Readers, c: Context<AppEnv>): Response {
  const { metrics, log } = parts;
  const reader = readers.come(principal);
  metrics.readerCame();
  const headers = { ...c.get('headers'), ...STREAM_HEADERS, ...(feed.numbered && { [LOG_HEADER]: feed.log }) };
  return c.env.begin(headers, async (outgoing) => {
    const end = await writeStream(outgoing, { ...parts.stream, feed, stop: reader.stop });
    readers.leave(reader);
    metrics.readerLeft(end.why);
    if (end.why === 'slow') log.info({ by: principal.by }, 'disconnected a reader that was too slow');
    // A missing data file was logged once, and its readers reconnect again and again.
    if (end.why === 'failed' && !isGone(end.error)) log.warn({ err: end.error }, 'a stream failed');
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

const OPERATION_PATHS = Object.values(ROUTES).map(({ method, path }) => {
  return { method, pattern: new RegExp(`^${BASE_PATH}${path.replaceAll(/\{\w+\}/g, '[^/]+')}$`) };
});

/** Names the methods of this path. A path that is not an operation has only GET. */
function methodNotAllowed(method: string, path: string): Refusal {
  const isOperation = `${path}/`.startsWith(`${BASE_PATH}/`);
  const has = OPERATION_PATHS.filter(({ pattern }) => isOperation && pattern.test(path));
  const allowed = isOperation ? new Set(has.map((one) => one.method)) : new Set(['GET']);
  if (allowed.size === 0) return new Refusal('not_found', 'No such path.');
  return new Refusal('method_not_allowed', `${method} is not allowed for this path.`, {
    headers: { allow: [...allowed].join(', ') },
  });
}

/** Refuses a client of another version before anything is done for it. A client that names no interface is not checked. */
function checkInterface(sent: string | undefined): void {
  if (sent === undefined || sent === INTERFACE) return;
  const isOlder = Number(sent) < Number(INTERFACE);
  throw new Refusal(
    'invalid',
    `This server has interface ${INTERFACE}, and the client has interface ${sent.slice(0, 20)}.`,
    {
      hint: isOlder
        ? 'Update the client to the version of this server.'
        : 'Update Throughline on the server and restart it, or use an older client.',
    },
  );
}

/** A browser sends this header when it reconnects. */
function lastNumber(header: string | undefined): number | null {
  if (header === undefined || header === '') return null;
  if (!/^\d{1,15}$/.test(header)) throw new Refusal('invalid', 'Last-Event-ID must be the number of an event.');
  return Number(header);
}
