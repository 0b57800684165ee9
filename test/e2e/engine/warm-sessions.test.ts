import { expect, test } from 'vitest';
import type { Throughline } from '../../../src/index.ts';
import type { Store } from '../../../src/ports/store.ts';
import { isAlive } from '../../contracts/liveness.ts';
import { codewordsIn, event, run, until, untilReleased, WHICH_CODEWORDS } from '../support/conversations.ts';
import { Home } from '../support/home.ts';
import { sentTo, storedSessions } from '../support/stored.ts';

function canBeSignalled(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

/** Runs a turn. Returns the rung of its session, and the process of its agent. */
async function runTurn(home: Home, tl: Throughline, key: string) {
  const { turn, receipt } = await tl.conversation(key).ask(`The codeword is ${key}.`);
  return { rung: receipt.rung, pid: sentTo(home, turn.id).pid };
}

test('a session stays open between turns, and the conversation stays locked', async () => {
  await using home = new Home();
  const tl = await home.open();
  const first = await runTurn(home, tl, 'one');
  expect(isAlive(first.pid)).toBe(true);
  expect(await runTurn(home, tl, 'one')).toEqual({ rung: 'live', pid: first.pid });
  expect((await tl.conversation('one').summary()).lock).toMatchObject({ holder: 'this process' });
});

test.each(['this', 'another'])('a warm agent is ended when %s process erases its conversation', async (which) => {
  await using home = new Home();
  const tl = await home.open({ leaseMs: 300 });
  const eraser = which === 'this' ? tl.engine : (await home.host()).engine;
  const { pid } = await runTurn(home, tl, 'one');
  expect(isAlive(pid)).toBe(true);
  await eraser.erase('one');
  await until('its process has ended', () => !isAlive(pid));
});

test('a turn that another process submits just before a session would become idle runs in that session', async () => {
  await using home = new Home();
  const other = (await home.host()).engine;
  let submitted = false;
  const store = (real: Store): Store => ({
    ...real,
    listen: (listener) => real.listen((moved) => submitted || listener(moved)), // the bell of the second turn is lost
    async nextTurn(...args) {
      const next = await real.nextTurn(...args);
      if (next === null && !submitted) {
        submitted = true;
        await other.submit('one', 'Hello again.');
      }
      return next;
    },
  });
  const engine = await home.engine({ store });
  await engine.ensure({ key: 'one' });
  await run(engine, 'one', 'Hello.');
  await until('the second turn has ended', async () => (await other.turns('one'))[1]?.state === 'completed');
  expect((await other.receipts('one')).map(({ rung }) => rung)).toEqual(['new', 'live']);
});

test('an agent is ended when its lease is lost just before it would be kept warm', async () => {
  await using home = new Home();
  const eraser = (await home.host()).engine;
  const noticed = Promise.withResolvers<void>();
  let erased = false;
  const store = (real: Store): Store => ({
    ...real,
    async renew(...args) {
      const lost = await real.renew(...args);
      if (lost.length > 0) noticed.resolve();
      return lost;
    },
    async commit(...args) {
      const committed = await real.commit(...args);
      const ends = args[2].some((write) => write.write === 'end' && write.end.record?.n === 2);
      if (ends && !erased) {
        erased = true;
        await eraser.erase('one');
        await noticed.promise;
        await new Promise(setImmediate);
      }
      return committed;
    },
  });
  const engine = await home.engine({ store }, { leaseMs: 300 });
  await engine.ensure({ key: 'one' });
  const { turn } = await run(engine, 'one', 'Hello.');
  const pid = sentTo(home, turn.id).pid;
  await engine.submit('one', 'Hello again.');
  await noticed.promise;
  await until('its process has ended', () => !isAlive(pid));
});

test('a notification at the moment when a session becomes idle does not end it', async () => {
  await using home = new Home();
  const listeners: ((moved: readonly string[]) => void)[] = [];
  let notified = 0;
  const store = (real: Store): Store => ({
    ...real,
    listen(listener) {
      listeners.push(listener);
      return real.listen(listener);
    },
    async summary(owner, conversation) {
      const summary = await real.summary(owner, conversation);
      // Each time a little later: 0, 1, 2 … microtasks after the worker has read this.
      if (notified <= 12) void notifyAfter(notified++, conversation);
      return summary;
    },
  });
  async function notifyAfter(microtasks: number, conversation: string) {
    for (let i = 0; i < microtasks; i += 1) await null;
    for (const listener of listeners) listener([conversation]);
  }
  const engine = await home.engine({ store });
  await engine.ensure({ key: 'one' });
  const { turn } = await run(engine, 'one', 'Hello.');
  await until('all these moments were tried', () => notified > 12);
  const again = await run(engine, 'one', 'Hello again.');
  expect(sentTo(home, again.turn.id).pid).toBe(sentTo(home, turn.id).pid);
});

test('a conversation that is erased at the moment when its turn has ended is not reported as a bug', async () => {
  await using home = new Home(); // it fails at its end if a bug was reported
  const readsSummary = Promise.withResolvers<void>();
  const store = (real: Store): Store => ({
    ...real,
    async summary(owner, conversation) {
      readsSummary.resolve();
      await real.eraseConversation(owner, conversation);
      return real.summary(owner, conversation);
    },
  });
  const engine = await home.engine({ store });
  await engine.ensure({ key: 'one' });
  await engine.submit('one', 'Hello.');
  await readsSummary.promise;
});

test('beyond the limit of warm sessions the process of the least recently used one is ended first', async () => {
  await using home = new Home();
  const tl = await home.open({ maxWarm: 2 });
  const pids: Record<string, number> = {};
  for (const key of ['one', 'two', 'one', 'three']) pids[key] = (await runTurn(home, tl, key)).pid;
  await untilReleased(tl.engine, 'two');
  await until('its process has ended', () => !isAlive(pids.two ?? 0));
  expect([isAlive(pids.one ?? 0), isAlive(pids.three ?? 0)]).toEqual([true, true]);
  expect((await tl.conversation('two').show()).sessions).toMatchObject([{ state: 'dormant' }]);
  expect(storedSessions(home).filter((session) => session.process === null)).toHaveLength(1);
  expect((await runTurn(home, tl, 'one')).rung).toBe('live');
  expect((await runTurn(home, tl, 'two')).rung).toBe('resume');
  await untilReleased(tl.engine, 'three');
});

test('the process of a session that is not used for a while is ended, and the session is resumed when it is needed', async () => {
  await using home = new Home();
  const tl = await home.open({ idleMs: 60 });
  const { pid } = await runTurn(home, tl, 'one');
  await untilReleased(tl.engine, 'one');
  expect(isAlive(pid)).toBe(false);
  const { reply, receipt } = await tl.conversation('one').ask(WHICH_CODEWORDS);
  expect(codewordsIn(reply)).toEqual(['one']);
  expect(receipt.rung).toBe('resume');
});

test('a session that exists only in its process is recorded as lost when the unused process is ended', async () => {
  await using home = new Home({ claude: { memory: 'process' } });
  const tl = await home.open({ idleMs: 60 });
  await runTurn(home, tl, 'one');
  await untilReleased(tl.engine, 'one');
  expect((await tl.conversation('one').show()).sessions).toMatchObject([{ state: 'lost' }]);
  const { reply, receipt } = await tl.conversation('one').ask(WHICH_CODEWORDS);
  expect(codewordsIn(reply)).toEqual(['one']);
  expect(receipt.rung).toBe('transcript');
});

test('a warm session whose process has died is detected before a prompt is sent to it', async () => {
  await using home = new Home();
  const tl = await home.open();
  const { pid } = await runTurn(home, tl, 'one');
  process.kill(pid, 'SIGKILL');
  // A process that has ended but was not collected can still be signalled: its session has not noticed the end yet.
  await until('its process was collected', () => !canBeSignalled(pid));
  const { reply, turn } = await tl.conversation('one').ask(WHICH_CODEWORDS);
  expect(codewordsIn(reply)).toEqual(['one']);
  expect(turn.attempt).toBe(1);
});

test('warm() returns null if another process holds the conversation', async () => {
  await using home = new Home();
  const [tl, other] = await Promise.all([home.open(), home.host()]);
  await other.calls.ask('one', 'The codeword is one.');
  expect(await tl.conversation('one').warm()).toBeNull();
});

test('warm() opens the first session of a conversation that has no turns', async () => {
  await using home = new Home();
  const tl = await home.open();
  await tl.conversation('one').ensure();
  expect(await tl.conversation('one').warm()).toMatchObject({ rung: 'new', carried: 0, dropped: 0 });
  const { receipt } = await tl.conversation('one').ask('Hello.');
  expect(receipt.rung).toBe('live');
  expect(await tl.conversation('one').summary()).toMatchObject({ contexts: 1, sessions: 1 });
});

test('warm() waits for a running turn', async () => {
  await using home = new Home();
  const { engine } = await home.open();
  await engine.ensure({ key: 'one' });
  const { turn } = await engine.submit('one', '/stream 20 5');
  await event(engine, 'one', 'turn.update', { turn: turn.id });
  expect(await engine.warm('one')).toMatchObject({ rung: 'live', carried: 1 });
  expect((await engine.turn(turn.id)).state).toBe('completed');
});

test('warm() that waits for a turn returns null when the lease is lost during that turn', async () => {
  await using home = new Home();
  let lost = false;
  const store = (real: Store): Store => ({
    ...real,
    // As if another worker had taken over.
    renew: async (fences, leaseMs) => (lost ? [...fences] : real.renew(fences, leaseMs)),
  });
  const engine = await home.engine({ store }, { leaseMs: 300 });
  const { id } = await engine.ensure({ key: 'one' });
  const { turn } = await engine.submit(id, '/say the beginning\n/ask May I?');
  await event(engine, id, 'permission.asked', { turn: turn.id });
  const warming = engine.warm(id);
  lost = true;
  expect(await warming).toBe(null);
  lost = false;
});
