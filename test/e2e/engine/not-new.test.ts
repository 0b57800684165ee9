import { expect, test } from 'vitest';
import { BenchHome } from '../../../bench/support/bench-home.ts';
import { scriptedAgent } from '../../../src/agents/scripted/adapter.ts';
import type { Agent } from '../../../src/ports/agent.ts';
import { ended } from '../support/conversations.ts';

test('a session that the conversation has lived in before is not taken for a new one', async () => {
  await using home = new BenchHome();
  const { engine } = await home.open({ agent: givesBack() });
  const { id } = await engine.ensure({ key: 'chat' });
  const ask = async (prompt: string, options = {}) => ended(engine, (await engine.submit(id, prompt, options)).turn);
  await ask('/say Hello.');
  const [first] = await engine.sessions(id);
  const anew = { restore: { rung: 'transcript' } } as const;
  const refused = await ask('/say Hello again.', anew);
  expect(refused).toMatchObject({ state: 'failed', sent: null, failure: { code: 'restore_failed' } });
  expect(refused.failure?.message).toContain(`the agent called the session ${first?.id} new`);
  expect(await engine.conversation(id)).toMatchObject({ historyCount: 1 });
  // Asked for nothing of the kind, the conversation goes on where it is.
  expect(await ask('/say Hello once more.')).toMatchObject({ state: 'completed' });
});

/** The scripted agent, which opens its first session again whenever it is asked for a new one. */
function givesBack(): Agent {
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
