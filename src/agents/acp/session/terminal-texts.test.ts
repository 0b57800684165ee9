import { expect, test } from 'vitest';
import type { Update } from '../../../core/turn/update.ts';
import { TerminalTexts } from './terminal-texts.ts';

const shows = (toolCallId: string, ...terminals: string[]): Update => ({
  sessionUpdate: 'tool_call_update',
  toolCallId,
  content: terminals.map((terminalId) => ({ type: 'terminal', terminalId })),
});
const text = (value: string) => ({ type: 'content', content: { type: 'text', text: value } });
const ids = (updates: Iterable<Update>) => [...updates].map((update) => (update as { toolCallId?: string }).toolCallId);
const numbers = Array.from({ length: 150 }, (_, n) => `${n}`);

test('the text of terminals is sent once, when all terminals of a call are released', () => {
  const texts = new TerminalTexts();
  texts.see(shows('call', 'a', 'b'));
  texts.released('a', 'of a');
  expect([...texts.complete()]).toEqual([]);
  texts.released('b', 'of b');
  expect([...texts.complete()]).toMatchObject([{ toolCallId: 'call', content: [text('of a'), text('of b')] }]);
  expect([...texts.rest(() => '')]).toEqual([]);
});

test('a terminal that a call shows many times is sent once', () => {
  const texts = new TerminalTexts();
  texts.see(shows('call', ...numbers.map(() => 'a'), 'b'));
  expect([...texts.rest((id) => `of ${id}`)]).toMatchObject([{ content: [text('of a'), text('of b')] }]);
});

test('of tool calls without terminals, the newest are kept', () => {
  const texts = new TerminalTexts();
  for (const n of numbers) texts.see(shows(n, 'none'));
  expect(ids(texts.rest(() => 'all'))).toEqual(numbers.slice(-100));
});

test('of terminals without tool calls, the newest are kept', () => {
  const texts = new TerminalTexts();
  for (const n of numbers) texts.released(n, n);
  for (const n of ['49', '50']) texts.see(shows(n, n));
  expect(ids(texts.complete())).toEqual(['50']);
});
