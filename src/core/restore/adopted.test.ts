import { expect, test } from 'vitest';
import { replyText } from '../turn/record.ts';
import { HistoryBuilder, unknownBefore } from './adopted.ts';

const said = (text: string) => ({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } }) as const;
const text = (words: string) => [{ type: 'text', text: words }];

/** `ask`, an answer or not, in order. */
function built(...steps: readonly (readonly ['ask' | 'say' | 'stop' | 'condense', string?])[]) {
  const history = new HistoryBuilder();
  for (const [at, [step, words = '']] of steps.entries()) {
    if (step === 'ask') history.prompt(text(words), at);
    if (step === 'say') history.update(said(words), at);
    if (step === 'stop') history.stopped();
    if (step === 'condense') history.condensed();
  }
  const { turns, ...rest } = history.history('9:z');
  const short = turns.map(({ prompt, parts, outcome }) => [
    (prompt[0] as { text: string }).text,
    replyText(parts),
    outcome,
  ]);
  return { turns: short, ...rest };
}

test('every prompt is a turn, with everything up to the next prompt', () => {
  expect(built(['say', 'banner'], ['ask', 'a'], ['say', 'A'], ['say', '!'], ['ask', 'b'], ['say', 'B'])).toEqual({
    turns: [
      ['a', 'A!', 'completed'],
      ['b', 'B', 'completed'],
    ],
    unknownBefore: false,
    condensed: 0,
    position: '9:z',
  });
});

test('a prompt without an answer, and one that was stopped, did not complete', () => {
  const { turns } = built(['ask', 'a'], ['ask', 'b'], ['say', 'B'], ['stop'], ['ask', 'c'], ['say', 'C']);
  expect(turns.map(([, , outcome]) => outcome)).toEqual(['interrupted', 'interrupted', 'completed']);
});

test.each([
  [
    'with the turns before it',
    [['ask', 'a'], ['say', 'A'], ['condense'], ['ask', 'b']],
    { condensed: 1, unknownBefore: false },
  ],
  [
    'in the middle of a turn, which continues',
    [['ask', 'a'], ['say', 'A'], ['ask', 'b'], ['say', 'B'], ['condense'], ['say', '!']],
    { condensed: 2, unknownBefore: false, turns: [expect.anything(), ['b', 'B!', 'completed']] },
  ],
  [
    'before the answer',
    [['ask', 'a'], ['say', 'A'], ['ask', 'b'], ['condense'], ['say', 'B']],
    { condensed: 1, unknownBefore: false, turns: [expect.anything(), ['b', 'B', 'completed']] },
  ],
  ['without them', [['condense'], ['ask', 'b']], { condensed: 0, unknownBefore: true }],
] as const)('a summary %s', (_, steps, expected) => {
  expect(built(...steps)).toMatchObject(expected);
});

test('of a history that is too long the newest turns are kept, and it is marked as cut', () => {
  const history = new HistoryBuilder();
  for (let n = 1; n <= 70; n += 1) {
    history.prompt(text(`${n}`), n);
    history.update(said('x'.repeat(1024 * 1024)), n);
    if (n === 10) history.condensed();
  }
  const { turns, unknownBefore: unknown, condensed } = history.history(null);
  expect(turns.length).toBeGreaterThan(50);
  expect(turns.length).toBeLessThan(70);
  expect(turns.at(-1)?.prompt).toEqual(text('70'));
  expect({ unknown, condensed }).toEqual({ unknown: true, condensed: Math.max(0, 10 - (70 - turns.length)) });
});

test.each([
  ['nothing that a prompt can hold', [{ type: 'text', text: '' }], [{ type: 'text', text: '[a prompt without text]' }]],
  ['a block of another kind', [{ type: 'thing' }, ...text('a')], [...text('[thing]'), ...text('a')]],
  ['an unpaired surrogate', text('a\ud800'), text('a\ufffd')],
])('a prompt with %s is kept as far as it can be', (_, blocks, expected) => {
  const history = new HistoryBuilder();
  history.prompt(blocks, 1);
  expect(history.history(null).turns[0]?.prompt).toEqual(expected);
});

test('a session lacks unreadable turns, unless they are its own or those of a session that it continues', () => {
  const parts = [
    { n: 1, agent: 'a', sessionId: 'one' },
    { n: 7, agent: 'b', sessionId: 'two' },
  ];
  expect(unknownBefore([], 'a', ['one'])).toBeNull();
  expect(unknownBefore(parts.slice(0, 1), 'a', ['one'])).toBeNull();
  expect(unknownBefore(parts.slice(0, 1), 'a', ['later', 'one'])).toBeNull();
  expect(unknownBefore(parts, 'a', ['one'])).toBe(7);
  expect(unknownBefore(parts, 'b', ['two'])).toBe(1);
  expect(unknownBefore(parts, 'a', [])).toBe(7);
  expect(unknownBefore(parts.slice(0, 1), 'b', ['one'])).toBe(1);
});

test('of a turn with something that is nested too deep the part before it is read, and the turn did not complete', () => {
  const deep: unknown = JSON.parse(`${'['.repeat(20_000)}${']'.repeat(20_000)}`);
  const history = new HistoryBuilder();
  history.prompt([...text('a'), { type: 'odd', data: deep }], 0);
  history.update(said('A'), 1);
  history.update({ sessionUpdate: 'tool_call', toolCallId: 't', title: 'dig', rawOutput: deep } as never, 2);
  history.update(said('after'), 3);
  history.prompt(text('b'), 4);
  history.update(said('B'), 5);
  const { turns } = history.history(null);
  expect(turns).toMatchObject([
    { prompt: [...text('a'), ...text('[odd]')], parts: [{ type: 'text', text: 'A' }], outcome: 'interrupted' },
    { outcome: 'completed' },
  ]);
  expect(turns[0]?.failure?.message).toContain('nested deeper than 200 levels');
});
