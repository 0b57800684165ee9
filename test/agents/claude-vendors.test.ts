// The real Claude in rented machines, with doubles of the vendors' packages: it remembers after we were killed, and after its machine was
// lost.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, type TestContext, test } from 'vitest';
import { type Model, startModel } from '../../src/testing/index.ts';
import { CliHome, until } from '../e2e/cli-process.ts';
import { marked } from '../faults/harness/marked.ts';
import { DoubleHome, NODE_OPTIONS, readOrNull, touch } from '../vendors/double/home.ts';
import { whyNoDoubles } from '../vendors/double/service.ts';
import { claudeOrSkip, packageFolder } from './claude.ts';
import { ALLOW_BASH, bash } from './claude-home.ts';

const RECALL = 'Which codewords have you seen?';
const KEY = 'sk-of-the-agent';

class DoubledHome extends CliHome {
  override environment(): Record<string, string> {
    return { ...super.environment(), NODE_OPTIONS };
  }
}

async function withClaude(
  context: TestContext,
  kind: 'vercel' | 'e2b',
  run: (home: CliHome, doubles: DoubleHome, mark: string) => Promise<void>,
) {
  claudeOrSkip(context);
  const why = whyNoDoubles();
  if (why !== null) context.skip(why);
  const model = await startModel();
  await using doubles = new DoubleHome(kind);
  const home = new DoubledHome({ scripted: { adapter: 'scripted' } });
  const mark = `claude-${kind}-${process.pid}`;
  const claude = { adapter: 'claude-cli', package: packageFolder, env: environment(model, mark) };
  writeFileSync(home.config, JSON.stringify({ agents: { claude }, sandbox: doubles.sandbox }));
  try {
    await home.ok('send', 'chat', 'The codeword is amber.');
    await run(home, doubles, mark);
  } finally {
    await home.remove();
    await model.close();
  }
}

const environment = (model: Model, mark: string) => ({
  ...{ ANTHROPIC_BASE_URL: model.url, ANTHROPIC_API_KEY: KEY, THROUGHLINE_FAULTS_MARK: mark },
  ...{ CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1', DISABLE_AUTOUPDATER: '1' },
});

test('Claude in a machine of vercel: killed with a tool running, nothing runs on, and the next turn knows', (context) =>
  withClaude(context, 'vercel', async (home, doubles, mark) => {
    const { conversation } = await home.show('chat');
    const work = (name: string) => join(doubles.work(conversation.id), name);
    const settings = join(doubles.files(conversation.id), '.claude');
    mkdirSync(settings, { recursive: true });
    writeFileSync(join(settings, 'settings.json'), JSON.stringify(ALLOW_BASH));
    touch(work('hold'));
    const tool = 'env > seen; echo begun >> begun; while [ -e hold ]; do sleep 0.1; done; echo ended >> begun';
    const running = home.start(['send', 'chat', bash(tool)]);
    await until(() => readOrNull(work('begun')) === 'begun\n');
    expect(marked(mark).length).toBeGreaterThan(1);
    running.kill('SIGKILL');
    await running.ended;
    // Nothing of ours is left to end them: they end because nobody asks about them any more.
    await until(() => marked(mark).length === 0);

    expect(await home.ok('send', 'chat', RECALL)).toContain('amber');
    const { turns } = await home.show('chat');
    expect(turns.map(({ state }: { state: string }) => state)).toEqual(['completed', 'interrupted', 'completed']);
    expect(readOrNull(work('begun'))).toBe('begun\n');
    // What is of the vendor, of the bridge or of ourselves has not reached the agent's environment.
    const seen = readOrNull(work('seen')) ?? '';
    expect(seen).toContain(KEY);
    expect(seen).not.toMatch(new RegExp(`${doubles.service.root}|THROUGHLINE_BRIDGE|THROUGHLINE_HOME|NODE_OPTIONS`));
  }));

test('Claude in a machine of e2b: when the machine is lost, another one is made, and the conversation restored', (context) =>
  withClaude(context, 'e2b', async (home, doubles) => {
    const { conversation } = await home.show('chat');
    const first = doubles.machine(conversation.id);
    await doubles.service.remove(first);
    expect(await home.ok('send', 'chat', RECALL)).toContain('amber');
    expect(doubles.machine(conversation.id)).not.toBe(first);
    const { turns, receipts } = await home.show('chat');
    expect(turns.map(({ state }: { state: string }) => state)).toEqual(['completed', 'completed']);
    expect(receipts.at(-1)).toMatchObject({ turn: 2, rung: 'rehydrate' });
  }));

test('a vendor whose package is not installed is refused, with the command that installs it', async () => {
  const home = new CliHome({ scripted: { adapter: 'scripted' } });
  const agents = { other: { adapter: 'acp', command: ['/bin/true'] } };
  writeFileSync(home.config, JSON.stringify({ agents, sandbox: { kind: 'e2b' } }));
  try {
    const { code, stderr } = await home.run('send', 'chat', 'Hello');
    expect(code).not.toBe(0);
    expect(stderr).toContain('npm install e2b');
  } finally {
    await home.remove();
  }
});
