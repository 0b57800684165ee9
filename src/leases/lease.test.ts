import { describe, expect, test } from 'vitest';
import { ThroughlineError } from '../core/errors.ts';
import type { Write } from '../ports/store/writes.ts';
import type { Store } from '../ports/store.ts';
import { Lease } from './lease.ts';

const FENCE = { conversation: 'c', owner: 'local', epoch: 1 };

function event(name: string): Write {
  return {
    write: 'event',
    event: { kind: 'conversation.titled', turn: null, payload: { title: name, source: 'caller' } },
  };
}

function nameOf(write: Write): string {
  return write.write === 'event' && write.event.kind === 'conversation.titled' ? write.event.payload.title : '';
}

/** A store with a slow first commit, which refuses writes with the name "conflict". */
function slowStore() {
  const commits: { counter: number; names: string[] }[] = [];
  const first = Promise.withResolvers<void>();
  const commit: Store['commit'] = async (_, counter, writes) => {
    const names = writes.map(nameOf);
    if (names.includes('first')) await first.promise;
    if (names.includes('conflict')) throw new ThroughlineError('conflict', 'as asked');
    commits.push({ counter, names });
    return { seq: counter + writes.length - 1, open: 0 };
  };
  return { commits, goOn: first.resolve, store: { commit } as Store };
}

const PARTS = { storageMs: 1_000, clock: { now: () => 0, monotonic: () => 0 }, onTrouble: () => {} };

describe('a lease', () => {
  test.each([0, 250, 253, 254, 255, 256, 300, 511, 600])(
    'commits writes that were given together in one commit, after %i writes that wait for a slow disk',
    async (waiting) => {
      const { store, commits, goOn } = slowStore();
      const lease = new Lease(FENCE, { ...PARTS, store });
      const before = [lease.write(event('first'))];
      for (let i = 0; i < waiting; i += 1) before.push(lease.write(event(`update ${i}`)));
      const together = lease.write(event('session'), event('receipt'), event('end'));
      goOn();
      await Promise.all([...before, together]);
      const group = commits.filter(({ names }) => names.some((name) => ['session', 'receipt', 'end'].includes(name)));
      expect(group).toHaveLength(1);
      expect(group[0]?.names.slice(-3)).toEqual(['session', 'receipt', 'end']);
      expect(commits.flatMap(({ names }) => names)).toHaveLength(waiting + 4);
    },
  );

  test('fails only the writes that a conflict is about', async () => {
    const { store, commits, goOn } = slowStore();
    const lease = new Lease(FENCE, { ...PARTS, store });
    const first = lease.write(event('first'));
    const shared = [
      lease.write(event('update')),
      lease.write(event('conflict'), event('with it')),
      lease.write(event('next')),
    ];
    goOn();
    await first;
    const results = await Promise.allSettled(shared);
    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect(commits.flatMap(({ names }) => names)).toEqual(['first', 'update', 'next']);
    const counters = commits.flatMap(({ counter, names }) => names.map((_, i) => counter + i));
    expect(new Set(counters).size, 'no counter is used twice').toBe(counters.length);
    expect(lease.lost.aborted).toBe(false);
  });

  test('writes nothing of a turn whose begin is refused, at once or later, but all other writes', async () => {
    const commits: Write[][] = [];
    const commit: Store['commit'] = async (_, counter, writes) => {
      if (writes.some(({ write }) => write === 'begin')) throw new ThroughlineError('conflict', 'as asked');
      commits.push([...writes]);
      return { seq: counter, open: 0 };
    };
    const lease = new Lease(FENCE, { ...PARTS, store: { commit } as Store });
    const locked = (turn: string | null): Write => {
      return { write: 'event', event: { kind: 'session.locked', turn, payload: { id: null, waits: 1, ms: 1 } } };
    };
    const begins = lease.note({ write: 'begin', turn: 't' });
    const shared = [lease.note(locked('t')), lease.write(locked(null)), lease.write(locked('u'))];
    const statuses = async (all: Promise<void>[]) => (await Promise.allSettled(all)).map(({ status }) => status);
    expect(await statuses([begins, ...shared])).toEqual(['rejected', 'rejected', 'fulfilled', 'fulfilled']);
    expect(await statuses([lease.write(locked('t')), lease.write(event('e'))])).toEqual(['rejected', 'fulfilled']);
    expect(commits.flat()).toEqual([locked(null), locked('u'), event('e')]);
    expect(lease.lost.aborted).toBe(false);
  });

  test('writes nothing after a commit failed permanently, even if the store would accept it again', async () => {
    const fault = new ThroughlineError('lease_lost', 'as asked');
    const commits: string[][] = [];
    const commit: Store['commit'] = async (_, counter, writes) => {
      commits.push(writes.map(nameOf));
      if (commits.length === 1) throw fault;
      return { seq: counter, open: 0 };
    };
    const lease = new Lease(FENCE, { ...PARTS, store: { commit } as Store });
    const writes = [lease.write(event('fails')), lease.write(event('waits'))];
    await expect(writes[0]).rejects.toBe(fault);
    await expect(writes[1]).rejects.toBe(fault);
    await expect(lease.write(event('comes later'))).rejects.toBe(fault);
    expect(lease.lost.reason).toBe(fault);
    expect(commits).toEqual([['fails']]);
  });

  test('writes nothing once the heartbeat has found it lost', async () => {
    const { store, commits } = slowStore();
    const lease = new Lease(FENCE, { ...PARTS, store });
    const reason = new ThroughlineError('lease_lost', 'as asked');
    lease.lose(reason);
    await expect(lease.write(event('late'))).rejects.toBe(reason);
    expect(commits).toEqual([]);
  });

  test('commits notes together with the next write, before it', async () => {
    const { store, commits } = slowStore();
    const lease = new Lease(FENCE, { ...PARTS, store });
    lease.note(event('noted'));
    lease.note(event('noted, too'));
    expect(commits).toEqual([]);
    await lease.write(event('written'));
    expect(commits).toEqual([{ counter: 1, names: ['noted', 'noted, too', 'written'] }]);
  });

  test('continues after notes that were made during a commit and stored with the next one', async () => {
    const { store, commits, goOn } = slowStore();
    const lease = new Lease(FENCE, { ...PARTS, store });
    const first = lease.write(event('first'));
    lease.note(event('noted'));
    const shared = lease.write(event('with it'));
    lease.note(event('noted, too'));
    goOn();
    await Promise.all([first, shared]);
    // By now the notes would be committed alone, but they are already stored.
    await new Promise((resolve) => setTimeout(resolve, 20));
    await lease.write(event('later'));
    expect(commits.map(({ names }) => names)).toEqual([['first'], ['noted', 'with it', 'noted, too'], ['later']]);
  });

  test('commits notes alone if no write follows, and before the lease is released', async () => {
    const { store, commits } = slowStore();
    const lease = new Lease(FENCE, { ...PARTS, store });
    lease.note(event('noted'));
    await expect.poll(() => commits).toEqual([{ counter: 1, names: ['noted'] }]);
    lease.note(event('at the end'));
    await lease.drained();
    expect(commits.map(({ names }) => names)).toEqual([['noted'], ['at the end']]);
  });

  test('commits the output of an agent at once, together with an end that follows immediately', async () => {
    const { store, commits } = slowStore();
    const lease = new Lease(FENCE, { ...PARTS, store });
    lease.say(event('said'));
    await Promise.resolve();
    await lease.write(event('ended'));
    expect(commits).toEqual([{ counter: 1, names: ['said', 'ended'] }]);
    lease.say(event('said alone'));
    await new Promise((resolve) => setImmediate(resolve));
    expect(commits.map(({ names }) => names)).toEqual([['said', 'ended'], ['said alone']]);
  });

  test('is drained only when readers have read everything, including the last commit', async () => {
    let isRead = false;
    const commit: Store['commit'] = async (_, counter) => {
      setImmediate(() => {
        isRead = true;
      });
      return { seq: counter, open: 0 };
    };
    const lease = new Lease(FENCE, { ...PARTS, store: { commit } as Store });
    await lease.write(event('one'));
    await null;
    await lease.drained();
    expect(isRead).toBe(true);
  });

  test('repeats a commit with the same counter while the storage is busy', async () => {
    const counters: number[] = [];
    const commit: Store['commit'] = async (_, counter) => {
      counters.push(counter);
      if (counters.length === 2) throw new ThroughlineError('storage_busy', 'as asked');
      return { seq: counter, open: 0 };
    };
    const lease = new Lease(FENCE, { ...PARTS, store: { commit } as Store });
    await lease.write(event('one'), event('two'));
    await lease.write(event('three'));
    expect(counters).toEqual([1, 3, 3]);
  });
});
