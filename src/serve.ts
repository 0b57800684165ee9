import { flushCompileCache } from 'node:module';
import { resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { compose, dataHome } from './compose.ts';
import { ThroughlineError } from './core/errors.ts';
import { given } from './core/given.ts';
import type { ServeRequest, Serving } from './faces/cli/cli.ts';
import { SCRIPTED_DEMO } from './faces/cli/serve-demo.ts';
import { checkFree } from './faces/http/listen.ts';
import { createLog } from './faces/http/log.ts';
import { Metrics } from './faces/http/metrics.ts';
import { checkReach, startServer } from './faces/http/server.ts';
import { systemProcesses } from './host/processes.ts';
import * as files from './host/server-files.ts';
import { isTraced } from './host/tracing.ts';
import type { Tasks } from './ports/tasks.ts';
import type { Telemetry } from './ports/telemetry.ts';
import { type HeldFile, holdFile } from './stores/sqlite/file/held-file.ts';

const USUAL_PORT = 7717;

/**
 * Starts the server of a data home. What can refuse it comes before the engine: one that claims turns and is then not let start
 * would interrupt them.
 */
export async function serveHome(request: ServeRequest, version: string): Promise<Serving> {
  const { config, as: owner, host, port, publicUrl } = request;
  const home = resolve(request.home ?? dataHome());
  const at = files.serverFiles(home);
  files.readToken(at);
  checkReach(host, publicUrl);
  const ends = new Ends();
  try {
    files.makeServerDirectory(at);
    const lock = await onlyServer(at);
    ends.add(async () => lock.release());
    if (port !== null && port !== 0) await checkFree(host, port);

    const tracing = isTraced(process.env) ? await traced(version) : null;
    ends.add(async () => tracing?.close());
    const demo = request.demo ? await (await import('./demo.ts')).demoOfServer({ home, config }) : null;
    ends.add(async () => demo?.close());

    const metrics = new Metrics();
    const secrets: string[] = [];
    const log = createLog(request.logLevel, secrets, (line) => process.stderr.write(line));
    const composed = await compose({
      ...given({ config, owner, agents: demo?.agents }),
      home,
      engine: { claims: 'all' },
      onBug: (err, where) => log.error({ err, where }, 'a fault of this program'),
      onTrouble: ({ code, message, hint }) => log.warn({ code, message, hint }, 'turns wait for the storage'),
      telemetry: tracing === null ? metrics : tracing.with(metrics),
    });
    let tasks: Tasks | undefined;
    ends.add(async () => {
      await tasks?.close();
      await composed.engine.close();
    });
    const token = files.tokenOf(at);
    secrets.push(token);
    tasks = await composed.tasks();
    const { engine, parts } = composed;
    const start = (chosen: number) =>
      startServer({
        ...{ engine, tasks, keys: parts.store, token, log, metrics, version, socket: at.socket, port: chosen },
        ...{ host, ...given({ publicUrl }) },
      });
    const server = await start(port ?? USUAL_PORT).catch((error: unknown) => {
      // Nobody has asked for the usual port: when it is taken, any other will do.
      if (port !== null || !(error instanceof ThroughlineError && error.code === 'refused')) throw error;
      return start(0);
    });
    keepCompiled();
    files.writeAddress(at, { url: server.url, socket: at.socket, process: parts.processes.self() });
    return {
      ...{ engine, home: composed.home, url: server.url, socket: at.socket, demo: demo?.demo ?? SCRIPTED_DEMO },
      newLink: () => server.newLink(),
      async close(options) {
        await server.close(options);
        files.removeAddress(at);
        await ends.all();
      },
    };
  } catch (error) {
    await ends.all();
    throw error;
  }
}

const COMPILED_MS = 1_000;

/**
 * Node keeps what it has compiled when a process ends in good order. A server may never do so, and without it the next one
 * takes twice as long to start: so it is kept here, when those who waited for this one have been served.
 */
function keepCompiled(): void {
  setTimeout(flushCompileCache, COMPILED_MS).unref();
}

/** What has to be ended again, the last first. */
class Ends {
  readonly #ends: (() => Promise<unknown>)[] = [];

  add(end: () => Promise<unknown>): void {
    this.#ends.unshift(end);
  }

  async all(): Promise<void> {
    for (const end of this.#ends.splice(0)) await end();
  }
}

/** How often it is looked whether another one says where it serves, or is gone: on a busy machine both take longer, looking as well. */
const LOOKS = 250;
const LOOK_MS = 20;

/** A data home has one server: the lock is held for as long as this one lives, and freed by the system however it dies. */
async function onlyServer(at: files.ServerFiles): Promise<HeldFile> {
  for (let looks = 0; looks < LOOKS; looks += 1, await delay(LOOK_MS)) {
    const lock = holdFile(at.lock);
    if (lock !== null) return lock;
    const other = files.readAddress(at);
    if (other !== null && systemProcesses.status(other.process) === 'alive') {
      throw new ThroughlineError(
        'conflict',
        `A server of this data home is running already: ${other.url}, process ${other.process.pid}.`,
        { hint: 'Use that one ("throughline link" prints a link to it), end it, or choose another home with --home.' },
      );
    }
  }
  throw new ThroughlineError('conflict', 'Another server of this data home is just starting, or about to end.', {
    hint: 'Try again in a moment, or choose another home with --home.',
  });
}

/** Spans of turns, for the collector that the environment names. */
async function traced(version: string) {
  const [{ startTracing }, { TurnSpans }, { together }] = await Promise.all([
    import('./host/tracing.ts'),
    import('./faces/http/turn-spans.ts'),
    import('./engine/reading/observed-store.ts'),
  ]);
  const { tracer, close } = await startTracing(version);
  return { with: (other: Telemetry) => together(other, new TurnSpans(tracer)), close };
}
