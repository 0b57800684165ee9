// The real Claude in isolation: it reaches its model and nothing else, never has the key, and remembers after we were killed.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, type TestContext, test } from 'vitest';
import { startModel } from '../../src/testing/index.ts';
import { isAlive } from '../contracts/liveness.ts';
import { whyNoBubblewrap } from '../contracts/sandbox/bubblewrap-given.ts';
import { containerSettings, whyNoPodman, writeRootfs } from '../contracts/sandbox/container-given.ts';
import { CliHome, until } from '../e2e/cli-process.ts';
import { claudeOrSkip, packageFolder } from './claude.ts';
import { ALLOW_BASH, bash } from './claude-home.ts';
import { processesIn } from './processes-of.ts';

const KEY = 'sk-the-real-key';
const LOOK = 'env > seen; cat /proc/*/environ >> seen; echo begun >> begun; while [ -e hold ]; do sleep 0.1; done';

const KINDS = {
  bubblewrap: {
    why: async () => whyNoBubblewrap(),
    settings: () => ({ kind: 'bubblewrap', network: 'model', key: {} }),
  },
  'a container': {
    why: whyNoPodman,
    settings: (home: string) =>
      containerSettings(writeRootfs(join(home, 'rootfs')), {
        network: 'model',
        key: {},
        binds: [{ path: packageFolder }],
      }),
  },
} as const;

for (const [name, kind] of Object.entries(KINDS)) {
  const title = `Claude in ${name}: killed with a tool running, the next turn knows, and the key was never inside`;
  test(title, (context) => killed(kind, context));
}

async function killed(kind: (typeof KINDS)[keyof typeof KINDS], context: TestContext): Promise<void> {
  claudeOrSkip(context);
  const why = await kind.why();
  if (why !== null) context.skip(why);
  const model = await startModel();
  const home = new CliHome({ scripted: { adapter: 'scripted' } });
  const env = {
    ...{ ANTHROPIC_BASE_URL: model.url, ANTHROPIC_API_KEY: KEY },
    ...{ CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1', DISABLE_AUTOUPDATER: '1' },
  };
  const claude = { adapter: 'claude-cli', package: packageFolder, env };
  writeFileSync(home.config, JSON.stringify({ agents: { claude }, sandbox: kind.settings(home.path) }));
  try {
    await home.ok('send', 'chat', 'The codeword is amber.');
    const { conversation } = await home.show('chat');
    const folder = join(home.path, 'home', 'sandboxes', conversation.id);
    const work = (name: string) => join(folder, 'work', name);
    // Its own home: what is there is obeyed in the sandbox, and nowhere else.
    writeFileSync(join(folder, 'home', '.claude', 'settings.json'), JSON.stringify(ALLOW_BASH));
    writeFileSync(work('hold'), '');
    const running = home.start(['send', 'chat', bash(LOOK)]);
    await until(() => existsSync(work('begun')) && readFileSync(work('begun'), 'utf8') === 'begun\n');
    const inside = processesIn(join(folder, 'work'));
    expect(inside.length).toBeGreaterThan(1);
    running.kill('SIGKILL');
    await running.ended;
    // Nothing of ours is left to end them: they end with us.
    await until(() => inside.every((pid) => !isAlive(pid)));

    expect(await home.ok('send', 'chat', 'Which codewords have you seen?')).toContain('amber');
    const { turns, receipts } = await home.show('chat');
    expect(turns.map(({ state }: { state: string }) => state)).toEqual(['completed', 'interrupted', 'completed']);
    expect(receipts.at(-1)).toMatchObject({ turn: 3 });
    expect(readFileSync(work('begun'), 'utf8')).toBe('begun\n');

    const seen = readFileSync(work('seen'), 'latin1');
    expect(seen).toContain('ANTHROPIC_API_KEY=kept-outside');
    expect(seen).not.toContain(KEY);
    expect(model.requests.length).toBeGreaterThan(1);
  } finally {
    await home.remove();
    await model.close();
  }
}
