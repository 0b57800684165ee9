// The web app with its own login (examples/login.ts) and the real Claude, in every kind of sandbox. Two users have the same conversation keys,
// request ids and prompts. Only a secret differs, which the set-up makes in each sandbox.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { type Model, startModel } from '../../../src/testing/index.ts';
import { whyNoBubblewrap } from '../../contracts/sandbox/bubblewrap-given.ts';
import { containerSettings, whyNoPodman, writeRootfs } from '../../contracts/sandbox/container-given.ts';
import { startSshd, whyNoSshd } from '../../contracts/sandbox/sshd.ts';
import { CliHome } from '../../e2e/cli/process.ts';
import { endPrograms, startLoginApp } from '../../e2e/example-programs.ts';
import { WHICH_CODEWORDS } from '../../e2e/support/conversations.ts';
import { marked } from '../../faults/harness/marked.ts';
import { until } from '../../faults/harness/until.ts';
import { DoubleHome, NODE_OPTIONS, readOrNull } from '../../vendors/double/home.ts';
import { whyNoDoubles } from '../../vendors/double/service.ts';
import { claudeEnvironment, claudeOrSkip, packageFolder, userHome } from '../support/claude.ts';
import { bash } from '../support/claude-home.ts';

afterEach(endPrograms);

/** What differs between the kinds of sandbox. */
interface Given {
  readonly sandbox: object;
  /** The folder with all files of a sandbox, on this machine. */
  readonly files: (sandbox: string) => string;
  /** The working directory, relative to that folder. Default: `work`. */
  readonly work?: string;
  /** Additional variables of the app. */
  readonly app?: Record<string, string>;
  /** Additional variables of the agent. */
  readonly agent?: Record<string, string>;
  /** Whether agents survive a kill of the app until its next process ends them. */
  readonly survivesKill?: boolean;
  /** Whether the API key stays outside of the sandbox. Then the test looks for it in the variables of all processes in the sandbox. */
  readonly hasNoKey?: boolean;
}

interface Kind {
  /** The reason to skip the test; null: it can run here. */
  readonly why: () => string | null | Promise<string | null>;
  readonly given: (home: CliHome, end: AsyncDisposableStack) => Given | Promise<Given>;
}

const localFiles = (home: CliHome) => (sandbox: string) => join(home.path, 'home', 'sandboxes', sandbox);

const KINDS: Readonly<Record<string, Kind>> = {
  directory: {
    why: () => null,
    // A directory is not isolated: without this, the agent would use the home of the user who runs the tests.
    given: (home) => ({
      sandbox: { kind: 'directory' },
      files: localFiles(home),
      agent: { HOME: userHome(home.path) },
      survivesKill: true,
    }),
  },
  bubblewrap: {
    why: whyNoBubblewrap,
    given: (home) => ({
      sandbox: { kind: 'bubblewrap', network: 'model', key: {} },
      files: localFiles(home),
      hasNoKey: true,
    }),
  },
  container: {
    why: whyNoPodman,
    given: (home) => ({
      sandbox: containerSettings(writeRootfs(join(home.path, 'rootfs')), {
        ...{ network: 'model', key: {}, binds: [{ path: packageFolder }] },
      }),
      files: localFiles(home),
      hasNoKey: true,
    }),
  },
  ssh: {
    why: whyNoSshd,
    async given(_, end) {
      const { sandbox } = end.use(await startSshd());
      return { sandbox, files: (id) => join(sandbox.root, id) };
    },
  },
  'vercel, with a double of its package': {
    why: whyNoDoubles,
    given(_, end) {
      const doubles = end.use(new DoubleHome('vercel'));
      return {
        sandbox: doubles.sandbox,
        files: (id) => doubles.files(id),
        work: '.throughline/sandboxes/main/work',
        app: { NODE_OPTIONS },
      };
    },
  },
};

const keyOf = (owner: string) => `sk-the-real-key-of-${owner}`;
/** Writes a random codeword to the file `note`: another one if it runs again. */
const SET_UP = [
  'echo run >> set-up',
  'echo "The codeword is $(od -An -N12 -tx1 /dev/urandom | tr -d " \\n")." > note',
].join('; ');
const READ_NOTE = 'cat note';
/** Runs as long as the file `note` exists. */
const WAIT = 'echo begun >> begun; while [ -e note ]; do sleep 0.1; done; echo ended >> begun';

for (const [name, kind] of Object.entries(KINDS)) {
  const title = `${name}: after a kill of the app, its next process continues, Claude has its context, and no user has data of another`;
  test(title, async (context) => {
    claudeOrSkip(context);
    const why = await kind.why();
    if (why !== null) context.skip(why);
    await using end = new AsyncDisposableStack();
    const home = end.adopt(new CliHome({}), (one) => one.remove());
    const model = end.adopt(await startModel(), (one) => one.close());
    const given = await kind.given(home, end);
    end.defer(endPrograms); // deferred last, so that it runs first
    await testTwoUsers(given, home, model);
  });
}

async function testTwoUsers(given: Given, home: CliHome, model: Model): Promise<void> {
  const mark = `web-app-${process.pid}-${Date.now()}`;
  const { HOME: _, PATH: __, ANTHROPIC_API_KEY: ___, ...claude } = claudeEnvironment(model, '');
  const env = { ...claude, THROUGHLINE_FAULTS_MARK: mark, ...given.agent };
  const credentials = { ANTHROPIC_API_KEY: { file: join(home.path, 'key-of-{owner}') } };
  const agent = {
    adapter: 'claude-cli',
    package: packageFolder,
    env,
    credentials,
    options: { allowedTools: ['Bash'] },
  };
  const setup = [{ name: 'note', command: ['/bin/sh', '-c', SET_UP] }];
  home.configure({ agents: { claude: agent }, sandbox: { ...given.sandbox, setup } });
  const variables = { ...home.environment(), ...given.app };

  const firstApp = await startLoginApp(variables);
  const users = await Promise.all([
    firstApp.login('ann', 'a heron at dawn').then(({ cookie }) => ({ owner: 'shop:ann', cookie })),
    firstApp.login('bob', 'a wren at noon').then(({ cookie }) => ({ owner: 'shop:bob', cookie })),
  ]);
  for (const { owner } of users)
    writeFileSync(join(home.path, `key-of-${encodeURIComponent(owner)}`), `${keyOf(owner)}\n`);
  const forBoth = <T>(run: (user: { owner: string; cookie: string }) => Promise<T>) => Promise.all(users.map(run));
  await forBoth(async ({ cookie }) => {
    expect((await firstApp.say(cookie, bash(READ_NOTE), 'r-1')).status).toBe(202);
    await firstApp.answerOf(cookie, 1);
  });
  const sandboxes = await forBoth(async ({ cookie }) => {
    const { sandboxId } = (await firstApp.read(cookie, '/sandbox')) as { sandboxId: string };
    const work = join(given.files(sandboxId), given.work ?? 'work');
    return { sandbox: sandboxId, work, file: (name: string) => readOrNull(join(work, name)) };
  });
  const secrets = sandboxes.map(({ file }) => /is (\w{24})\./.exec(file('note') ?? '')?.[1] ?? expect.unreachable());
  expect(new Set(secrets).size).toBe(2);

  const printVariables = given.hasNoKey ? '(env; cat /proc/*/environ)' : 'env';
  // The app is killed while the tools of both users run.
  await forBoth(({ cookie }) => firstApp.say(cookie, bash(`${printVariables} > seen; ${WAIT}`), 'r-2'));
  await until('both tools run', () => sandboxes.every(({ file }) => file('begun') === 'begun\n'));
  expect(marked(mark).length).toBeGreaterThan(3);
  await firstApp.program.kill();
  const allEnded = () => until('all processes have ended', () => marked(mark).length === 0);
  if (!given.survivesKill) await allEnded();
  const secondApp = await startLoginApp(variables);
  await allEnded();
  const shown = await forBoth(async ({ cookie, owner }) => {
    expect((await secondApp.say(cookie, WHICH_CODEWORDS, 'r-3')).status).toBe(202);
    const reply = await secondApp.answerOf(cookie, 3);
    const [turns, events, chain] = [
      await secondApp.read(cookie),
      await secondApp.events(cookie, 3),
      await secondApp.read(cookie, '/sandbox'),
    ];
    expect(turns).toMatchObject([{ state: 'completed' }, { state: 'interrupted' }, { state: 'completed' }]);
    expect(chain).toMatchObject({ owner, sessionId: expect.any(String) });
    return { reply, events, all: JSON.stringify([turns, events, chain]) };
  });
  await secondApp.program.stop();

  sandboxes.forEach(({ sandbox, file }, n) => {
    const [own = '', other = ''] = n === 0 ? secrets : secrets.toReversed();
    const [key = '', othersKey = ''] = (n === 0 ? users : users.toReversed()).map(({ owner }) => keyOf(owner));
    const { reply, events, all } = shown[n] ?? expect.unreachable();
    expect(reply).toBe(`I have seen these codewords: ${own}.`);
    expect(file('begun')).toBe('begun\n');
    // The sandbox was reopened. The set-up did not run again.
    expect(file('set-up')).toBe('run\n');
    expect(file('note')).toContain(own);
    const sandboxEvents = [...events.matchAll(/"kind":"(sandbox\.[\w-]+)"/g)].map(([, kind]) => kind);
    expect(sandboxEvents).toEqual(['sandbox.created', 'sandbox.set-up', 'sandbox.reopened']);

    const written = contentsBelow(given.files(sandbox));
    for (const bytes of [all, ...written]) {
      expect(bytes).not.toContain(other);
      expect(bytes).not.toContain(othersKey);
    }
    expect(all).toContain(own);
    for (const bytes of [all, ...(given.hasNoKey ? written : [])]) expect(bytes).not.toContain(key);
    expect(file('seen')).toContain(given.hasNoKey ? 'ANTHROPIC_API_KEY=kept-outside' : `ANTHROPIC_API_KEY=${key}\n`);
    // The variables of the app are not in the environment of the agent.
    expect(file('seen')).not.toMatch(/COOKIE_SECRET|THROUGHLINE_CONFIG|NODE_OPTIONS/);
  });
  const bodies = model.requests.map(({ raw }) => JSON.stringify(raw));
  for (const secret of secrets) expect(bodies.some((body) => body.includes(secret))).toBe(true);
  expect(bodies.filter((body) => secrets.every((secret) => body.includes(secret)))).toEqual([]);
}

/** The contents of all files below a folder. */
function contentsBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => readFileSync(join(entry.parentPath, entry.name), 'latin1'));
}
