import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { ThroughlineError } from './core/errors.ts';
import type { Parts, ServeRequest, Serving } from './faces/cli/cli.ts';
import type { DemoParts, DemoRequest } from './faces/cli/demo/parts.ts';
import { run } from './faces/cli/run.ts';
import { isTraced } from './host/tracing.ts';
import type { Tasks } from './ports/tasks.ts';
import type { Telemetry } from './ports/telemetry.ts';

const { stdout, stderr, env } = process;
const USUAL_PORT = 7717;
const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));

/*
 * The executable: gives the command line its parts, and its exit code to the process. The process then ends by itself, so
 * that whatever was written is also read; the parts are loaded by the first command that needs them.
 */
const parts: Parts = {
  async open({ home, config, as: owner, server, embedded }) {
    const { connectIfServed } = await import('./connect.ts');
    const served = await connectIfServed({ server, embedded, home, config, owner });
    if (served !== null) return served;
    const { compose } = await import('./compose.ts');
    // A process that ends with its command keeps no session open between turns.
    const engine = { maxWarm: 0 };
    return (await compose({ ...given({ home, config, owner }), engine })).engine;
  },
  async install({ agent, version, home, signal }) {
    if (agent !== 'claude') {
      const hint = 'Known is "claude".';
      throw new ThroughlineError('not_found', `There is no agent ${JSON.stringify(agent)} to install.`, { hint });
    }
    const [{ dataHome, installedClaude }, { installClaude }] = await Promise.all([
      import('./compose.ts'),
      import('./agents/claude/install.ts'),
    ]);
    return installClaude({ folder: installedClaude(resolve(home ?? dataHome())), version, env, signal });
  },
  serve: serveHome,
  async keys({ home, config, as: owner = 'local' }) {
    const [{ compose }, { freshKey }] = await Promise.all([import('./compose.ts'), import('./faces/http/secrets.ts')]);
    const { engine, parts } = await compose(given({ home, config, owner }));
    return {
      async create(wanted) {
        const { id, hash, key } = freshKey();
        return { key, made: await parts.store.createKey(owner, { id, hash, ...wanted }) };
      },
      list: () => parts.store.keys(owner),
      revoke: (id) => parts.store.revokeKey(owner, id),
      close: () => engine.close(),
    };
  },
  async tasks({ home, config, as: owner, server, embedded }) {
    const [{ readTaskFile }, { connectIfServed, tasksOf }] = await Promise.all([
      import('./tasks/task-file.ts'),
      import('./connect.ts'),
    ]);
    const served = await connectIfServed({ server, embedded, home, config, owner });
    if (served !== null) return { engine: served, tasks: await tasksOf(served), readFile: readTaskFile };
    const { compose } = await import('./compose.ts');
    const { engine, tasks } = await compose(given({ home, config, owner }));
    return { engine, tasks: await tasks(), readFile: readTaskFile };
  },
  async doctor({ home, config }) {
    const { composeDoctor } = await import('./compose.ts');
    return composeDoctor(given({ home, config }));
  },
  async nativeSessions({ home, config }, agent, cwd) {
    const { sessionsOfAgent } = await import('./compose.ts');
    return sessionsOfAgent(given({ home, config }), agent, cwd);
  },
  demo(request) {
    return request.agent === 'claude' ? demoWithClaude(request) : demoWithoutModel(request);
  },
};

process.exitCode = await run(process.argv.slice(2), { parts, version, stdout, stderr, env });

/** Leaves out what is not set. */
function given<T extends object>(value: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(value).filter(([, v]) => v !== undefined)) as never;
}

async function serveHome({ home, config, as: owner, ...request }: ServeRequest): Promise<Serving> {
  const [{ compose, dataHome }, tracing, files, { checkStart, startServer }, { createLog }, { Metrics }] =
    await Promise.all([
      import('./compose.ts'),
      isTraced(env) ? traced() : null,
      import('./host/server-files.ts'),
      import('./faces/http/server.ts'),
      import('./faces/http/log.ts'),
      import('./faces/http/metrics.ts'),
    ]);
  const at = files.serverFiles(resolve(home ?? dataHome()));
  const { socket } = at;
  files.readToken(at);
  await checkStart({ socket, host: request.host, ...given({ publicUrl: request.publicUrl }) }, request.port);
  const metrics = new Metrics();
  const secrets: string[] = [];
  const log = createLog(request.logLevel, secrets, (line) => stderr.write(line));
  const onBug = (err: unknown, where: string) => log.error({ err, where }, 'a fault of this program');
  const engine = { claims: 'all' } as const;
  const telemetry = tracing === null ? metrics : tracing.with(metrics);
  const composed = await compose({ ...given({ home, config, owner }), engine, onBug, telemetry });
  let tasks: Tasks | undefined;
  try {
    files.makeServerDirectory(at);
    const token = files.tokenOf(at);
    secrets.push(token);
    tasks = await composed.tasks();
    const start = (port: number) =>
      startServer({
        ...{ engine: composed.engine, keys: composed.parts.store, token, log, metrics, version, socket, port },
        host: request.host,
        ...given({ tasks, publicUrl: request.publicUrl }),
      });
    const server = await start(request.port ?? USUAL_PORT).catch((error: unknown) => {
      // Nobody has asked for the usual port: when it is taken, any other will do.
      if (request.port !== null || !(error instanceof ThroughlineError && error.code === 'refused')) throw error;
      return start(0);
    });
    files.writeAddress(at, { url: server.url, socket, process: composed.parts.processes.self() });
    return {
      ...{ engine: composed.engine, home: composed.home, url: server.url, socket },
      newLink: () => server.newLink(),
      async close(options) {
        await server.close(options);
        files.removeAddress(at);
        await tracing?.close();
      },
    };
  } catch (error) {
    await tasks?.close();
    await composed.engine.close();
    throw error;
  }
}

/** Spans of turns, for the collector that the environment names. */
async function traced() {
  const [{ startTracing }, { TurnSpans }, { together }] = await Promise.all([
    import('./host/tracing.ts'),
    import('./faces/http/turn-spans.ts'),
    import('./engine/observed-store.ts'),
  ]);
  const { tracer, close } = await startTracing(version);
  return { with: (other: Telemetry) => together(other, new TurnSpans(tracer)), close };
}

async function demoWithoutModel({ home }: DemoRequest): Promise<DemoParts> {
  const sessionFiles = join(home, 'agent-sessions');
  const about =
    'The agent here is scripted: a real process with real session files, which answers by rule. No model is called.';
  const settings = { adapter: 'scripted', options: { dir: sessionFiles } };
  return { ...(await demoParts(home, settings, null)), about, sessionFiles, close: async () => {} };
}

/** The real Claude. Its model is ours, unless the person wants theirs: a demo must not cost anything unasked. */
async function demoWithClaude(request: DemoRequest): Promise<DemoParts> {
  const { home, live } = request;
  const { projectDir, slugOf } = await import('./agents/claude/transcript/locate.ts');
  const claude = await claudeOf(request);
  const cwd = join(home, 'work');
  mkdirSync(cwd);
  const model = live ? null : await startStandIn(home);
  const own = model?.env ?? claude.env ?? {};
  const parts = await demoParts(home, { ...claude, env: own }, cwd);
  const sessionFiles = projectDir({ ...env, ...own }, cwd);
  const { version } = await parts.agent.traits().catch(async (error: unknown) => {
    await parts.engine.close(); // or this process would stay for ever
    await model?.close();
    throw error;
  });
  return {
    ...parts,
    about:
      `The agent is the real Claude (${version}), with its own session files. ` +
      (live
        ? 'So is the model: your own, which is asked three things.'
        : 'Only its model is a stand-in on this machine, which knows nothing but what Claude tells it: no key, no network, no cost.'),
    sessionFiles,
    async close() {
      await model?.close();
      // In the person's own files, nothing is removed that could belong to another directory than the one of the demo.
      if (basename(sessionFiles) === slugOf(cwd)) rmSync(sessionFiles, { recursive: true, force: true });
    },
  };
}

/** The Claude that the person has set, else the one that is found. Only a live one has its model and environment from there. */
async function claudeOf({ live, installedIn, config }: DemoRequest) {
  const { agentsInSettings, dataHome, installedClaude } = await import('./compose.ts');
  const agents = agentsInSettings(given({ home: installedIn, config }));
  const set = [agents.claude, ...Object.values(agents)].find((agent) => agent?.adapter.startsWith('claude-'));
  if (set !== undefined) {
    const { adapter, package: folder, command, env: own, model } = set;
    return given({ adapter, package: folder, command, ...(live && { env: own, model }) });
  }
  const [{ availableClaude }, { packageIn }] = await Promise.all([
    import('./agents/claude/available.ts'),
    import('./agents/claude/find-package.ts'),
  ]);
  const installed = installedClaude(resolve(installedIn ?? dataHome()));
  const adapter = availableClaude(installed, env.PATH ?? '');
  if (adapter !== null) return { adapter, ...(packageIn(installed) && { package: installed }) };
  throw new ThroughlineError('agent_unavailable', 'Claude is not installed.', {
    hint: 'Run "throughline agents install claude", or put the program "claude" on PATH.',
  });
}

async function demoParts(home: string, agent: object, cwd: string | null) {
  const { compose } = await import('./compose.ts');
  const { engine, parts } = await compose({ home, settings: { agents: { demo: agent } } });
  const made = parts.agents.get('demo')?.agent;
  if (made === undefined) throw new Error('The agent is missing.');
  return { engine, agent: made, cwd, room: await parts.sandboxes.open('control', { cwd }) };
}

/** A model on this machine, and the only environment in which Claude is sure to talk to no other. */
async function startStandIn(home: string) {
  const { startModel } = await import('./testing/index.ts');
  // Claude's adapter hands on logins, clouds and proxies from here, and this process does nothing else than the demo.
  for (const name of Object.keys(env))
    if (!/^(PATH|HOME|TMPDIR|LANG|LC_.*|TERM|TZ|THROUGHLINE_.*)$/.test(name)) delete env[name];
  const model = await startModel();
  const [user, temporary] = [join(home, 'user'), join(home, 'tmp')];
  for (const path of [user, temporary]) mkdirSync(path);
  const own = {
    HOME: user,
    TMPDIR: temporary, // where Claude leaves sockets and folders behind
    ANTHROPIC_BASE_URL: model.url,
    ANTHROPIC_API_KEY: 'sk-stand-in',
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
    DISABLE_AUTOUPDATER: '1',
  };
  return { env: own, close: () => model.close() };
}
