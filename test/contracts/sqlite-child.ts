// A program that uses a database in its own process. The tests of the SQLite store start it with a file, a role and a name.
import { DatabaseSync } from 'node:sqlite';
import { openSqliteStore } from '../../src/stores/sqlite/store.ts';
import {
  claim,
  claimRequest,
  ending,
  enqueue,
  Holder,
  newConversation,
  nextTurn,
  sending,
  update,
} from './store/world.ts';

const [file = '', role = '', name = ''] = process.argv.slice(2);

const clock = { now: () => Date.now(), monotonic: () => Number(process.hrtime.bigint() / 1000n) / 1000 };
const self = { id: name, process: { pid: process.pid, started: '1', boot: 'boot-1', namespace: 'pid-1' } };

function say(what: unknown): void {
  process.stdout.write(`${JSON.stringify(what)}\n`);
}

const ROLES: Record<string, () => Promise<void>> = {
  /** Only opens. */
  async open() {
    const store = await openSqliteStore({ file, clock, boot: 'boot-1' });
    await newConversation(store, { id: name, key: name });
    await store.close();
  },
  /** Adds turns to a shared conversation and events to its own one. Prints what was acknowledged. */
  async write() {
    const store = await openSqliteStore({ file, clock, boot: 'boot-1' });
    const own = await newConversation(store, { id: `own-${name}` });
    const { fence } = await claim(store, { conversation: own, worker: self, leaseMs: 60_000 });
    const holder = new Holder(store, fence);
    for (let i = 0; i < 40; i += 1) {
      const [turn, seq] = await Promise.all([
        enqueue(store, 'shared', { id: `${name}-${i}` }),
        holder.write(update(null, `${i}`), update(null, `${i}`)),
      ]);
      say({ turn: turn.id, n: turn.n, seq });
    }
    await store.close();
  },
  /** Claims and ends turns until there are none. */
  async work() {
    const store = await openSqliteStore({ file, clock, boot: 'boot-1' });
    for (;;) {
      const claimed = await store.claim(claimRequest({ worker: self, leaseMs: 60_000 }));
      if (claimed === null) break;
      const holder = new Holder(store, claimed.fence);
      for (let { turn } = claimed; turn !== null; turn = await nextTurn(store, claimed.fence)) {
        await holder.write(sending(turn.id), update(turn.id, name));
        await holder.write(ending(turn));
        say({ turn: turn.id });
      }
      await store.release(claimed.fence);
    }
    await store.close();
  },
  /** Prints what the bell reports, without polling, until its input is closed. */
  async listen() {
    const never = setInterval(() => {}, 2 ** 31 - 1).unref();
    globalThis.setInterval = (() => never) as typeof setInterval;
    const store = await openSqliteStore({ file, clock, boot: 'boot-1' });
    const stop = store.listen((moved) => say({ moved }));
    say('ready');
    for await (const _ of process.stdin) {
      // Only waits for the end of the input.
    }
    stop();
    await store.close();
  },
  /** Keeps the database open, as a program of another version does, and writes at each line of input. */
  async hold() {
    const db = new DatabaseSync(file, { timeout: 1_000 });
    db.exec('PRAGMA journal_mode = WAL');
    db.prepare('SELECT count(*) FROM conversations').get();
    say('open');
    for await (const _ of process.stdin) {
      db.exec("UPDATE conversations SET title = title || '.'");
      say('wrote');
    }
    db.close();
  },
  /** Prints whether another process has the database open. */
  async alone() {
    const db = new DatabaseSync(file, { timeout: 0 });
    try {
      db.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN IMMEDIATE; ROLLBACK');
      say('alone');
    } catch {
      say('in use');
    } finally {
      db.close();
    }
  },
  /** Writes at each line of input, and prints a line when it is durable. */
  async enqueue() {
    const store = await openSqliteStore({ file, clock, boot: 'boot-1' });
    const id = await newConversation(store, { id: name });
    say('ready');
    for await (const _ of process.stdin) {
      await enqueue(store, id);
      say('written');
    }
    await store.close();
  },
};

await ROLES[role]?.();
