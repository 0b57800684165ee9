import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { open } from '../../../../src/index.ts';
import { refusedWith, WHICH_CODEWORDS } from '../../../e2e/support/conversations.ts';
import { type ClaudeAdapter, ClaudeHome, FIRST, SECOND } from '../../support/claude-home.ts';

export function chosenIds(adapter: ClaudeAdapter): void {
  test('a new session gets the id that the caller chose, with and without a history; an id in use is refused', async () => {
    await using home = await ClaudeHome.make(adapter);
    const tl = await home.open();
    const cwd = home.directory('work');
    const chat = tl.conversation('chat', { cwd });
    const [firstId, secondId, freeId] = [randomUUID(), randomUUID(), randomUUID()];
    const first = await chat.ask(FIRST, { newSession: firstId });
    expect(first).toMatchObject({ turn: { sessionId: firstId }, receipt: { rung: 'new', proof: 'proved' } });
    expect((await chat.ask(SECOND)).turn.sessionId).toBe(firstId);
    const moved = await chat.ask(WHICH_CODEWORDS, { newSession: secondId });
    expect(moved).toMatchObject({
      turn: { sessionId: secondId },
      receipt: { rung: 'rehydrate', carried: 2, dropped: 0 },
    });
    for (const word of ['amber', 'birch']) expect(moved.reply).toContain(word);
    await refusedWith('refused', chat.ask(WHICH_CODEWORDS, { newSession: firstId }), /was used before/);

    // Another data home has no record of this session, but Claude has its transcript.
    const other = await open({ home: home.directory('other-home'), settings: home.settings });
    try {
      const requests = home.model.requests.length;
      const taken = other.conversation('taken', { cwd }).ask(WHICH_CODEWORDS, { newSession: secondId });
      await refusedWith('refused', taken, /the agent already has a session with this id/);
      const named = other.conversation('named', { cwd }).ask(WHICH_CODEWORDS, { newSession: 'not-a-uuid' });
      await refusedWith('refused', named, /UUID/);
      expect(home.model.requests).toHaveLength(requests);
      const free = other.conversation('free', { cwd });
      expect((await free.ask(FIRST, { newSession: freeId })).turn.sessionId).toBe(freeId);
    } finally {
      await other.close();
    }
  });
}
