import { mkdir, rm } from 'node:fs/promises';
import { flushCompileCache } from 'node:module';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { type ComposeOptions, compose } from './compose.ts';
import { hasCode, ThroughlineError } from './core/errors.ts';
import type { Reason } from './core/health.ts';
import { given } from './core/input/arguments.ts';
import { doctorProcess, insightOf } from './doctor/insight.ts';
import { parseOrigins } from './faces/http/access/origins.ts';
import type { MakeBackup } from './faces/http/backup.ts';
import { checkFree } from './faces/http/listen.ts';
import { BuiltPage } from './faces/http/pages/page.ts';
import { checkReach, startServer } from './faces/http/server.ts';
import { createLog, type Log } from './faces/http/telemetry/log.ts';
import { Metrics } from './faces/http/telemetry/metrics.ts';
import { dataHome } from './host/data-home.ts';
import { type FileLock, lockFile } from './host/file-lock.ts';
import { ProcessHealth } from './host/health.ts';
import { systemProcesses } from './host/processes.ts';
import * as files from './host/server-files.ts';
import { isTraced } from './host/tracing.ts';
import { storeTrackers } from './library/tracker/tracker.ts';
import type { ServeRequest, Serving } from './ports/server.ts';
import type { Telemetry } from './ports/telemetry.ts';

const USUAL_PORT = 7717;

/** The same folder from src/ and from dist/. */
const PROGRAM = fileURLToPath(new URL('../bin/throughline.js', import.meta.url));
const PAGE = fileURLToPath(new URL('../dist/page', import.meta.url));
/** In a checkout, the page may be built again while the server runs. */
const IS_CHECKOUT = import.meta.url.endsWith('.ts');

/** How many connections of a burst are accepted at a time. */
const ACCEPTS = 16;

/**
 * Node writes its compile cache when a process ends normally. A server may be killed instead, and without the cache the next one takes
 * twice as long to start. So we write it this long after the start.
 */
const COMPILED_MS = 1_000;

/**
 * Starts the server of a data home. All checks come before the engine starts: an engine claims turns at once, and closing it again would
 * interrupt them.
 */
export async function serveHome(request: ServeRequest, version: string): Promise<Serving> {
  const { config, store, command, host, port, publicUrl, trustProxy, allowOrigins } = request;
  const home = dataHome(request.home);
  const at = files.serverFiles(home);
  files.readToken(at);
  checkReach(host, publicUrl, trustProxy);
  parseOrigins(allowOrigins);
  await using starting = new AsyncDisposableStack();
  files.makeServerDirectory(at);
  const lock = await onlyServer(at);
  starting.defer(() => lock.release());
  if (port !== null && port !== 0) await checkFree(host, port);

  const tracing = isTraced(process.env) ? await traced(version) : null;
  starting.defer(() => tracing?.close());
  const demo = request.demo ? await (await import('./demo.ts')).demoOfServer({ home, config }) : null;
  starting.defer(() => demo?.close());

  const token = files.tokenOf(at);
  const log = createLog(request.logLevel, [token], (line) => process.stderr.write(line));
  const metrics = new Metrics();
  const telemetry = tracing === null ? metrics : tracing.with(metrics);
  const health = new ProcessHealth((reason, gone) => logReason(log, reason, gone));
  const options = { home, telemetry, health, ...given({ config, store, owner: request.as, agents: demo?.agents }) };
  const { engine, parts, tasks } = await startEngine(options, log, starting);
  const ending = new AbortController();
  starting.defer(() => ending.abort());
  const served = {
    engine,
    tasks,
    trackers: storeTrackers(parts),
    keys: parts.store,
    backup: backupsOf({ home, ...given({ config, store }) }),
    insight: insightOf(parts, version, doctorProcess(PROGRAM, { home, ...given({ config, store }) }, ending.signal)),
    page: new BuiltPage(PAGE, { rereads: IS_CHECKOUT }),
  };
  const reached = { host, socket: at.socket, trustProxy, allowOrigins, accepts: ACCEPTS, ...given({ publicUrl }) };
  const server = await onFreePort(port, (chosen) =>
    startServer({ ...served, ...reached, port: chosen, token, log, metrics, health, version, command }),
  );
  starting.defer(() => server.close());
  setTimeout(flushCompileCache, COMPILED_MS).unref();
  files.writeAddress(at, { url: server.url, socket: at.socket, process: parts.processes.self() });
  const ends = starting.move();
  return {
    ...{ engine, home, url: server.url, socket: at.socket, demo: demo?.conversation ?? null },
    newLink: () => server.newLink(),
    async close(options) {
      await server.close(options);
      files.removeAddress(at);
      await ends.disposeAsync();
    },
  };
}

function logReason(log: Log, { code, message, hint, unready }: Reason, gone: boolean): void {
  if (gone) log.info({ code }, 'works again');
  else log.error({ code, message, hint, unready }, 'something does not work');
}

/** Makes backups for clients, one at a time: each needs as much space as the database. */
function backupsOf(of: Pick<ComposeOptions, 'config' | 'store'> & { home: string }): MakeBackup {
  const folder = join(of.home, 'backup');
  let isBusy = false;
  const remove = () =>
    rm(folder, { recursive: true, force: true }).finally(() => {
      isBusy = false;
    });
  return async (signal) => {
    if (isBusy) {
      throw new ThroughlineError('too_many', 'Another backup is being made or sent.', { hint: 'Try again later.' });
    }
    isBusy = true;
    try {
      await rm(folder, { recursive: true, force: true }); // what a killed server left
      await mkdir(folder, { mode: 0o700 });
      const { backupHome } = await import('./backup.ts');
      const file = join(folder, 'throughline.db');
      const { bytes } = await backupHome({ ...of, file, force: false, sandboxes: false, signal });
      return { path: file, bytes, remove };
    } catch (error) {
      await remove();
      throw error;
    }
  };
}

async function startEngine(options: ComposeOptions, log: Log, ends: AsyncDisposableStack) {
  const how: ComposeOptions = {
    ...options,
    engine: { claims: 'all' },
    onBug: (err, where) => log.error({ err, where }, 'internal error'),
    onTrouble: ({ code, message, hint }) => log.warn({ code, message, hint }, 'turns wait for the storage'),
  };
  // People answer the questions of agents through the server.
  const composed = await compose(how, 'ask');
  const { engine, parts } = composed;
  ends.defer(() => engine.close());
  const tasks = await composed.tasks();
  ends.defer(() => tasks.close());
  return { engine, parts, tasks };
}

/** Uses the port that the caller named. Without one: the usual port, or any free one if that is taken. */
async function onFreePort<T>(port: number | null, start: (port: number) => Promise<T>): Promise<T> {
  try {
    return await start(port ?? USUAL_PORT);
  } catch (error) {
    if (port !== null || !hasCode(error, 'refused')) throw error;
    return start(0);
  }
}

/** How often we check whether the other server has written its address, or has ended. On a busy machine both take a while. */
const LOOKS = 250;
const LOOK_MS = 20;

/** A data home has one server, which holds the lock while it runs. The system frees the lock however the process ends. */
async function onlyServer(at: files.ServerFiles): Promise<FileLock> {
  for (let looks = 0; looks < LOOKS; looks += 1, await delay(LOOK_MS)) {
    const lock = lockFile(at.lock);
    if (lock !== null) return lock;
    const other = files.readAddress(at);
    if (other !== null && systemProcesses.status(other.process) === 'alive') {
      throw new ThroughlineError(
        'conflict',
        `This data home already has a running server: ${other.url}, process ${other.process.pid}.`,
        {
          hint: 'Use that server ("throughline link" prints a link to it), stop it, or choose another data home with --home.',
        },
      );
    }
  }
  throw new ThroughlineError('conflict', 'Another server of this data home is starting or stopping.', {
    hint: 'Try again in a moment, or choose another data home with --home.',
  });
}

/** Spans of turns, for the collector that the environment names. */
async function traced(version: string) {
  const [{ startTracing }, { TurnSpans }, { together }] = await Promise.all([
    import('./host/tracing.ts'),
    import('./faces/http/telemetry/turn-spans.ts'),
    import('./engine/reading/observed-store.ts'),
  ]);
  const { tracer, close } = await startTracing(version);
  return { with: (other: Telemetry) => together(other, new TurnSpans(tracer)), close };
}
