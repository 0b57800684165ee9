import { expect, test } from 'vitest';
import { isHeld, isLeftInTheMiddle, isTakenBy, type RunnerFacts, type Standing, whyStranded } from './standing.ts';

const PROCESS = { pid: 1, started: '1', boot: 'b', namespace: 'n' };
const STANDING: Standing = {
  owner: 'ann',
  conversation: 'c-1',
  key: 'notes',
  driver: 'worker',
  place: 'p-1',
  home: '/data',
  turn: { id: 't-2', n: 2, state: 'queued', agent: 'claude' },
  holder: null,
};
const NOBODY: RunnerFacts = {
  held: false,
  taken: false,
  here: true,
  known: true,
  store: 'sqlite:/data/throughline.db',
};

test.each<[string, Partial<Standing>, Partial<RunnerFacts>, string | null, string]>([
  ['held by a process', {}, { held: true }, null, ''],
  ['taken up by a process', {}, { taken: true }, null, ''],
  ['taken up elsewhere', {}, { taken: true, here: false, known: false }, null, ''],
  ['queued by another program', { driver: 'tracker' }, {}, null, ''],
  [
    'left by another program',
    { driver: 'tracker', turn: { ...STANDING.turn, state: 'running' } },
    {},
    'no_process',
    'The program that tracks turn 2',
  ],
  [
    'held by another program',
    { driver: 'tracker', turn: { ...STANDING.turn, state: 'running' } },
    { held: true },
    null,
    '',
  ],
  ['queued', {}, {}, 'no_process', 'No process runs turn 2 now.'],
  ['of another home', {}, { here: false }, 'other_home', 'Turn 2 runs only at the data home /data, and no process'],
  ['of a nameless home', { home: null }, { here: false }, 'other_home', 'the data home with the place p-1'],
  ['for an unknown agent', {}, { known: false }, 'no_agent', 'for the agent "claude", which is not available here'],
  ['of another home, for an unknown agent', {}, { here: false, known: false }, 'other_home', 'runs only at'],
])('a turn that is %s', (_, standing, facts, reason, message) => {
  const stranded = whyStranded({ ...STANDING, ...standing }, { ...NOBODY, ...facts });
  expect(stranded?.reason ?? null).toBe(reason);
  expect(stranded?.message ?? '').toContain(message);
});

test('the command that runs the turn names the conversation as a shell takes it', () => {
  const hint = whyStranded({ ...STANDING, key: 'my notes' }, NOBODY)?.hint;
  expect(hint).toContain('the next "throughline send \'my notes\' …" runs it.');
});

test.each([
  ['/data', 'postgres://ann@db/all', 'Start "throughline serve --home /data --store postgres://ann@db/all".'],
  ['/my data', 'sqlite:/x.db', 'Start "throughline serve --home \'/my data\' --store sqlite:/x.db".'],
  [null, 'postgres://db/all', 'Start "throughline serve --store postgres://db/all" there.'],
])('the command for the data home %s and the store %s is complete', (home, store, hint) => {
  expect(whyStranded({ ...STANDING, home }, { ...NOBODY, here: false, store })?.hint).toContain(hint);
});

test('the reason says that the process of a running turn has ended', () => {
  const running: Standing = { ...STANDING, turn: { ...STANDING.turn, state: 'waiting' } };
  expect(whyStranded(running, NOBODY)).toMatchObject({ message: expect.stringContaining('could not be recorded') });
  expect(isLeftInTheMiddle(running, false)).toBe(true);
  expect(isLeftInTheMiddle(running, true)).toBe(false);
  expect(isLeftInTheMiddle({ ...running, driver: 'tracker' }, false)).toBe(false);
  expect(isLeftInTheMiddle(STANDING, false)).toBe(false);
});

test.each([
  ['alive', false, true],
  ['alive', true, true],
  ['dead', false, false],
  ['unknown', false, true],
  ['unknown', true, false],
] as const)('a holder that is %s, its lease expired: %s, holds it: %s', (status, expired, held) => {
  expect(isHeld({ ...STANDING, holder: { id: 'w', process: PROCESS, expired } }, () => status)).toBe(held);
});

test.each([
  [{ place: 'p-1', agents: ['claude'] }, 'alive', true],
  [{ place: 'p-1', agents: ['claude'] }, 'dead', false],
  [{ place: 'p-1', agents: ['claude'] }, 'unknown', true],
  [{ place: 'p-1', agents: ['claude'], quietMs: 180_000 }, 'unknown', false],
  [{ place: 'p-1', agents: ['claude'], quietMs: 180_000 }, 'alive', true],
  [{ place: 'p-1', agents: ['codex'] }, 'alive', false],
  [{ place: 'p-2', agents: ['claude'] }, 'alive', false],
] as const)('a process with %o that is %s takes it up: %s', (takes, status, taken) => {
  const takers = [{ quietMs: 1_000, ...takes, process: PROCESS }];
  expect(isTakenBy(STANDING, takers, () => status)).toBe(taken);
  if (takes.place === 'p-2') expect(isTakenBy({ ...STANDING, place: 'any' }, takers, () => status)).toBe(true);
});
