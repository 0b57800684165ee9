// Somebody else continues a session whose last turn did not complete. Then we cannot know which of its messages are ours.
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { acpAgent } from '../../../../src/agents/acp/adapter.ts';
import { systemClock } from '../../../../src/host/clock.ts';
import type { Throughline } from '../../../../src/index.ts';
import { conversationOf } from '../../../../src/testing/index.ts';
import { ask, TestSandboxes, until } from '../../../contracts/agent-sandbox.ts';
import { allEvents, ended } from '../../../e2e/support/conversations.ts';
import { sentTo } from '../../../e2e/support/stored.ts';
import {
  type AcpAgentSettings,
  codexAcp,
  quickClaudeAcp,
  smallAgent,
  whyNotInstalled,
} from '../../support/acp-agents.ts';
import { AcpHome, type MakeSettings } from '../../support/acp-home.ts';
import { FIRST, SECOND, THIRD } from '../../support/agent-home.ts';

const THEIRS = 'Somebody else has said this.';

type End = 'cancelled' | 'killed';
const AGENTS: readonly (readonly [name: string, settings: MakeSettings, end: End, why: string | null])[] = [
  ['a small agent', (model, root) => smallAgent(model, root, ['complete']), 'killed', null],
  // Codex joins a prompt without an answer with the next prompt.
  ['codex-acp', codexAcp, 'killed', whyNotInstalled('@agentclientprotocol/codex-acp')],
  // Claude adds a message of the user that says that it was stopped.
  ['claude-agent-acp', quickClaudeAcp, 'cancelled', whyNotInstalled('@agentclientprotocol/claude-agent-acp')],
];

describe.each(AGENTS)('%s', (_, settings, end, why) => {
  test(`a session with a ${end} turn is resumed, but not after a prompt of somebody else`, async (context) => {
    if (why !== null) return context.skip(why);
    await using home = await AcpHome.make({ agent: settings });
    const cwd = home.directory('work');
    const tl = await home.open();
    await tl.conversation('chat', { cwd }).ask(FIRST);
    await unfinishedTurn(home, tl, 'First of all.', end);
    await tl.close();
    const again = await home.open();
    const { receipt } = await again.conversation('chat').ask(SECOND);
    expect(receipt).toMatchObject({ rung: 'resume', proof: 'consistent', carried: 2 });
    await unfinishedTurn(home, again, 'Once more.', end);
    await again.close();
    await promptElsewhere(home, receipt.sessionId ?? '', cwd);
    const later = await home.open();
    const last = await later.conversation('chat').ask(THIRD);
    expect(last.receipt).toMatchObject({ rung: 'transcript', carried: 4, proof: 'counted' });
    expect(last.receipt.tried).toMatchObject([{ rung: 'resume', failure: expect.stringMatching(/1 more prompt/) }]);
    expect((await later.engine.sessions('chat')).map(({ state }) => state)).toEqual(['live', 'diverged']);
    home.expectCodewords('amber', 'birch', 'cedar');
    const request = home.model.lastRequest();
    expect(JSON.stringify(request && conversationOf(request))).not.toContain(THEIRS);
  });
});

/** Runs a turn that is cancelled, or whose agent is killed, in the middle of its answer. */
async function unfinishedTurn(home: AcpHome, tl: Throughline, prompt: string, end: End): Promise<void> {
  const { turn } = await tl.conversation('chat').send(`${prompt}\nmodel: stream 10000 25ms`).accepted;
  const hasUpdate = async () =>
    (await allEvents(tl.engine, 'chat')).some(({ kind, turnId }) => kind === 'turn.update' && turnId === turn.id);
  await until('the agent answers', hasUpdate);
  if (end === 'cancelled') await tl.engine.cancel(turn.id);
  else process.kill(sentTo(home, turn.id).pid, 'SIGKILL');
  expect((await ended(tl.engine, turn)).state).toBe(end === 'killed' ? 'interrupted' : 'cancelled');
}

/** Sends a prompt to the session without Throughline. */
async function promptElsewhere(home: AcpHome, id: string, cwd: string): Promise<void> {
  const sandboxes = new TestSandboxes();
  try {
    const { agents } = home.settings as { agents: { agent: AcpAgentSettings } };
    const agent = acpAgent({
      name: 'agent',
      ...agents.agent,
      installed: sandboxes.root,
      memory: join(sandboxes.root, 'learnt'),
      clock: systemClock,
    });
    const session = await sandboxes.open(agent, await sandboxes.sandbox(cwd), { kind: 'resume', id });
    expect((await ask(session, THEIRS)).outcome.kind).toBe('completed');
    await session.close();
  } finally {
    await sandboxes.dispose();
  }
}
