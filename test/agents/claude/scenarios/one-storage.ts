import { expect, test } from 'vitest';
import { refusedWith } from '../../../e2e/support/conversations.ts';
import { type ClaudeAdapter, ClaudeHome, FIRST, SECOND } from '../../support/claude-home.ts';

const RECALL = 'Which codewords have you seen?';

export function oneStorage(adapter: ClaudeAdapter): void {
  test('a session in use cannot be adopted under another agent’s name or by another owner', async () => {
    await using home = await ClaudeHome.make(adapter);
    const { claude } = home;
    const apart = { ...claude, options: { home: 'sandbox' } } as const;
    const tl = await home.open({ agents: { claude, 'claude-cheap': claude, 'claude-apart': apart } });
    const cwd = home.directory('work');
    const one = tl.conversation('one', { cwd, agent: 'claude' });
    const { turn } = await one.ask(FIRST);
    const session = turn.sessionId ?? expect.unreachable();
    const requests = home.model.requests.length;
    const why = new RegExp(`The session ${session} of claude-cheap cannot be used: it belongs to another conversation`);
    for (const owner of [tl, tl.as('ann')]) {
      const two = owner.conversation('two', { cwd, agent: 'claude-cheap' });
      await refusedWith('refused', two.ask(SECOND, { session }), why);
    }
    // One with a home of its own has other sessions, and this is none of them.
    const three = tl.conversation('three', { cwd, agent: 'claude-apart' });
    await refusedWith('refused', three.ask(SECOND, { session }), /the agent has no such session here/);
    expect(home.model.requests).toHaveLength(requests);
    const { reply } = await one.ask(RECALL);
    expect(reply).toContain('amber');
    expect(reply).not.toContain('birch');
  });
}
