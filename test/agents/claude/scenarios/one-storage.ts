import { expect, test } from 'vitest';
import { refusedWith, WHICH_CODEWORDS } from '../../../e2e/support/conversations.ts';
import { type ClaudeAdapter, ClaudeHome, FIRST, SECOND } from '../../support/claude-home.ts';

export function oneStorage(adapter: ClaudeAdapter): void {
  test('a session of a conversation cannot be adopted under another agent name or by another owner', async () => {
    await using home = await ClaudeHome.make(adapter);
    const { claude } = home;
    const ownHome = { ...claude, options: { home: 'sandbox' } } as const;
    const tl = await home.open({ agents: { claude, 'claude-cheap': claude, 'claude-apart': ownHome } });
    const cwd = home.directory('work');
    const one = tl.conversation('one', { cwd, agent: 'claude' });
    const { turn } = await one.ask(FIRST);
    const session = turn.sessionId ?? expect.unreachable();
    const requests = home.model.requests.length;
    const why = new RegExp(`The session ${session} of claude-cheap cannot be used: it belongs to another conversation`);
    for (const owner of [tl, tl.as('ann')]) {
      const first = owner.conversation('first prompt', { cwd, agent: 'claude-cheap' });
      await refusedWith('refused', first.ask(SECOND, { session }), /is in use elsewhere/);
      await refusedWith('not_found', first.get());
      const two = owner.conversation('two', { cwd, agent: 'claude-cheap' });
      await two.ensure();
      await refusedWith('refused', two.ask(SECOND, { session }), why);
    }
    // An agent with its own home has another storage, without this session.
    const three = tl.conversation('three', { cwd, agent: 'claude-apart' });
    await refusedWith('refused', three.ask(SECOND, { session }), /the agent has no such session here/);
    expect(home.model.requests).toHaveLength(requests);
    const { reply } = await one.ask(WHICH_CODEWORDS);
    expect(reply).toContain('amber');
    expect(reply).not.toContain('birch');
  });
}
