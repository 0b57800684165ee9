import { expect, test } from 'vitest';
import type { Agent, OpenHow } from '../../../src/ports/agent.ts';
import { ask } from '../../contracts/agent-sandbox.ts';
import { codewordsIn, run, WHICH_CODEWORDS } from '../support/conversations.ts';
import { Home } from '../support/home.ts';

/** The agent. Its first session is opened and used, but the engine gets the answer that the session is locked. */
function withFirstOpenReportedAsLocked(agent: Agent, opens: OpenHow[]): Agent {
  return {
    ...agent,
    async open(request) {
      opens.push(request.how);
      const opened = await agent.open(request);
      if (opens.length > 1 || !opened.ok) return opened;
      await ask(opened.session, 'Hello.');
      await opened.session.close();
      return { ok: false, reason: 'locked', message: 'try again' };
    },
  };
}

test('an assigned id that an earlier attempt has opened is resumed, and no other id is generated', async () => {
  await using home = new Home({ a: { ids: 'assigned' } });
  const opens: OpenHow[] = [];
  const engine = await home.engine({ agent: (agent) => withFirstOpenReportedAsLocked(agent, opens) });
  await engine.ensure({ key: 'chat' });
  const { turn } = await run(engine, 'chat', 'The codeword is amber.');
  expect(turn.state).toBe('completed');
  expect(opens.map(({ kind }) => kind)).toEqual(['new', 'new', 'resume']);
  expect(new Set(opens.map((how) => how.id)).size).toBe(1);
  expect((await engine.sessions('chat')).map(({ id }) => id)).toEqual([turn.sessionId]);
  expect(codewordsIn((await run(engine, 'chat', WHICH_CODEWORDS)).reply)).toEqual(['amber']);
});
