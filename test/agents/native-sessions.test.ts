// Sessions that were made outside of a conversation: they can be listed and adopted. The tests use only the command line.
import { globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, type TestContext, test } from 'vitest';
import { type Model, startModel } from '../../src/testing/index.ts';
import { CliHome } from '../e2e/cli/process.ts';
import { codexAcp, smallAgent, whyNotInstalled } from './support/acp-agents.ts';
import { codeword } from './support/agent-home.ts';
import { claudeEnvironment, claudeOrSkip, packageFolder, userHome } from './support/claude.ts';

interface AgentToTest {
  readonly settings: (model: Model, root: string) => object;
  /** Skips the test if the agent is not installed. */
  readonly skipIfMissing: (context: TestContext) => void;
  /** The title of a session with one turn. */
  readonly title: RegExp;
}

const AGENTS: Readonly<Record<string, AgentToTest>> = {
  'codex-acp': {
    settings: codexAcp,
    // The model may have generated a title before Codex was ended.
    title: /The codeword is amber\.|a-conversation/,
    skipIfMissing(context) {
      const why = whyNotInstalled('@agentclientprotocol/codex-acp');
      if (why !== null) context.skip(why);
    },
  },
  'claude-cli': {
    settings: (model, root) => ({
      adapter: 'claude-cli',
      package: packageFolder,
      env: claudeEnvironment(model, userHome(root)),
    }),
    skipIfMissing: claudeOrSkip,
    title: /The codeword is amber\./,
  },
};

test.for(Object.entries(AGENTS))(
  '%s lists its sessions of a directory, and a conversation of another data home adopts one',
  async ([, { settings, skipIfMissing, title }], context) => {
    skipIfMissing(context);
    const model = await startModel();
    const homes = [new CliHome(), new CliHome()] as const;
    const [first, second] = homes;
    try {
      const agent = settings(model, first.path);
      for (const { config } of homes) writeFileSync(config, JSON.stringify({ agents: { agent } }));
      const [work, other] = ['work', 'other'].map((name) => join(first.path, name)) as [string, string];
      for (const folder of [work, other]) mkdirSync(folder);
      await first.ok('send', 'chat', codeword('amber'), '--cwd', work);
      const [{ id }] = (await first.show('chat')).sessions;
      expect(await second.lines('sessions', '--agent', 'agent', '--cwd', work)).toEqual([
        { agent: 'agent', cwd: work, id, title: expect.stringMatching(title), updatedAt: expect.any(Number) },
      ]);
      expect(await second.ok('sessions', '--agent', 'agent', '--cwd', work)).toMatch(
        new RegExp(`^${id} .*(?:${title.source})`),
      );
      expect(await second.lines('sessions', '--agent', 'agent', '--cwd', other)).toEqual([]);
      const reply = await second.ok('send', 'taken', 'Which codewords have you seen?', '--session', id, '--cwd', work);
      expect(reply).toContain('amber');
      const { turns, receipts, sessions } = await second.show('taken');
      expect(turns).toMatchObject([
        { n: 1, imported: true, promptText: codeword('amber'), state: 'completed', sessionId: id },
        { n: 2, imported: false },
      ]);
      expect(receipts).toMatchObject([{ turn: 2, rung: 'resume', carried: 1, dropped: 0 }]);
      expect(sessions).toMatchObject([{ id, origin: 'adopted', watermark: 2 }]);
      // A fork has its own session, with the turn of the first home.
      await second.ok('fork', 'taken', '--key', 'forked');
      expect(await second.ok('send', 'forked', 'Which codewords have you seen?')).toContain('amber');
      expect((await second.show('forked')).receipts).toMatchObject([{ carried: 2, dropped: 0 }]);
    } finally {
      await Promise.all(homes.map((home) => home.remove()));
      await model.close();
    }
  },
);

test('with an older codex-acp, sessions of a newer Codex are not listed, adopted or continued', async (context) => {
  const why = whyNotInstalled('@agentclientprotocol/codex-acp');
  if (why !== null) context.skip(why);
  const model = await startModel();
  const homes = [new CliHome(), new CliHome()] as const;
  const [first, second] = homes;
  try {
    const agent = codexAcp(model, first.path);
    writeFileSync(first.config, JSON.stringify({ agents: { agent } }));
    const work = join(first.path, 'work');
    mkdirSync(work);
    await first.ok('send', 'chat', codeword('amber'), '--cwd', work);
    const [{ id }] = (await first.show('chat')).sessions;
    const [file = ''] = globSync(`${agent.env.HOME}/.codex/sessions/**/*${id}.jsonl`);
    const before = readFileSync(file);
    // A small agent that reports the name and version of Zed's older program. It would open any session.
    const olderProgram = JSON.stringify({ name: 'codex-acp', version: '0.16.0', load: 'empty', listedSessions: [id] });
    const old = smallAgent(model, agent.env.HOME ?? '', ['complete', olderProgram], { quietMs: 100 });
    for (const { config } of homes) writeFileSync(config, JSON.stringify({ agents: { agent: old } }));

    expect(await second.lines('sessions', '--agent', 'agent', '--cwd', work)).toEqual([]);
    expect(await second.ok('agents')).toContain('damages sessions of newer Codexes');
    const adopted = await second.run('send', 'taken', 'Which codewords?', '--session', id, '--cwd', work);
    expect(adopted).toMatchObject({ code: 2, stderr: expect.stringContaining('codex-acp 0.16.0 could damage it') });
    // The conversation continues in a new session.
    expect(await first.ok('send', 'chat', 'Which codewords have you seen?')).toContain('amber');
    const [, receipt] = (await first.show('chat')).receipts;
    expect(receipt).toMatchObject({
      rung: 'transcript',
      tried: [{ rung: 'resume', failure: expect.stringContaining('a newer Codex wrote it') }],
    });
    expect(readFileSync(file).equals(before)).toBe(true);
  } finally {
    await Promise.all(homes.map((home) => home.remove()));
    await model.close();
  }
});

test('`sessions` fails for an agent that cannot list them, for an unknown agent, and with both or none of its arguments', async () => {
  const home = new CliHome();
  try {
    const agent = smallAgent({ url: 'http://127.0.0.1:9' }, home.path, ['complete']);
    writeFileSync(home.config, JSON.stringify({ agents: { agent } }));
    const runSessions = async (...args: string[]) => {
      const { code, stderr } = await home.run('sessions', ...args);
      return [code, stderr] as const;
    };
    expect(await runSessions('--agent', 'agent')).toEqual([2, expect.stringContaining('cannot list its sessions')]);
    expect(await runSessions('--agent', 'nobody')).toEqual([3, expect.stringContaining('nobody')]);
    expect(await runSessions()).toEqual([2, expect.stringContaining('Name either a conversation')]);
    expect(await runSessions('chat', '--agent', 'agent')).toEqual([
      2,
      expect.stringContaining('Name either a conversation'),
    ]);
  } finally {
    await home.remove();
  }
});
