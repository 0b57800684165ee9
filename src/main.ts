import { readFileSync } from 'node:fs';
import type { ComposeOptions } from './compose.ts';
import { ThroughlineError } from './core/errors.ts';
import { given } from './core/input/arguments.ts';
import type { Name, NameKind } from './core/input/names.ts';
import type { GlobalOptions, LookOptions, Parts, WhichEngine } from './faces/cli/cli.ts';
import { run } from './faces/cli/run.ts';
import { systemClock } from './host/clock.ts';
import { reportBug } from './host/report.ts';

const { stdout, stderr, env } = process;
const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));

/** What the commands work with. Each part is loaded by the first command that needs it. */
export const parts: Parts = {
  async open(options) {
    const { onTrouble } = options;
    // This process ends with its command, so it keeps no session open between turns.
    return (await serverOf(options)) ?? (await composed(options, { engine: { maxWarm: 0 }, onTrouble })).engine;
  },
  async chat(options) {
    const { dataHome } = await import('./host/data-home.ts');
    const home = dataHome(options.home);
    const served = await serverOf(options);
    if (served !== null) return { engine: served, served: true, home };
    // A person talks in one conversation, and may switch to another and back.
    const { engine } = await composed(options, { engine: { maxWarm: 2 }, onTrouble: options.onTrouble });
    return { engine, served: false, home };
  },
  async install({ agent, version, home, signal }) {
    const [{ createHome, dataHome }, { installTarget }, { installAgent }] = await Promise.all([
      import('./host/data-home.ts'),
      import('./compose-agents.ts'),
      import('./agents/shared/install.ts'),
    ]);
    const at = dataHome(home);
    const target = await installTarget(at, agent);
    createHome(at);
    return installAgent({ ...target, version, env, signal });
  },
  serve: async (request) => (await import('./serve.ts')).serveHome(request, version),
  async link(options, scopes) {
    if (options.embedded)
      throw new ThroughlineError('invalid', 'A link comes from a server, so --embedded cannot be used here.');
    const served = await serverOf(options);
    if (served === null) {
      throw new ThroughlineError('unreachable', 'This data home has no running server.', {
        hint: 'Start one: "throughline serve" prints a link.',
      });
    }
    try {
      const body = scopes === undefined ? {} : { scopes: [...scopes] };
      return await served.caller.ask('newLink', { body });
    } finally {
      await served.close();
    }
  },
  async keys(options) {
    const { freshKey } = await import('./faces/http/access/secrets.ts');
    const { engine, parts } = await composed(options);
    const { owner } = engine;
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
  async tasks(options) {
    const { readTaskFile: readFile } = await import('./tasks/task-file.ts');
    const served = await serverOf(options);
    if (served !== null) {
      const { tasksOf } = await import('./connect.ts');
      return { engine: served, tasks: await tasksOf(served), served: true, readFile };
    }
    const { engine, tasks } = await composed(options, { onTrouble: options.onTrouble });
    return { engine, tasks: await tasks(), served: false, readFile };
  },
  async doctor({ home, config, store, looks }) {
    const { composeDoctor } = await import('./compose.ts');
    const { healthOfServer } = await import('./connect.ts');
    return composeDoctor(given({ home, config, store, looks }), () => healthOfServer(home));
  },
  async nativeSessions({ home, config }, agent, cwd) {
    const { sessionsOfAgent } = await import('./compose-agents.ts');
    return sessionsOfAgent(given({ home, config }), agent, cwd);
  },
  async backup(request) {
    const { backupHome, receiveBackup } = await import('./backup.ts');
    // The server of the data home is not needed: its database can be read while it runs.
    if ((request.server ?? env.THROUGHLINE_SERVER ?? '') === '' || request.embedded) return backupHome(request);
    const served = await serverOf(request);
    if (served === null) throw new Error('A named server is used, or refused.');
    try {
      return await receiveBackup(request, () => served.caller.file('/backup', request.signal));
    } finally {
      await served.close();
    }
  },
  restore: async (request) => (await import('./backup.ts')).restoreHome(request),
  copyStore: async (request) => (await import('./backup.ts')).copyStore(request),
  reopenStore: async (store) => (await import('./backup.ts')).reopenStore(store),
  async names(options, kind, withinMs) {
    const { home, config, store, server = env.THROUGHLINE_SERVER || undefined, as: owner = 'local' } = options;
    if (server !== undefined && kind !== 'installable')
      return inTime(namesOfServer({ ...options, server }, kind), withinMs);
    if (kind === 'agent' || kind === 'installable') {
      const { agentNames } = await import('./compose-agents.ts');
      return agentNames(given({ home, config }), kind);
    }
    const [{ readSetup }, { readNames }] = await Promise.all([
      import('./host/settings-file.ts'),
      import('./stores/sqlite/reading/names.ts'),
    ]);
    const address = readSetup(given({ home, config, store })).store;
    // A file is read in milliseconds; a database server is asked by the server that is connected to it.
    return address.kind === 'sqlite'
      ? readNames(address.file, owner, kind)
      : inTime(namesOfServer({ ...given({ home }), as: owner }, kind), withinMs);
  },
  demo: async (request) => (await import('./demo.ts')).demo(request),
};

/** Empty after the time limit. The timer and the connection must not keep the shell waiting. */
function inTime(names: Promise<Name[]>, withinMs: number | undefined): Promise<Name[]> {
  if (withinMs === undefined) return names;
  const none = new Promise<Name[]>((resolve) => void setTimeout(() => resolve([]), withinMs).unref());
  return Promise.race([names, none]);
}

/** The names on the first page. */
async function namesOfServer(options: GlobalOptions, kind: NameKind): Promise<Name[]> {
  const served = await serverOf(options);
  if (served === null) return [];
  try {
    if (kind === 'conversation')
      return (await served.list()).map(({ key, id, title }) => ({ name: key ?? id, about: title }));
    if (kind === 'agent') return (await served.agents()).map(({ name, adapter }) => ({ name, about: adapter }));
    if (kind === 'question')
      return (await served.permissions({ open: true })).map(({ id, title }) => ({ name: id, about: title }));
    const { tasksOf } = await import('./connect.ts');
    const tasks = await (await tasksOf(served)).list();
    return tasks.map(({ name, id, state, goal }) => ({ name: name ?? id, about: `${state}: ${goal}` }));
  } finally {
    await served.close();
  }
}

/** The server that does the work; null: this process does the work. */
async function serverOf({ as: owner, onTrouble: onAway, looks: _, ...options }: Partial<WhichEngine>) {
  const { connectIfServed } = await import('./connect.ts');
  return connectIfServed({ ...options, owner, onAway });
}

async function composed({ home, config, store, as: owner, looks }: LookOptions, more: ComposeOptions = {}) {
  const { compose } = await import('./compose.ts');
  return compose({ ...given({ home, config, store, owner, looks }), ...more });
}

/** Runs the command of this process. After it, `exit` is not called, so that all output is written before the process ends. */
export function main(): void {
  // A bug in a callback, which no command catches: prints one line, and the stack only with THROUGHLINE_DEBUG.
  process.on('uncaughtException', (error) => {
    reportBug(error, 'running the command');
    process.exit(1);
  });
  // If the process ends before its command, the command has failed.
  process.exitCode = 1;
  void run(process.argv.slice(2), { parts, version, stdout, stderr, env, clock: systemClock }).then((code) => {
    process.exitCode = code;
  });
}
