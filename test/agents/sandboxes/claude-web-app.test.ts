// The web app with its own login (examples/login.ts) and the real Claude, in every kind of sandbox. Two users with the same keys, request ids and
// prompts: what differs between them is a secret that the set-up makes in each sandbox.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { type Model, startModel } from '../../../src/testing/index.ts';
import { whyNoBubblewrap } from '../../contracts/sandbox/bubblewrap-given.ts';
import { containerSettings, whyNoPodman, writeRootfs } from '../../contracts/sandbox/container-given.ts';
import { startSshd, whyNoSshd } from '../../contracts/sandbox/sshd.ts';
import { CliHome } from '../../e2e/cli/process.ts';
import { endPrograms, startLoginApp } from '../../e2e/example-programs.ts';
import { marked } from '../../faults/harness/marked.ts';
import { until } from '../../faults/harness/until.ts';
import { DoubleHome, NODE_OPTIONS, readOrNull } from '../../vendors/double/home.ts';
import { whyNoDoubles } from '../../vendors/double/service.ts';
import { claudeEnvironment, claudeOrSkip, packageFolder, userHome } from '../support/claude.ts';
import { bash } from '../support/claude-home.ts';

afterEach(endPrograms);

/** What differs between the kinds, where the test has its data. */
interface Given {
  readonly sandbox: object;
  /** All files of a sandbox, as they are seen from here. */
  readonly files: (sandbox: string) => string;
  /** Where it works, below them. */
  readonly work?: string;
  /** More variables of the app. */
  readonly app?: Record<string, string>;
  /** More variables of the agent. */
  readonly agent?: Record<string, string>;
  /** Whether what the app has started runs on without it, until the next process ends it. */
  readonly runsOn?: boolean;
  /** Whether the key stays outside: then the variables of all processes that the agent sees are looked at. */
  readonly hasNoKey?: boolean;
}

interface Kind {
  readonly why: () => string | null | Promise<string | null>;
  readonly given: (home: CliHome, end: AsyncDisposableStack) => Given | Promise<Given>;
}

const here = (home: CliHome) => (sandbox: string) => join(home.path, 'home', 'sandboxes', sandbox);

const KINDS: Readonly<Record<string, Kind>> = {
  directory: {
    why: () => null,
    // Not isolated, it has the home of whoever runs it.
    given: (home) => ({
      sandbox: { kind: 'directory' },
      files: here(home),
      agent: { HOME: userHome(home.path) },
      runsOn: true,
    }),
  },
  bubblewrap: {
    why: whyNoBubblewrap,
    given: (home) => ({
      sandbox: { kind: 'bubblewrap', network: 'model', key: {} },
      files: here(home),
      hasNoKey: true,
    }),
  },
  container: {
    why: whyNoPodman,
    given: (home) => ({
      sandbox: containerSettings(writeRootfs(join(home.path, 'rootfs')), {
        ...{ network: 'model', key: {}, binds: [{ path: packageFolder }] },
      }),
      files: here(home),
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
const SET_UP = [
  'echo run >> set-up',
  'echo "The codeword is $(od -An -N12 -tx1 /dev/urandom | tr -d " \\n")." > note', // another one if it ran again
].join('; ');
const LOOK = 'cat note';
const HOLD = 'echo begun >> begun; while [ -e note ]; do sleep 0.1; done; echo ended >> begun';
const RECALL = 'Which codewords have you seen?';

for (const [name, kind] of Object.entries(KINDS)) {
  const title = `${name}: a killed app goes on in the next process, Claude remembers, and no user has a byte of another`;
  test(title, async (context) => {
    claudeOrSkip(context);
    const why = await kind.why();
    if (why !== null) context.skip(why);
    await using end = new AsyncDisposableStack();
    const home = end.adopt(new CliHome({}), (one) => one.remove());
    const model = end.adopt(await startModel(), (one) => one.close());
    const given = await kind.given(home, end);
    end.defer(endPrograms); // first of all
    await twoUsers(given, home, model);
  });
}

async function twoUsers(given: Given, home: CliHome, model: Model): Promise<void> {
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

  const one = await startLoginApp(variables);
  const users = await Promise.all([
    one.login('ann', 'a heron at dawn').then(({ cookie }) => ({ owner: 'shop:ann', cookie })),
    one.login('bob', 'a wren at noon').then(({ cookie }) => ({ owner: 'shop:bob', cookie })),
  ]);
  for (const { owner } of users)
    writeFileSync(join(home.path, `key-of-${encodeURIComponent(owner)}`), `${keyOf(owner)}\n`);
  const both = <T>(run: (user: { owner: string; cookie: string }) => Promise<T>) => Promise.all(users.map(run));
  await both(async ({ cookie }) => {
    expect((await one.say(cookie, bash(LOOK), 'r-1')).status).toBe(202);
    await one.answered(cookie, 1);
  });
  const places = await both(async ({ cookie }) => {
    const { sandbox } = (await one.read(cookie, '/sandbox')) as { sandbox: string };
    const work = join(given.files(sandbox), given.work ?? 'work');
    return { sandbox, work, file: (name: string) => readOrNull(join(work, name)) };
  });
  const secrets = places.map(({ file }) => /is (\w{24})\./.exec(file('note') ?? '')?.[1] ?? expect.unreachable());
  expect(new Set(secrets).size).toBe(2);

  const look = given.hasNoKey ? '(env; cat /proc/*/environ)' : 'env';
  // The tool of each runs while the app is killed.
  await both(({ cookie }) => one.say(cookie, bash(`${look} > seen; ${HOLD}`), 'r-2'));
  await until('both tools run', () => places.every(({ file }) => file('begun') === 'begun\n'));
  expect(marked(mark).length).toBeGreaterThan(3);
  await one.program.kill();
  const ended = () => until('nothing runs on', () => marked(mark).length === 0);
  if (!given.runsOn) await ended();
  const two = await startLoginApp(variables);
  await ended();
  const shown = await both(async ({ cookie, owner }) => {
    expect((await two.say(cookie, RECALL, 'r-3')).status).toBe(202);
    const reply = await two.answered(cookie, 3);
    const [turns, events, chain] = [
      await two.read(cookie),
      await two.events(cookie, 3),
      await two.read(cookie, '/sandbox'),
    ];
    expect(turns).toMatchObject([{ state: 'completed' }, { state: 'interrupted' }, { state: 'completed' }]);
    expect(chain).toMatchObject({ owner, session: expect.any(String) });
    return { reply, events, all: JSON.stringify([turns, events, chain]) };
  });
  await two.program.stop();

  places.forEach(({ sandbox, file }, n) => {
    const [own = '', other = ''] = n === 0 ? secrets : secrets.toReversed();
    const [key = '', othersKey = ''] = (n === 0 ? users : users.toReversed()).map(({ owner }) => keyOf(owner));
    const { reply, events, all } = shown[n] ?? expect.unreachable();
    expect(reply).toBe(`I have seen these codewords: ${own}.`);
    expect(file('begun')).toBe('begun\n');
    // Reopened, and not set up again.
    expect(file('set-up')).toBe('run\n');
    expect(file('note')).toContain(own);
    const told = [...events.matchAll(/"kind":"(sandbox\.[\w-]+)"/g)].map(([, kind]) => kind);
    expect(told).toEqual(['sandbox.created', 'sandbox.set-up', 'sandbox.reopened']);

    const written = contentsBelow(given.files(sandbox));
    for (const bytes of [all, ...written]) {
      expect(bytes).not.toContain(other);
      expect(bytes).not.toContain(othersKey);
    }
    expect(all).toContain(own);
    for (const bytes of [all, ...(given.hasNoKey ? written : [])]) expect(bytes).not.toContain(key);
    expect(file('seen')).toContain(given.hasNoKey ? 'ANTHROPIC_API_KEY=kept-outside' : `ANTHROPIC_API_KEY=${key}\n`);
    // What is of the app has not reached the agent's environment.
    expect(file('seen')).not.toMatch(/COOKIE_SECRET|THROUGHLINE_CONFIG|NODE_OPTIONS/);
  });
  const asked = model.requests.map(({ raw }) => JSON.stringify(raw));
  for (const secret of secrets) expect(asked.some((body) => body.includes(secret))).toBe(true);
  expect(asked.filter((body) => secrets.every((secret) => body.includes(secret)))).toEqual([]);
}

/** All that is written in files below a folder. */
function contentsBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => readFileSync(join(entry.parentPath, entry.name), 'latin1'));
}
