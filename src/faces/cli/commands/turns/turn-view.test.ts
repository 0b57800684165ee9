import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { PublicEvent } from '../../../../core/public/event.ts';
import { retryUpdate, type Update } from '../../../../core/turn/update.ts';
import { Output } from '../../output.ts';
import { TurnView } from './turn-view.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const RETRY = retryUpdate({ attempt: 4, of: 10, inMs: 35_000, status: null, reason: null });
const said = (sessionUpdate: string, text: string) =>
  ({ sessionUpdate, messageId: 'm', content: { type: 'text', text } }) as unknown as Update;

test.each([
  ['thinks', said('agent_thought_chunk', 'Well …'), 'waiting for the agent …'],
  ['answers', said('agent_message_chunk', 'A line.\n'), 'waiting for the agent …'],
  ['has only set a title', { sessionUpdate: 'session_info_update', title: 'A title' } as Update, 'does not answer'],
])('at a terminal, what is shown of a retry when the agent %s', (_, update, shown) => {
  let stderr = '';
  const terminal = {
    isTTY: true,
    columns: 80,
    write: (text: string) => {
      stderr += text;
    },
    on: () => {},
  };
  const stdout = { ...terminal, write: () => {} };
  const output = new Output({ stdout, stderr: terminal, json: false, quiet: false, color: false });
  const view = new TurnView(output);
  const see = (one: Update) => view.see({ kind: 'turn.update', payload: { update: one } } as PublicEvent);
  see(RETRY);
  expect(stderr).toContain('The model’s API does not answer (attempt 4 of 10, next in 35 s)');
  see(update);
  stderr = '';
  vi.advanceTimersByTime(1_000);
  expect(stderr).toContain(shown);
  output.waitFor(null);
});
