import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { compareTold, type RepeatedMessage, type ToldTurn } from './told.ts';

const turn = (n: number, prompt: string, reply: string | null, more: Partial<ToldTurn> = {}): ToldTurn => ({
  n,
  prompt: [{ type: 'text', text: prompt }],
  block: null,
  reply,
  certain: true,
  ...more,
});
const person = (text: string, ...blocks: string[]): RepeatedMessage => ({ who: 'person', text, blocks });
const agent = (text: string): RepeatedMessage => ({ who: 'agent', text, blocks: [] });
const summary = (text: string): RepeatedMessage => ({ who: 'summary', text, blocks: [] });

const TOLD = [turn(1, 'Say one.', 'one'), turn(2, 'Say two.', 'two'), turn(3, 'Say one.', 'one again')];
const REPEATED = [
  person('Say one.'),
  agent('one'),
  person('Say two.'),
  agent('two'),
  person('Say one.'),
  agent('one again'),
];

test('all of it, in order, is consistent; however it is spaced and cut', () => {
  expect(compareTold(REPEATED, TOLD).kind).toBe('consistent');
  const cut = REPEATED.flatMap((message) =>
    message.who === 'agent' ? [...message.text].map(agent) : [{ ...message, text: `\n ${message.text}  ` }],
  );
  expect(compareTold(cut, TOLD).kind).toBe('consistent');
  expect(compareTold([], []).kind).toBe('consistent');
});

describe('what a loaded session may lack', () => {
  test.each([
    ['everything', []],
    ['everything, for it is another conversation', [person('Hello.'), agent('Hello.')]],
    ['its beginning', REPEATED.slice(2)],
    ['its middle', [...REPEATED.slice(0, 2), ...REPEATED.slice(4)]],
    ['its end', REPEATED.slice(0, 4)],
    ['its last answer', REPEATED.slice(0, 5)],
    ['the beginning of an answer, and so all of it', [...REPEATED.slice(0, 5), agent('one')]],
    ['the order', [...REPEATED.slice(2, 4), ...REPEATED.slice(0, 2), ...REPEATED.slice(4)]],
  ])('%s', (_, repeated) => {
    expect(compareTold(repeated, TOLD).kind).toBe('lacking');
  });

  test('the block that was put before a prompt', () => {
    const told = [turn(4, 'Go on.', 'yes', { block: 'abc' })];
    expect(compareTold([person('… Go on.', 'abc'), agent('yes')], told).kind).toBe('consistent');
    expect(compareTold([person('… Go on.'), agent('yes')], told).kind).toBe('lacking');
    expect(compareTold([person('… Go on.', 'abd'), agent('yes')], told).kind).toBe('lacking');
  });
});

test('more than we sent is beyond; what did not complete may be there or not, with whatever came of it', () => {
  const more = [...REPEATED, person('Say three.'), agent('three')];
  expect(compareTold(more, TOLD)).toEqual({ kind: 'beyond', detail: 'it has 1 more prompt than we sent' });
  const broken = [...TOLD, turn(4, 'Say three.', null, { certain: false })];
  for (const repeated of [REPEATED, [...REPEATED, person('Say three.')], more]) {
    expect(compareTold(repeated, broken).kind).toBe('consistent');
  }
});

test('messages of nobody in between are no fault, nor is a prompt that an attempt has left', () => {
  const repeated = [...REPEATED.slice(0, 2), person('Caveat.'), person('Say two.'), ...REPEATED.slice(2)];
  expect(compareTold(repeated, TOLD).kind).toBe('consistent');
});

test('what somebody else asked between two turns of ours, and was answered, is beyond as well', () => {
  const theirs = [person('Say four.'), agent('four')];
  const between = [...REPEATED.slice(0, 2), ...theirs, ...REPEATED.slice(2)];
  expect(compareTold(between, TOLD)).toEqual({ kind: 'beyond', detail: 'it has 1 more prompt than we sent' });
  // A command of ours may be repeated in other words, and what did not complete may have been gone on with.
  const [one, two, three] = TOLD as [ToldTurn, ToldTurn, ToldTurn];
  const ours = turn(2, '/four', 'four');
  expect(compareTold(between, [one, ours, { ...two, n: 3 }, { ...three, n: 4 }]).kind).toBe('consistent');
  expect(compareTold(between, [{ ...one, certain: false }, two, three]).kind).toBe('consistent');
  // What came before the first of ours was there when we took the session over.
  expect(compareTold([...theirs, ...REPEATED], TOLD).kind).toBe('consistent');
});

test('what a summary stands for need not be repeated, and all since then must be', () => {
  const summed = [summary('One and two were said.'), ...REPEATED.slice(4)];
  expect(compareTold(summed, TOLD).kind).toBe('consistent');
  expect(compareTold([summary('Of nothing.')], TOLD).kind).toBe('lacking');
  expect(compareTold([...REPEATED.slice(4), summary('Later.')], TOLD).kind).toBe('lacking');
});

test('an answer that was said twice because its stream broke is kept once', () => {
  const told = [turn(1, 'Count.', 'chunk 1 chunk 1 chunk 2')];
  expect(compareTold([person('Count.'), agent('chunk 1 chunk 2')], told).kind).toBe('consistent');
});

test('where nothing has to be there, nothing is shown by it', () => {
  const told = [turn(1, '/init', 'done'), turn(2, 'Go on.', null, { certain: false })];
  expect(compareTold([], told)).toEqual({ kind: 'consistent', found: 0 });
  expect(compareTold([person('Go on.')], told)).toEqual({ kind: 'consistent', found: 1 });
  expect(compareTold(REPEATED, TOLD)).toEqual({ kind: 'consistent', found: 3 });
});

test('commands to the agent and pictures are not looked for', () => {
  const picture = turn(2, '', 'seen', { prompt: [{ type: 'image', data: '', mimeType: 'image/png' }] });
  expect(compareTold(REPEATED.slice(0, 2), [TOLD[0] as ToldTurn, turn(2, '/compact', 'done'), picture]).kind).toBe(
    'consistent',
  );
});

test('any history that is repeated is consistent, and without any one of its turns it is not', () => {
  const words = fc.uniqueArray(
    fc.string({ minLength: 1 }).filter((text) => /^[^\s/]/.test(text)),
    {
      minLength: 2,
      maxLength: 8,
      // None may be found within another one.
      comparator: (a, b) => a.includes(b) || b.includes(a),
    },
  );
  fc.assert(
    fc.property(words, fc.nat(), (texts, at) => {
      const told = texts.map((text, i) => turn(i + 1, text, `re: ${text}`));
      const exchanges = texts.map((text) => [person(text), agent(`re: ${text}`)]);
      expect(compareTold(exchanges.flat(), told).kind).toBe('consistent');
      const cut = exchanges.toSpliced(at % exchanges.length, 1);
      expect(compareTold(cut.flat(), told).kind).toBe('lacking');
    }),
  );
});
