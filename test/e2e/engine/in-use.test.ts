import { expect, test } from 'vitest';
import type { Agent, OpenHow } from '../../../src/ports/agent.ts';
import { ask } from '../../contracts/agent-sandbox.ts';
import { codewordsIn, run, WHICH_CODEWORDS } from '../support/conversations.ts';
import { Home } from '../support/home.ts';

/** Opens a session, which is used, and loses the answer: to us it says that it was locked. */
function losesFirstAnswer(agent: Agent, asked: OpenHow[]): Agent {
  return {
    ...agent,
    async open(request) {
      asked.push(request.how);
      const opened = await agent.open(request);
      if (asked.length > 1 || !opened.ok) return opened;
      await ask(opened.session, 'Hello.');
      await opened.session.close();
      return { ok: false, reason: 'locked', message: 'try again' };
    },
  };
}

test('an id of ours that is in use was opened by an earlier attempt: it is resumed, and no other is made up', async () => {
  await using home = new Home({ a: { ids: 'assigned' } });
  const asked: OpenHow[] = [];
  const engine = await home.engine({ agent: (agent) => losesFirstAnswer(agent, asked) });
  await engine.ensure({ key: 'chat' });
  const { turn } = await run(engine, 'chat', 'The codeword is amber.');
  expect(turn.state).toBe('completed');
  expect(asked.map(({ kind }) => kind)).toEqual(['new', 'new', 'resume']);
  expect(new Set(asked.map((how) => how.id)).size).toBe(1);
  expect((await engine.sessions('chat')).map(({ id }) => id)).toEqual([turn.sessionId]);
  expect(codewordsIn((await run(engine, 'chat', WHICH_CODEWORDS)).reply)).toEqual(['amber']);
});
