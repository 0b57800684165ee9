import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { shorten } from '../turn/shorten.ts';
import type { RepeatedMessage } from './repeated-exchange.ts';
import { compareTold, type ToldTurn } from './told.ts';

const turn = (n: number, prompt: string, reply: string | null, more: Partial<ToldTurn> = {}): ToldTurn => ({
  n,
  prompt: [{ type: 'text', text: prompt }],
  block: null,
  reply,
  certain: true,
  ...more,
});
const person = (text: string, ...blocks: string[]): RepeatedMessage => ({
  who: 'person',
  text,
  blocks,
  beside: text,
  media: 0,
});
const agent = (text: string): RepeatedMessage => ({ who: 'agent', text, blocks: [], beside: text, media: 0 });
const note = (text: string): RepeatedMessage => ({ who: 'note', text, blocks: [], beside: text, media: 0 });
const summary = (text: string): RepeatedMessage => ({ who: 'summary', text, blocks: [], beside: text, media: 0 });

const TOLD = [turn(1, 'Say one.', 'one'), turn(2, 'Say two.', 'two'), turn(3, 'Say one.', 'one again')];
const REPEATED = [
  person('Say one.'),
  agent('one'),
  person('Say two.'),
  agent('two'),
  person('Say one.'),
  agent('one again'),
];

test('a history with all turns in order is consistent, whatever its spacing and chunks', () => {
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

test('more prompts than we sent give "beyond"; a turn that did not complete may be there or not', () => {
  const more = [...REPEATED, person('Say three.'), agent('three')];
  expect(compareTold(more, TOLD)).toEqual({ kind: 'beyond', detail: 'it has 1 more prompt than we sent' });
  const broken = [...TOLD, turn(4, 'Say three.', null, { certain: false })];
  for (const repeated of [REPEATED, [...REPEATED, person('Say three.')], more]) {
    expect(compareTold(repeated, broken).kind).toBe('consistent');
  }
});

test('unknown messages in between are accepted, and a prompt that a failed attempt left', () => {
  const repeated = [...REPEATED.slice(0, 2), person('Caveat.'), person('Say two.'), ...REPEATED.slice(2)];
  expect(compareTold(repeated, TOLD).kind).toBe('consistent');
});

test('an answered prompt of another client between two of our turns gives "beyond" as well', () => {
  const theirs = [person('Say four.'), agent('four')];
  const between = [...REPEATED.slice(0, 2), ...theirs, ...REPEATED.slice(2)];
  expect(compareTold(between, TOLD)).toEqual({ kind: 'beyond', detail: 'it has 1 more prompt than we sent' });
  // Our command may be repeated in other words.
  const [one, two, three] = TOLD as [ToldTurn, ToldTurn, ToldTurn];
  const ours = turn(2, '/four', 'four');
  expect(compareTold(between, [one, ours, { ...two, n: 3 }, { ...three, n: 4 }]).kind).toBe('consistent');
  // Anything before our first turn was there when we adopted the session.
  expect(compareTold([...theirs, ...REPEATED], TOLD).kind).toBe('consistent');
});

describe('after a turn that did not complete', () => {
  const [one, two, three] = TOLD as [ToldTurn, ToldTurn, ToldTurn];
  const broken = turn(2, 'Say two.', null, { certain: false });
  const theirs = [person('Say four.'), agent('four')];

  test.each([
    ['it was kept with a part of its answer', [person('Say two.'), agent('t')]],
    ['it was kept without an answer', [person('Say two.')]],
    ['it was not kept', []],
    ['the agent made a note of it', [person('Say two.'), note('[It was stopped.]'), agent('No answer.')]],
  ])('a prompt of another client is found, and nothing else is mistaken for one: %s', (_, left) => {
    const was = [...REPEATED.slice(0, 2), ...left];
    expect(compareTold(was, [one, broken]).kind).toBe('consistent');
    expect(compareTold([...was, ...theirs], [one, broken])).toEqual({
      kind: 'beyond',
      detail: 'it has 1 more prompt than we sent',
    });
    expect(compareTold([...was, person('Say four.')], [one, broken]).kind).toBe('beyond');
    const after = [person('Say one.'), agent('one again')];
    expect(compareTold([...was, ...after], [one, broken, three]).kind).toBe('consistent');
    expect(compareTold([...was, ...theirs, ...after], [one, broken, three]).kind).toBe('beyond');
  });

  test('also when it was the first', () => {
    const first = turn(1, 'Say one.', null, { certain: false });
    expect(compareTold([person('Say one.')], [first])).toEqual({ kind: 'consistent', found: 1, condensedTo: 0 });
    expect(compareTold([person('Say one.'), ...theirs], [first]).kind).toBe('beyond');
    expect(compareTold([person('Say one.'), ...theirs, ...REPEATED.slice(2, 4)], [first, two]).kind).toBe('beyond');
    // Anything before our first turn was there when we adopted the session.
    expect(compareTold([...theirs, person('Say one.')], [first]).kind).toBe('consistent');
  });

  test('two prompts that an agent joins, because nothing came between them, are both found', () => {
    const was = REPEATED.slice(0, 2);
    const joined = (...texts: string[]) => [...was, person(texts.join('')), agent('one again')];
    expect(compareTold(joined('Say two.', 'Say one.'), [one, broken, three])).toEqual({
      kind: 'consistent',
      found: 2,
      condensedTo: 0,
    });
    expect(compareTold(joined('Say two.', 'Say two.'), [one, broken]).kind).toBe('consistent');
    expect(compareTold(joined('Say two.', 'Say four.'), [one, broken]).kind).toBe('beyond');
    expect(compareTold([...was, person('Say two.Say four.')], [one, broken]).kind).toBe('beyond');
    // If the agent adds its own text to each prompt, other text in a prompt proves nothing.
    const dated = [person('(Monday) Say one.'), agent('one'), person('(Monday) Say two.'), agent('t')];
    expect(compareTold(dated, [one, broken]).kind).toBe('consistent');
  });

  test('a command or an image explains one unknown prompt, not several', () => {
    const image = { type: 'image', data: '', mimeType: 'image/png' } as const;
    for (const lost of [turn(2, '/two', null, { certain: false }), { ...broken, prompt: [image] }]) {
      expect(compareTold([...REPEATED.slice(0, 2), ...theirs], [one, lost]).kind).toBe('consistent');
      expect(compareTold([...REPEATED.slice(0, 2), ...theirs, ...theirs], [one, lost]).kind).toBe('beyond');
    }
    const shown = { ...broken, prompt: [...broken.prompt, image] };
    expect(compareTold([...REPEATED.slice(0, 2), person('Say two. (a picture)'), agent('t')], [one, shown]).kind).toBe(
      'consistent',
    );
    expect(compareTold([...REPEATED.slice(0, 2), person('Say two.'), agent('t'), ...theirs], [one, shown]).kind).toBe(
      'beyond',
    );
  });

  test('our block before a prompt is recognised, and a block of others is not', () => {
    const retold = { ...broken, block: 'abc' };
    const was = REPEATED.slice(0, 2);
    expect(compareTold([...was, person('Say two.', 'abc'), agent('t')], [one, retold]).kind).toBe('consistent');
    expect(compareTold([...was, person('Say two.', 'abd'), agent('t')], [one, retold]).kind).toBe('beyond');
  });
});

test.each<[string, RepeatedMessage[], number]>([
  ['no summary', REPEATED, 0],
  ['turns that it replaces', [summary('One and two were said.'), ...REPEATED.slice(4)], 2],
  ['turns that are repeated before it', [...REPEATED.slice(0, 4), summary('So far.'), ...REPEATED.slice(4)], 2],
  ['all of them', [...REPEATED, summary('All in all.')], 3],
  ['the newest counts', [summary('One.'), ...REPEATED.slice(2, 4), summary('Two.'), ...REPEATED.slice(4)], 2],
])('a summary shows which turns the agent has condensed: %s', (_, repeated, condensedTo) => {
  expect(compareTold(repeated, TOLD)).toMatchObject({ kind: 'consistent', condensedTo });
});

test('summarised turns need not be repeated, and all later turns must be', () => {
  const summed = [summary('One and two were said.'), ...REPEATED.slice(4)];
  expect(compareTold(summed, TOLD).kind).toBe('consistent');
  expect(compareTold([summary('Of nothing.')], TOLD).kind).toBe('lacking');
  expect(compareTold([...REPEATED.slice(4), summary('Later.')], TOLD).kind).toBe('lacking');
});

test('an answer that was sent twice because its stream broke is kept once', () => {
  const told = [turn(1, 'Count.', 'chunk 1 chunk 1 chunk 2')];
  expect(compareTold([person('Count.'), agent('chunk 1 chunk 2')], told).kind).toBe('consistent');
});

test('a history in which no turn is required proves nothing', () => {
  const told = [turn(1, '/init', 'done'), turn(2, 'Go on.', null, { certain: false })];
  expect(compareTold([], told)).toEqual({ kind: 'consistent', found: 0, condensedTo: 0 });
  expect(compareTold([person('Go on.')], told)).toEqual({ kind: 'consistent', found: 1, condensedTo: 0 });
  expect(compareTold(REPEATED, TOLD)).toEqual({ kind: 'consistent', found: 3, condensedTo: 0 });
});

test('commands to the agent are not looked for', () => {
  expect(compareTold(REPEATED.slice(0, 2), [TOLD[0] as ToldTurn, turn(2, '/compact', 'done')]).kind).toBe('consistent');
});

describe('the content of a prompt besides its text', () => {
  const image = { type: 'image', data: 'AAAA', mimeType: 'image/png' } as const;
  const file = { type: 'resource', resource: { uri: 'file:///notes', text: 'The door\n is red.' } } as const;
  const blob = { type: 'resource', resource: { uri: 'file:///a.png', blob: 'AAAA', mimeType: 'image/png' } } as const;
  const told = (...more: ToldTurn['prompt']) => [
    turn(1, 'Look.', 'seen', { prompt: [{ type: 'text', text: 'Look.' }, ...more] }),
  ];
  const shown = (text: string, media = 0) => [{ ...person(text), media }, agent('seen')];

  test.each<[string, RepeatedMessage[], ToldTurn[]]>([
    ['an image as an image', shown('Look.', 1), told(image)],
    ['an image as a link', shown('Look.[@image](data:image/png;base64,AAAA)'), told(image)],
    ['an image as a message after the text', [person('Look.'), ...shown('', 1)], told(image)],
    ['an image as a message before the text', [{ ...person(''), media: 1 }, ...shown('Look.')], told(image)],
    ['an image in a file', shown('Look.[@a.png](file:///a.png)', 1), told(blob)],
    ['a file as text around it', shown('Look.\n<context ref="file:///notes">\nThe door is red.</context>'), told(file)],
    ['a file before the text', shown('@file:///notes The door is red. Look.'), told(file)],
    ['images of a block before it', shown('Look.', 2), [{ ...(told()[0] as ToldTurn), images: 2 }]],
    ['nothing, because a summary replaces it', [...shown('Look.'), summary('It looked.')], told(image, file)],
  ])('is found: %s', (_, repeated, turns) => {
    expect(compareTold(repeated, turns).kind).toBe('consistent');
  });

  test.each<[string, RepeatedMessage[], ToldTurn[], RegExp]>([
    ['an image', shown('Look.'), told(image), /^turn 1 is repeated without an image or a sound$/],
    ['one of two', shown('Look.', 1), told(image, image), /without an image/],
    [
      'an image that only the file mentions',
      shown('Look. An image.'),
      told(image, { ...file, resource: { uri: 'x:', text: 'An image.' } }),
      /without an image/,
    ],
    ['the text of a file', shown('@file:///notes Look.'), told(file), /without the text of file:\/\/\/notes$/],
    ['images of a block before it', shown('Look.'), [{ ...(told()[0] as ToldTurn), images: 2 }], /without 2 images/],
  ])('is missed: %s', (_, repeated, turns, detail) => {
    const compared = compareTold(repeated, turns);
    expect(compared).toMatchObject({ kind: 'lacking', what: 'content' });
    expect(compared).toMatchObject({ detail: expect.stringMatching(detail) });
  });

  test('a prompt that is nothing but an image must be there as well', () => {
    const only = [...TOLD.slice(0, 1), turn(2, '', 'seen', { prompt: [image] })];
    expect(compareTold(REPEATED.slice(0, 2), only)).toMatchObject({ kind: 'lacking', what: 'turn' });
    expect(compareTold([...REPEATED.slice(0, 2), ...shown('', 1)], only).kind).toBe('consistent');
  });
});

test('a prompt that a replay has shortened is recognised, and another is not', () => {
  const long = `begin ${'x '.repeat(5_000)} end`;
  const replayed = [turn(1, long, null, { replayed: true })];
  expect(compareTold([person(shorten(long, 500)), agent('ok')], replayed).kind).toBe('consistent');
  expect(compareTold([person(shorten(`other ${long}`, 500)), agent('ok')], replayed).kind).toBe('lacking');
  expect(compareTold([person(shorten(long, 500)), agent('ok')], [turn(1, long, null)]).kind).toBe('lacking');
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
