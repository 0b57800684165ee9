import { expect, test } from 'vitest';
import {
  delayedBy,
  delayedElsewhere,
  fairest,
  isDelayed,
  type Loads,
  leavesFirst,
  SLOT_REASONS,
  type SlotLimits,
  shareOf,
  slotLimits,
  whyNoSlot,
} from './slots.ts';

const LIMITS: SlotLimits = { parallel: 4, perOwner: 3 };

/** `{ ann: [2, 1] }`: two turns of Ann run, and one waits for an answer. */
function loads(of: Record<string, readonly [number, number]>): Loads {
  const owners = Object.entries(of).map(([owner, [running, asking]]) => [owner, { running, asking }] as const);
  const sum = (which: 'running' | 'asking') => owners.reduce((all, [, load]) => all + load[which], 0);
  return { all: { running: sum('running'), asking: sum('asking') }, owners: new Map(owners) };
}

test.each<[string, Record<string, readonly [number, number]>, string | null]>([
  ['nothing runs', {}, null],
  ['others leave a slot', { bob: [3, 0] }, null],
  ['she has one less than she may', { ann: [2, 0] }, null],
  ['all slots are in use', { bob: [3, 0], cid: [1, 0] }, 'all_slots'],
  ['answered turns continued, and more run than the limit', { bob: [6, 0] }, 'all_slots'],
  ['she has as many as she may', { ann: [3, 0] }, 'owner_slots'],
  ['she has as many as she may, and all are in use', { ann: [3, 0], bob: [1, 0] }, 'owner_slots'],
  ['her turns wait, and hold no slot', { ann: [0, 2] }, null],
  ['her turns that wait have reached the limit', { ann: [0, 3] }, 'owner_questions'],
  ['many wait, of which one is hers', { ann: [0, 1], bob: [0, 3] }, 'owner_questions'],
  ['many wait, and none is hers', { bob: [0, 3], cid: [0, 3] }, null],
])('whether a turn of Ann may begin when %s', (_, of, reason) => {
  expect(whyNoSlot(loads(of), LIMITS, 'ann')).toBe(reason);
});

test.each<[string, readonly string[], Record<string, readonly [number, number]>, string, string | null]>([
  ['there is none', [], {}, '', null],
  ['the one with fewer running turns', ['ann', 'bob'], { ann: [2, 0], bob: [1, 0] }, '', 'bob'],
  ['the one with none', ['ann', 'bob'], { ann: [1, 0] }, '', 'bob'],
  ['questions do not count', ['ann', 'bob'], { ann: [0, 3], bob: [1, 0] }, '', 'ann'],
  ['the next one after who was served last', ['ann', 'bob', 'cid'], {}, 'ann', 'bob'],
  ['from the last one to the first', ['ann', 'bob', 'cid'], {}, 'cid', 'ann'],
  ['the last one, if nobody else waits', ['bob'], {}, 'bob', 'bob'],
  ['fewer comes before next', ['ann', 'bob'], { bob: [1, 0] }, 'ann', 'ann'],
])('who comes next: %s', (_, waiting, of, after, expected) => {
  expect(fairest(waiting, loads(of), after)).toBe(expected);
});

test('the share lists the owners that run turns, fewest first, and the owners at their limit', () => {
  const now = loads({ ann: [3, 0], bob: [2, 0], cid: [1, 0], dan: [1, 0], eve: [0, 8], fay: [0, 1] });
  expect(shareOf(now, { parallel: 9, perOwner: 3 }, 'cid')).toEqual({
    after: 'cid',
    busy: ['dan', 'cid', 'bob'],
    full: ['ann', 'eve', 'fay'],
  });
});

test('every owner is served within one round, however many turns the others have', () => {
  const left = new Map([
    ['ann', 500],
    ['bob', 1],
    ['cid', 20],
  ]);
  const served: string[] = [];
  for (let after = ''; served.length < 6; after = served.at(-1) as string) {
    const waiting = [...left].filter(([, n]) => n > 0).map(([owner]) => owner);
    const owner = fairest(waiting, loads({}), after) as string;
    left.set(owner, (left.get(owner) as number) - 1);
    served.push(owner);
  }
  expect(served).toEqual(['ann', 'bob', 'cid', 'ann', 'cid', 'ann']);
});

test.each<[string, readonly [string, number][], number, readonly string[]]>([
  ['nothing while there is room', [['ann', 1]], 1, []],
  ['the one that was idle longest', [['ann', 2], ['ann', 1], ['ann', 3]], 2, ['ann 1']], // biome-ignore format: a table
  ['of the owner who has most, not the oldest', [['bob', 1], ['ann', 2], ['ann', 3]], 2, ['ann 2']], // biome-ignore format: a table
  ['of equal owners, the one that was idle longest', [['bob', 2], ['ann', 1], ['cid', 3]], 2, ['ann 1']], // biome-ignore format: a table
  ['as many as are above the limit', [['bob', 1], ['ann', 2], ['ann', 3], ['ann', 4]], 1, ['ann 2', 'ann 3', 'bob 1']], // biome-ignore format: a table
  ['all', [['bob', 1], ['ann', 2]], 0, ['bob 1', 'ann 2']], // biome-ignore format: a table
])('which warm conversation loses its agent first: %s', (_, warm, most, leaving) => {
  const all = warm.map(([owner, since]) => ({ owner, since }));
  expect(leavesFirst(all, most).map(({ owner, since }) => `${owner} ${since}`)).toEqual(leaving);
});

test.each<[object, number, SlotLimits]>([
  [{}, 16, { parallel: 32, perOwner: 24 }],
  [{}, 1, { parallel: 4, perOwner: 3 }],
  [{}, 512, { parallel: 64, perOwner: 48 }],
  [{ parallel: 10 }, 1, { parallel: 10, perOwner: 8 }],
  [{ parallel: 1 }, 16, { parallel: 1, perOwner: 1 }],
  [{ perOwner: 2 }, 16, { parallel: 32, perOwner: 2 }],
])('the settings %j on a machine with %i GiB', (turns, gib, limits) => {
  expect(slotLimits(turns, gib * 2 ** 30)).toEqual(limits);
});

test('each reason says what to do', () => {
  const said = [
    ...SLOT_REASONS.map((reason) => delayedBy(reason, 7, { parallel: 1, perOwner: 3 })),
    delayedElsewhere(7),
  ];
  expect(said.every((why) => isDelayed(why) && why.hint !== '')).toBe(true);
  expect(said.map(({ message }) => message)).toEqual([
    'Turn 7 waits for a slot: 3 turns are running for its owner, which is the limit.',
    'Turn 7 waits for a slot: 1 turn is running, which is the limit.',
    'Turn 7 waits: too many turns of its owner wait for the answer to a permission question.',
    'Turn 7 waits in another process, which holds the conversation.',
  ]);
  expect(isDelayed({ reason: 'no_process' })).toBe(false);
});
