// Somebody else continues a session of ours whose last turn did not complete. Then no repeated message is certainly ours.
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { acpAgent } from '../../../../src/agents/acp/adapter.ts';
import type { Throughline } from '../../../../src/index.ts';
import { conversationOf } from '../../../../src/testing/index.ts';
import { ask, TestSandboxes, until } from '../../../contracts/agent-sandbox.ts';
import { allEvents, ended } from '../../../e2e/support/conversations.ts';
import { sentTo } from '../../../e2e/support/stored.ts';
import { type AcpAgentSettings, codexAcp, missing, ownAgent, quickClaudeAcp } from '../../support/acp-agents.ts';
import { AcpHome, type MakeSettings } from '../../support/acp-home.ts';
import { FIRST, SECOND, THIRD } from '../../support/agent-home.ts';

const THEIRS = 'Somebody else has said this.';

type Way = 'cancelled' | 'killed';
const AGENTS: readonly (readonly [name: string, settings: MakeSettings, way: Way, why: string | null])[] = [
  ['an agent of ours', (model, root) => ownAgent(model, root, ['honest']), 'killed', null],
  // Joins two prompts when the first was not answered.
  ['codex-acp', codexAcp, 'killed', missing('@agentclientprotocol/codex-acp')],
  // Writes in the person's place that it was stopped.
  ['claude-agent-acp', quickClaudeAcp, 'cancelled', missing('@agentclientprotocol/claude-agent-acp')],
];

describe.each(AGENTS)('%s', (_, settings, way, why) => {
  test(`a turn that was ${way} is told again; after somebody else’s prompt the session is left`, async (context) => {
    if (why !== null) return context.skip(why);
    await using home = await AcpHome.make({ agent: settings });
    const cwd = home.directory('work');
    const tl = await home.open();
    await tl.conversation('chat', { cwd }).ask(FIRST);
    await broken(home, tl, 'First of all.', way);
    await tl.close();
    const again = await home.open();
    const { receipt } = await again.conversation('chat').ask(SECOND);
    expect(receipt).toMatchObject({ rung: 'resume', proof: 'consistent', carried: 2 });
    await broken(home, again, 'Once more.', way);
    await again.close();
    await elsewhere(home, receipt.sessionId ?? '', cwd);
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

/** A turn that is stopped in the middle of its answer. */
async function broken(home: AcpHome, tl: Throughline, words: string, way: Way): Promise<void> {
  const { turn } = await tl.conversation('chat').send(`${words}\nmodel: stream 10000 25ms`).accepted;
  const isText = async () =>
    (await allEvents(tl.engine, 'chat')).some(({ kind, turnId }) => kind === 'turn.update' && turnId === turn.id);
  await until('it answers', isText);
  if (way === 'cancelled') await tl.engine.cancel(turn.id);
  else process.kill(sentTo(home, turn.id).pid, 'SIGKILL');
  expect((await ended(tl.engine, turn)).state).toBe(way === 'killed' ? 'interrupted' : 'cancelled');
}

/** Another program uses the same session. */
async function elsewhere(home: AcpHome, id: string, cwd: string): Promise<void> {
  const sandboxes = new TestSandboxes();
  try {
    const { agents } = home.settings as { agents: { agent: AcpAgentSettings } };
    const agent = acpAgent({
      name: 'agent',
      ...agents.agent,
      installed: sandboxes.root,
      memory: join(sandboxes.root, 'learnt'),
    });
    const session = await sandboxes.open(agent, await sandboxes.sandbox(cwd), { kind: 'resume', id });
    expect((await ask(session, THEIRS)).outcome.kind).toBe('completed');
    await session.close();
  } finally {
    await sandboxes.dispose();
  }
}
