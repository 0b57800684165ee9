import { expect, test } from 'vitest';
import { type Loss, lossInWords, lostInWords } from './loss.ts';

const loss: Loss = { noticedAt: 0, kind: 'tail', events: 3, changes: 0, conversations: [] };
const lost = { conversationId: 'c', key: null, had: { seq: 9, turns: 2 }, has: null };

test.each<[Partial<Loss>, string]>([
  [{ conversations: [lost] }, 'Stored data is missing: 3 events of 1 conversation.'],
  [{ events: 1 }, 'Stored data is missing: 1 event.'],
  [{ events: 0, changes: 1 }, 'Stored data is missing: 1 other change.'],
  [
    { changes: 2, conversations: [lost, lost] },
    'Stored data is missing: 3 events of 2 conversations and 2 other changes.',
  ],
  [
    { kind: 'other', conversations: [lost] },
    'The data file is not the one that was used here before. The earlier file had at least 3 events of 1 conversation.',
  ],
])('the sentence states how much is missing: %j', (set, words) => {
  expect(lossInWords({ ...loss, ...set })).toBe(words);
});

test.each([
  [null, 'It had 2 turns (9 events), and nothing of it is left.'],
  [{ seq: 5, turns: 1 }, 'Events 6 to 9 are missing: it had 2 turns (9 events), and 1 turn (5 events) is left.'],
  [{ seq: 8, turns: 2 }, 'Event 9 is missing: it had 2 turns (9 events), and 2 turns (8 events) are left.'],
])('states what is missing of a conversation of which %j is left', (has, words) => {
  expect(lostInWords({ ...lost, has })).toBe(words);
});
