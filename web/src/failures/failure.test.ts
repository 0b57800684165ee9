import type { Turn } from 'throughline/client';
import { expect, test } from 'vitest';
import { failureWords } from './failure.ts';

const SENT = { attempt: 1, rung: 'live', delivered: null, at: 0 } as const;
const failed = (code: string, message = 'Broken pipe', rest: object = {}) =>
  ({ state: 'failed', attempt: 1, sent: SENT, failure: { code, message }, ...rest }) as Turn;
const said = (turn: Turn) => {
  const words = failureWords(turn, 'Codex');
  return words === null ? null : [words.title, ...words.facts].join(' ');
};

test.each([
  [failed('signed_out'), 'Not answered: Codex’s sign-in has expired or is missing. Your prompt is kept.'],
  [
    failed('agent_failed', 'Broken pipe', { attempt: 2 }),
    'Not answered: Codex reported an error. Your prompt is kept. Broken pipe. Tried twice.',
  ],
  [
    failed('restore_failed', 'x', { sent: null }),
    'Not sent: no session could be given the history. Your prompt is kept; it was not sent.',
  ],
  [
    failed('interrupted', 'x', { state: 'interrupted' }),
    'Interrupted: how it ended is not known. Your prompt is kept. What Codex said and did until then is kept above. It may have done more.',
  ],
  [failed('internal', 'A bug.'), 'Not answered. Your prompt is kept. A bug.'],
  [{ ...failed('cancelled'), state: 'cancelled' } as Turn, null],
  [{ ...failed('internal'), state: 'completed', failure: null } as Turn, null],
])('%#', (turn, words) => {
  expect(said(turn)).toBe(words);
});
