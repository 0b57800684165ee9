import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { open } from '../../../../src/index.ts';
import { refusedWith } from '../../../e2e/support/conversations.ts';
import { type ClaudeAdapter, ClaudeHome, FIRST, SECOND } from '../../support/claude-home.ts';

const RECALL = 'Which codewords have you seen?';

export function chosenIds(adapter: ClaudeAdapter): void {
  test('a new session has the id that the caller chose, with and without a history, and is refused when Claude has it', async () => {
    await using home = await ClaudeHome.make(adapter);
    const tl = await home.open();
    const cwd = home.directory('work');
    const chat = tl.conversation('chat', { cwd });
    const [one, two, three] = [randomUUID(), randomUUID(), randomUUID()];
    const first = await chat.ask(FIRST, { newSession: one });
    expect(first).toMatchObject({ turn: { sessionId: one }, receipt: { rung: 'new', proof: 'proved' } });
    expect((await chat.ask(SECOND)).turn.sessionId).toBe(one);
    const moved = await chat.ask(RECALL, { newSession: two });
    expect(moved).toMatchObject({ turn: { sessionId: two }, receipt: { rung: 'rehydrate', carried: 2, dropped: 0 } });
    for (const word of ['amber', 'birch']) expect(moved.reply).toContain(word);
    await refusedWith('refused', chat.ask(RECALL, { newSession: one }), /was used before/);

    // Another data home knows nothing of it, but Claude has its transcript.
    const other = await open({ home: home.directory('other-home'), settings: home.settings });
    try {
      const requests = home.model.requests.length;
      const taken = other.conversation('taken', { cwd }).ask(RECALL, { newSession: two });
      await refusedWith('refused', taken, /the agent already has a session with this id/);
      const named = other.conversation('named', { cwd }).ask(RECALL, { newSession: 'not-a-uuid' });
      await refusedWith('refused', named, /UUID/);
      expect(home.model.requests).toHaveLength(requests);
      const free = other.conversation('free', { cwd });
      expect((await free.ask(FIRST, { newSession: three })).turn.sessionId).toBe(three);
    } finally {
      await other.close();
    }
  });
}
