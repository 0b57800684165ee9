import { expect, test } from 'vitest';
import { BenchHome } from '../../../bench/support/bench-home.ts';
import { scriptedAgent } from '../../../src/agents/scripted/adapter.ts';
import type { Agent } from '../../../src/ports/agent.ts';
import { ended } from '../support/conversations.ts';

test('an earlier session of the conversation that the agent gives as a new one is refused', async () => {
  await using home = new BenchHome();
  const { engine } = await home.open({ agent: alwaysFirstSession() });
  const { id } = await engine.ensure({ key: 'chat' });
  const ask = async (prompt: string, options = {}) => ended(engine, (await engine.submit(id, prompt, options)).turn);
  await ask('/say Hello.');
  const [first] = await engine.sessions(id);
  const inNewSession = { restore: { rebuild: true, rung: 'transcript' } } as const;
  const refused = await ask('/say Hello again.', inNewSession);
  expect(refused).toMatchObject({ state: 'failed', sent: null, failure: { code: 'restore_failed' } });
  expect(refused.failure?.message).toContain(`the agent called the session ${first?.id} new`);
  expect(await engine.conversation(id)).toMatchObject({ historyCount: 1 });
  // A turn that needs no new session continues in the one that is open.
  expect(await ask('/say Hello once more.')).toMatchObject({ state: 'completed' });
});

/** The scripted agent. Instead of a new session, it opens its first one again. */
function alwaysFirstSession(): Agent {
  const agent = scriptedAgent({ name: 'scripted' });
  let first: string | null = null;
  return {
    ...agent,
    async open(request) {
      const how = request.how.kind === 'new' && first !== null ? ({ kind: 'resume', id: first } as const) : request.how;
      const opened = await agent.open({ ...request, how });
      if (opened.ok) first ??= opened.session.id;
      return opened;
    },
  };
}
