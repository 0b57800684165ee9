// Real agents in bubblewrap: they reach the stand-in model through the proxy, run a tool, and keep their context after a restart.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, type TestContext, test } from 'vitest';
import type { Model } from '../../../src/testing/index.ts';
import { whyNoBubblewrap } from '../../contracts/sandbox/bubblewrap-given.ts';
import { bash, claudeAcp, codexAcp, execCommand, whyNotInstalled } from '../support/acp-agents.ts';
import { AcpHome } from '../support/acp-home.ts';
import { FIRST } from '../support/agent-home.ts';
import { claudeEnvironment, claudeOrSkip, packageFolder, userHome } from '../support/claude.ts';

interface AgentToTest {
  readonly name: string;
  readonly settings: (model: Model, root: string) => object;
  /** A line of a prompt that makes it run a command. */
  readonly run: (command: string) => string;
  /** Skips the test if the agent is not installed. */
  readonly skipIfMissing: (context: TestContext) => void;
}

const skipUnlessInstalled =
  (name: Parameters<typeof whyNotInstalled>[0]): AgentToTest['skipIfMissing'] =>
  (context) => {
    const why = whyNotInstalled(name);
    if (why !== null) context.skip(why);
  };

/** Folders with test files. An agent in the sandbox must not see those files. */
const FOLDERS = `${packageFolder} ${import.meta.dirname}`;

const AGENTS: readonly AgentToTest[] = [
  {
    name: 'Claude with the SDK',
    settings(model, root) {
      const env = claudeEnvironment(model, userHome(root, { permissions: { allow: ['Bash'] } }));
      return { adapter: 'claude-sdk', package: packageFolder, env };
    },
    run: bash,
    skipIfMissing: claudeOrSkip,
  },
  {
    name: 'claude-agent-acp',
    settings: claudeAcp,
    run: bash,
    skipIfMissing: skipUnlessInstalled('@agentclientprotocol/claude-agent-acp'),
  },
  {
    name: 'codex-acp',
    settings: codexAcp,
    run: execCommand,
    skipIfMissing: skipUnlessInstalled('@agentclientprotocol/codex-acp'),
  },
];

for (const { name, settings, run, skipIfMissing } of AGENTS) {
  test(`${name} in bubblewrap answers, runs a tool, and keeps its context after a restart`, async (context) => {
    skipIfMissing(context);
    const why = whyNoBubblewrap();
    if (why !== null) context.skip(why);
    await testInBubblewrap(settings, run);
  });
}

async function testInBubblewrap(settings: AgentToTest['settings'], run: AgentToTest['run']): Promise<void> {
  await using home = await AcpHome.make({ agent: settings });
  // The home of the agent is bound into the sandbox, so that it has its login there and keeps its sessions.
  const folders = [home.homeOf('agent'), join(home.path, 'codex-tmp')].filter((path) => existsSync(path));
  const binds = folders.map((path) => ({ path, write: true }));
  const allow = [new URL(home.model.url).host];
  const sandbox: object = { sandbox: { kind: 'bubblewrap', network: 'model', allow, binds } };
  home.settings = { ...(home.settings as object), ...sandbox };
  const tl = await home.open();
  const { turn } = await tl.conversation('chat').ask(FIRST);
  const work = join(home.path, 'sandboxes', turn.conversationId, 'work');
  await tl.conversation('chat').ask(run(`cat /proc/1/comm > seen; ls ${FOLDERS} >> seen 2>&1; true`));
  expect(readFileSync(join(work, 'seen'), 'utf8')).toMatch(/^bwrap\n/);
  expect(readFileSync(join(work, 'seen'), 'utf8')).not.toContain('.test.ts\n');
  await tl.close();
  const { reply, receipt } = await (await home.open()).conversation('chat').ask('Which codewords have you seen?');
  expect(reply).toContain('amber');
  expect(receipt).toMatchObject({ carried: 2, dropped: 0, modelCalls: 0 });
}
