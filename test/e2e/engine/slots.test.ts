import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { PublicTurn } from '../../../src/core/public/turn.ts';
import type { Throughline } from '../../../src/index.ts';
import type { Engine } from '../../../src/ports/engine.ts';
import { ended, event, expectSound, until } from '../support/conversations.ts';
import { Home, type Tuning } from '../support/home.ts';
import { sentTo } from '../support/stored.ts';

/** A turn with this prompt runs until `finish` is called for it. */
const WAIT = '/await go\n/say Done.';
const SERVER = { claims: 'all' } as const;

interface Owners {
  readonly tl: Throughline;
  readonly ann: Engine;
  readonly bob: Engine;
}

async function open(home: Home, tuning: Tuning): Promise<Owners> {
  const tl = await home.open({ ...SERVER, ...tuning });
  return { tl, ann: tl.engine.as('ann'), bob: tl.engine.as('bob') };
}

/** The verbs that the engine of another process has as well. */
type Submits = { ensure: Engine['ensure']; submit: Engine['submit'] };

async function submit(engine: Submits, key: string, prompt = WAIT): Promise<PublicTurn> {
  const { id } = await engine.ensure({ key });
  return (await engine.submit(id, prompt)).turn;
}

async function submitAll(engine: Submits, keys: readonly string[], prompt = WAIT): Promise<PublicTurn[]> {
  const turns: PublicTurn[] = [];
  for (const key of keys) turns.push(await submit(engine, key, prompt));
  return turns;
}

function finish(home: Home, { conversationId }: PublicTurn): void {
  const work = join(home.sandboxes, conversationId, 'work');
  if (!existsSync(work)) mkdirSync(work, { recursive: true });
  writeFileSync(join(work, 'go'), '');
}

/** The ids of the turns of all owners, in the order in which they have begun. */
function begunTurns(home: Home): string[] {
  const rows = home.query<{ id: string }>(
    "SELECT t.id FROM events e JOIN turns t ON t.no = e.turn WHERE e.kind = 'turn.started' ORDER BY e.no",
  );
  return rows.map(({ id }) => id);
}

const untilBegun = (home: Home, ...turns: readonly PublicTurn[]) =>
  until('the turns have begun', () => turns.every(({ id }) => begunTurns(home).includes(id)));

test('an owner with many conversations does not delay another owner, whose turn begins before the remaining ones', async () => {
  await using home = new Home();
  const { ann, bob } = await open(home, { maxRunning: 2, maxRunningPerOwner: 2 });
  const many = await submitAll(ann, ['a1', 'a2', 'a3', 'a4', 'a5']);
  const [a1, a2, a3] = many as [PublicTurn, PublicTurn, PublicTurn];
  await untilBegun(home, a1, a2);
  const b1 = await submit(bob, 'b1', '/say Hello.');
  const why = {
    reason: 'all_slots',
    message: 'Turn 1 waits for a slot: 2 turns are running, which is the limit.',
  };
  expect((await bob.turn(b1.id)).delayed).toMatchObject(why);
  expect(await bob.summary('b1')).toMatchObject({ stranded: null, delayed: why });
  expect(await bob.list()).toMatchObject([{ delayed: why }]);
  expect((await ann.show('a3')).turns).toMatchObject([{ delayed: { reason: 'owner_slots' } }]);
  expect((await ann.turn(a1.id)).delayed).toBeNull();
  finish(home, a1);
  await ended(bob, b1);
  await untilBegun(home, a3);
  expect(begunTurns(home)).toEqual([a1.id, a2.id, b1.id, a3.id]);
  expect((await bob.turn(b1.id)).delayed).toBeNull();
  for (const turn of many) finish(home, turn);
  for (const turn of many) expect((await ended(ann, turn)).state).toBe('completed');
});

test('an owner has at most maxRunningPerOwner slots, and the other slots are for other owners', async () => {
  await using home = new Home();
  const { ann, bob } = await open(home, { maxRunning: 3, maxRunningPerOwner: 2 });
  const many = await submitAll(ann, ['a1', 'a2', 'a3', 'a4']);
  await untilBegun(home, ...many.slice(0, 2));
  expect((await ended(bob, await submit(bob, 'b1', '/say Hello.'))).state).toBe('completed');
  expect(begunTurns(home)).toHaveLength(3);
  expect((await ann.turn((many[2] as PublicTurn).id)).delayed).toMatchObject({ reason: 'owner_slots' });
  for (const turn of many) finish(home, turn);
  for (const turn of many) await ended(ann, turn);
});

test('between two turns of a conversation another owner gets the slot, and the agent is kept for the second turn', async () => {
  await using home = new Home();
  const { ann, bob } = await open(home, { maxRunning: 1 });
  const [a1, a2, a3] = (await submitAll(ann, ['a', 'a', 'a'])) as [PublicTurn, PublicTurn, PublicTurn];
  await untilBegun(home, a1);
  const [b1, b2] = (await submitAll(bob, ['b', 'b'], '/say Hello.')) as [PublicTurn, PublicTurn];
  finish(home, a1);
  for (const turn of [a1, a2, a3]) expect((await ended(ann, turn)).state).toBe('completed');
  await ended(bob, b2);
  expect(begunTurns(home)).toEqual([a1, b1, a2, b2, a3].map(({ id }) => id));
  expect(new Set([a1, a2, a3].map(({ id }) => sentTo(home, id).pid)).size).toBe(1);
  await expectSound(ann, 'a');
});

test('every slot is released, however many conversations wait for their next turn', async () => {
  await using home = new Home();
  const { ann } = await open(home, { maxRunning: 3 });
  const running = await submitAll(ann, ['a', 'b', 'c']);
  await untilBegun(home, ...running);
  const waiting = await submitAll(ann, ['a', 'b', 'c', 'd', 'a', 'b', 'c', 'd'], '/say Hello.');
  // Several slots become free at the same moment, while conversations that are held wait for one.
  for (const turn of running) finish(home, turn);
  for (const turn of [...running, ...waiting]) expect((await ended(ann, turn)).state).toBe('completed');
  const all = await submitAll(ann, ['x', 'y', 'z']);
  await untilBegun(home, ...all);
  for (const turn of all) finish(home, turn);
  for (const turn of all) await ended(ann, turn);
});

test('a turn that waits for an answer holds no slot, and continues at once when the answer comes', async () => {
  await using home = new Home();
  const { ann, bob } = await open(home, { maxRunning: 1 });
  const asks = await submit(ann, 'a', '/ask May I?\n/say Thanks.');
  const { payload } = await event(ann, 'a', 'permission.asked');
  expect((await ended(bob, await submit(bob, 'b1', '/say Hello.'))).state).toBe('completed');
  const other = await submit(bob, 'b2');
  await event(bob, 'b2', 'turn.sent');
  await ann.answer(payload.permissionId, 'allow');
  expect((await ended(ann, asks)).state).toBe('completed');
  expect((await bob.turn(other.id)).state).toBe('running');
  const third = await submit(ann, 'c', '/say Hello.');
  expect((await ann.turn(third.id)).delayed).toMatchObject({ reason: 'all_slots' });
  finish(home, other);
  expect((await ended(ann, third)).state).toBe('completed');
});

test('an owner can have only a limited number of turns that wait for answers, and they do not delay other owners', async () => {
  await using home = new Home();
  const { ann, bob } = await open(home, { maxRunning: 2, maxRunningPerOwner: 1 });
  const [a1, a2] = (await submitAll(ann, ['a1', 'a2'], '/ask May I?')) as [PublicTurn, PublicTurn];
  const { payload } = await event(ann, 'a1', 'permission.asked');
  await until('the second turn is delayed', async () => (await ann.turn(a2.id)).delayed?.reason === 'owner_questions');
  expect((await ended(bob, await submit(bob, 'b', '/say Hello.'))).state).toBe('completed');
  expect((await ann.turn(a2.id)).state).toBe('queued');
  await ann.answer(payload.permissionId, 'allow');
  await ended(ann, a1);
  const second = await event(ann, 'a2', 'permission.asked');
  await ann.cancel(a2.id);
  expect((await ended(ann, a2)).state).toBe('cancelled');
  expect((await ann.permission(second.payload.permissionId)).state).toBe('withdrawn');
  expect((await ended(ann, await submit(ann, 'a3', '/say Hello.'))).state).toBe('completed');
});

test('a process that runs only its own prompts shares its slots between owners, too', async () => {
  await using home = new Home();
  const { ann, bob } = await open(home, { claims: 'own', maxRunning: 1 });
  const many = await submitAll(ann, ['a1', 'a2', 'a3']);
  await untilBegun(home, many[0] as PublicTurn);
  const b1 = await submit(bob, 'b1', '/say Hello.');
  expect((await bob.turn(b1.id)).delayed).toMatchObject({ reason: 'all_slots' });
  for (const turn of many) finish(home, turn);
  for (const turn of many) await ended(ann, turn);
  expect(begunTurns(home).indexOf(b1.id)).toBe(1);
});

test('the warm agent of one owner is not ended in favour of the many agents of another', async () => {
  await using home = new Home();
  const { ann, bob } = await open(home, { maxWarm: 2 });
  const first = await submit(bob, 'b', '/say Hello.');
  await ended(bob, first);
  for (const key of ['a1', 'a2', 'a3']) await ended(ann, await submit(ann, key, '/say Hello.'));
  const again = await submit(bob, 'b', '/say Hello.');
  await ended(bob, again);
  expect(sentTo(home, again.id).pid).toBe(sentTo(home, first.id).pid);
});

test('an agent is not warmed up while no slot is free', async () => {
  await using home = new Home();
  const { ann, bob } = await open(home, { maxRunning: 1 });
  await bob.ensure({ key: 'b', agent: 'scripted' });
  const turn = await submit(ann, 'a');
  await event(ann, 'a', 'turn.sent');
  expect(await bob.warm('b')).toBeNull();
  finish(home, turn);
  await ended(ann, turn);
  await until('a slot is free', async () => (await bob.warm('b')) !== null);
});

test('an owner who uses all slots that one owner may have does not keep another owner from warming up', async () => {
  await using home = new Home();
  const { ann, bob } = await open(home, { maxRunning: 4, maxRunningPerOwner: 2 });
  await bob.ensure({ key: 'b' });
  const turns = await submitAll(ann, ['a1', 'a2', 'a3']);
  await untilBegun(home, ...turns.slice(0, 2));
  for (let n = 0; n < 3; n += 1) expect(await bob.warm('b')).toMatchObject({ turn: null, agent: 'scripted' });
  for (const turn of turns) finish(home, turn);
  for (const turn of turns) await ended(ann, turn);
});

test('tasks hold slots only during their turns: more tasks than slots, each with a judge, come to an end', async () => {
  await using home = new Home({ worker: {}, judge: {} });
  const { tl } = await open(home, { maxRunning: 1 });
  const gate = { agent: 'judge', ask: '/say I cannot tell.' };
  const tasks = ['t1', 't2', 't3'].map((name) => ({ name, goal: '/say Done.', agent: 'worker', gate }));
  const ended = await tl.tasks.run({ parallel: 3, tasks });
  // Each has its own turn and two of the judge.
  expect(ended.map(({ state, progress }) => [state, progress.turns])).toEqual(tasks.map(() => ['asking', 3]));
});

test('after a crash with all slots in use, every accepted turn comes to its end', async () => {
  await using home = new Home();
  const limits = { ...SERVER, maxRunning: 2, maxRunningPerOwner: 2, leaseMs: 1_000 };
  const host = await home.host(limits);
  const [ann, bob] = [host.as('ann').engine, host.as('bob').engine];
  const hanging = await submitAll(ann, ['a1', 'a2'], '/say begun\n/hang');
  await until('both prompts are sent', async () => {
    const areSent = await Promise.all(hanging.map(async ({ id }) => (await ann.turn(id)).sent !== null));
    return areSent.every(Boolean);
  });
  const queued = await submitAll(ann, ['a3', 'a4', 'a5'], '/say Hello.');
  const b1 = await submit(bob, 'b1', '/say Hello.');
  await host.kill();
  const next = await open(home, limits);
  expect((await ended(next.bob, b1)).state).toBe('completed');
  for (const turn of hanging) expect((await ended(next.ann, turn)).state).toBe('interrupted');
  for (const turn of queued) expect((await ended(next.ann, turn)).state).toBe('completed');
  for (const key of ['a1', 'a2', 'a3', 'a4', 'a5']) await expectSound(next.ann, key);
});
