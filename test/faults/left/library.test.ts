import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { open, type Throughline } from '../../../src/index.ts';
import {
  codewordsIn,
  ended,
  event,
  expectSound,
  refusedWith,
  until,
  WHICH_CODEWORDS,
} from '../../e2e/support/conversations.ts';
import { Home } from '../../e2e/support/home.ts';
import type { Host } from '../../e2e/support/host.ts';

/** Streams until it is cancelled. */
const ENDLESS = '/stream 100000 5';

const states = async (tl: Throughline, key: string) => (await tl.engine.turns(key)).map(({ state }) => state);

/** A process that was killed in the middle of the first of three turns. */
async function killed(home: Home, second = 'The codeword is amber.'): Promise<Host> {
  const host = await home.host();
  await host.engine.ensure({ key: 'left' });
  for (const prompt of [ENDLESS, second, WHICH_CODEWORDS]) await host.engine.submit('left', prompt);
  await host.calls.followUntil('left', 0, 'turn.update');
  await host.kill();
  return host;
}

test('turns that a killed process had accepted are run by the next process that opens the data home for any purpose', async () => {
  await using home = new Home();
  await killed(home);
  const tl = await home.open();
  await tl.conversation('another').ask('Hello.');
  const last = (await tl.engine.turns('left'))[2] ?? expect.unreachable();
  expect((await ended(tl.engine, last)).state).toBe('completed');
  expect(await states(tl, 'left')).toEqual(['interrupted', 'completed', 'completed']);
  expect(codewordsIn((await tl.engine.answerOf(last.id)).reply)).toEqual(['amber']);
  await expectSound(tl.engine, 'left');
});

test('with takeUp: false only the running turn is ended; the others stay queued and are shown as stranded', async () => {
  await using home = new Home();
  await killed(home);
  const tl = await home.open({}, { takeUp: false });
  await tl.conversation('another').ask('Hello.');
  const turns = await tl.engine.turns('left');
  expect(turns.map(({ state }) => state)).toEqual(['interrupted', 'queued', 'queued']);
  const stranded = { reason: 'no_process', message: 'No process runs turn 2 now.', hint: expect.any(String) };
  expect(turns.map((turn) => turn.stranded)).toEqual([null, stranded, stranded]);
  expect(await tl.engine.summary('left')).toMatchObject({ open: 2, lock: null, stranded });
  const listed = await tl.engine.list();
  expect(new Map(listed.map((one) => [one.key, one.stranded]))).toEqual(
    new Map([
      ['another', null],
      ['left', stranded],
    ]),
  );
  expect(await tl.engine.show('left')).toMatchObject({ conversation: { stranded }, turns: [{}, { stranded }, {}] });
  await refusedWith('conflict', tl.engine.retry(turns[1]?.id ?? ''), /still queued/);
  // With a process that takes turns up, they are no longer stranded.
  const other = await home.host();
  expect((await tl.engine.summary('left')).stranded).toBeNull();
  expect((await ended(tl.engine, turns[2] ?? expect.unreachable())).state).toBe('completed');
  await other.kill();
});

test('a process that closes waits for the turn that was sent, and starts no other turn of another process', async () => {
  await using home = new Home();
  const go = join(home.path, 'go');
  await killed(home, `/await ${go}`);
  const taker = await home.open();
  const [, second, third] = await taker.engine.turns('left');
  await event(taker.engine, 'left', 'turn.sent', { turn: second?.id ?? '' });
  await taker.tasks.close();
  const closing = taker.engine.close({ graceMs: 120_000 });
  writeFileSync(go, ''); // until then, the second turn cannot end
  await closing;
  const tl = await home.open({}, { takeUp: false });
  expect(await states(tl, 'left')).toEqual(['interrupted', 'completed', 'queued']);
  expect((await tl.engine.turn(third?.id ?? '')).attempt).toBe(0);
});

test('a turn that was taken up and not sent is queued again when its process closes', async () => {
  await using home = new Home({ scripted: { startMs: 600_000 } });
  const host = await home.host({ maxRunning: 0 });
  await host.engine.ensure({ key: 'left' });
  const { turn } = await host.engine.submit('left', 'Hello.');
  await host.kill();
  const taker = await home.open();
  await event(taker.engine, 'left', 'turn.started');
  await taker.close();
  const tl = await home.open({}, { takeUp: false });
  expect(await tl.engine.turn(turn.id)).toMatchObject({
    state: 'queued',
    sent: null,
    stranded: { reason: 'no_process' },
  });
});

test('a task of a killed process is continued by the next process that opens the data home, but not with takeUp: false', async () => {
  await using home = new Home();
  const host = await home.host({ maxRunning: 0 });
  const { tasks } = await host.tasks.add({ tasks: [{ goal: 'Hello.', gate: 'true' }] });
  const ids = tasks.map(({ id }) => id);
  await until('it is taken up', async () => (await host.tasks.task(ids[0] ?? '')).state === 'running');
  await host.kill();
  const reader = await home.open({}, { takeUp: false });
  await reader.conversation('another').ask('Hello.');
  expect(await reader.tasks.task(ids[0] ?? '')).toMatchObject({ stranded: { reason: 'no_process' } });
  const tl = await home.open();
  expect(await tl.tasks.waitFor(ids)).toMatchObject([{ state: 'done' }]);
});

test('two living processes each run the turns that they have submitted', async () => {
  await using home = new Home();
  const [one, two] = await Promise.all([home.host(), home.host()]);
  for (let i = 0; i < 5; i += 1) {
    await Promise.all([one.calls.ask(`one-${i}`, 'Hello.'), two.calls.ask(`two-${i}`, 'Hello.')]);
    for (const [key, host, other] of [
      [`one-${i}`, one, two],
      [`two-${i}`, two, one],
    ] as const) {
      expect((await host.engine.summary(key)).lock?.holder).toBe('this process');
      expect((await other.engine.summary(key)).lock?.holder).toBe('another process');
    }
  }
});

test('a running process notices that another was killed, and ends the turn of that one', async () => {
  await using home = new Home();
  const reader = await home.open({}, { takeUp: false });
  const host = await home.host();
  await host.engine.ensure({ key: 'left' });
  const { turn } = await host.engine.submit('left', ENDLESS);
  await host.calls.followUntil('left', 0, 'turn.update');
  const follows = event(reader.engine, 'left', 'turn.ended');
  await host.kill();
  expect((await follows).payload).toMatchObject({ outcome: 'interrupted' });
  expect((await reader.engine.retry(turn.id)).turn.retryOf).toBe(turn.id);
});

test('a conversation with a turn that a dead process left can be erased, forked and exported', async () => {
  await using home = new Home();
  const host = await home.host();
  for (const key of ['fork', 'export', 'erase']) {
    await host.engine.ensure({ key });
    await host.engine.submit(key, `The codeword is ${key}.\n${ENDLESS}`);
    await host.calls.followUntil(key, 0, 'turn.update');
  }
  await host.kill();
  const { engine } = await home.open({}, { takeUp: false });
  expect(await engine.fork('fork')).toMatchObject({ head: 1 });
  expect((await engine.export('export')).records).toMatchObject([{ n: 1, outcome: 'interrupted' }]);
  await engine.erase('erase');
  await refusedWith('not_found', engine.conversation('erase'));
});

test('a tracked turn shows that the program that tracks it has ended', async () => {
  await using home = new Home();
  const host = await home.host();
  await host.tracker.trackRequest('r-1', 'agent-1', 's-1');
  const tl = await home.open();
  expect((await tl.engine.turns('agent-1'))[0]).toMatchObject({ state: 'running', stranded: null });
  await host.kill();
  const stranded = { reason: 'no_process', message: 'The program that tracks turn 1 has ended or closed its tracker.' };
  expect((await tl.engine.turns('agent-1'))[0]).toMatchObject({ state: 'running', stranded });
});

test('a question of a dead process is withdrawn when questions are listed or it is answered', async () => {
  await using home = new Home();
  const host = await home.host();
  await host.engine.ensure({ key: 'left' });
  const { turn } = await host.engine.submit('left', '/ask write the notes\n/tool write notes.log', {
    permissions: 'ask',
  });
  await host.calls.followUntil('left', 0, 'permission.asked');
  const [asked] = await host.engine.permissions({ open: true });
  await host.kill();
  const tl = await home.open({}, { takeUp: false });
  expect(await tl.engine.permissions({ open: true })).toEqual([]);
  expect(await tl.engine.permission(asked?.id ?? '')).toMatchObject({ state: 'withdrawn' });
  expect((await tl.engine.turn(turn.id)).state).toBe('interrupted');
  await refusedWith('conflict', tl.engine.answer(asked?.id ?? '', 'allow'), /withdrawn/);
});

test('a turn of another data home with the same store is refused while no process runs there, and run while one does', async () => {
  await using home = new Home();
  const settings = { store: `sqlite:${home.file}`, agents: { scripted: { adapter: 'scripted' } } } as const;
  const first = await home.open();
  await first.conversation('chat').ask('The codeword is amber.');
  await using elsewhere = await open({ home: join(home.path, 'elsewhere'), settings });
  const there = elsewhere.conversation('chat');
  expect(codewordsIn((await there.ask(WHICH_CODEWORDS)).reply)).toEqual(['amber']); // the first one runs it
  const { turn } = await first.engine.submit('chat', 'Hello.\n/stream 100000 5');
  await event(first.engine, 'chat', 'turn.sent', { turn: turn.id });
  await first.engine.submit('chat', 'Never mind.');
  await first.close({ graceMs: 0 });
  const message = `runs only at the data home ${home.path}, and no process takes it up there.`;
  await refusedWith('refused', there.ask('Hello?'), new RegExp(`"chat" ${message}`));
  await refusedWith('refused', there.warm(), new RegExp(`"chat" ${message}`));
  const { turns } = await there.show();
  expect(turns.at(-1)?.stranded).toMatchObject({ reason: 'other_home', message: `Turn 4 ${message}` });
  const fork = await there.fork();
  expect(codewordsIn((await fork.ask(WHICH_CODEWORDS)).reply)).toEqual(['amber']);
  const again = await home.open();
  await until('it is run again', async () => (await again.engine.summary('chat')).open === 0);
});

test('a caller that waits for a turn of another data home gets an error when no process runs it there any more', async () => {
  await using home = new Home();
  const settings = { store: `sqlite:${home.file}`, agents: { scripted: { adapter: 'scripted' } } } as const;
  const host = await home.host();
  await host.engine.ensure({ key: 'chat' });
  await host.engine.submit('chat', ENDLESS);
  await host.calls.followUntil('chat', 0, 'turn.update');
  await using elsewhere = await open({ home: join(home.path, 'elsewhere'), settings });
  const waiting = elsewhere.conversation('chat').send('Hello.');
  const { turn } = await waiting.accepted;
  const ending = refusedWith(
    'unreachable',
    Array.fromAsync(waiting.events),
    /runs only at .* Turn 2 was accepted and is stored\./,
  );
  await host.kill();
  await ending;
  expect((await elsewhere.engine.turn(turn.id)).stranded).toMatchObject({ reason: 'other_home' });
});
