import { setTimeout as delay } from 'node:timers/promises';
import { expect, onTestFinished, test, vi } from 'vitest';
import { until } from '../../test/contracts/agent-sandbox.ts';
import type { ProcessIdentity, SandboxProcess } from '../core/process.ts';
import type { Processes } from '../ports/processes.ts';
import type { Sandboxes } from '../ports/sandbox.ts';
import type { LeasedWorker } from '../ports/store/leases.ts';
import { freeDead, LeaseKeeper, type LeaseKind } from './lease-keeper.ts';

const processOf = (pid: number): ProcessIdentity => ({ pid, started: '1', boot: 'b', namespace: 'n' });
const ALIVE = processOf(1);
const DEAD = processOf(2);
const UNKNOWN = processOf(3);
const inSandbox = (id: string): SandboxProcess => ({ kind: 'test', id, label: `process ${id}` });
const LEFT = inSandbox('4');

/** A store whose leases are strings, processes, a clock, and a list of what was done, in order. */
function world() {
  const did: string[] = [];
  let time = 0;
  const store = {
    holders: [] as LeasedWorker[],
    lost: [] as string[],
    orphans: [] as SandboxProcess[],
    fault: null as Error | null,
  };
  const kind: LeaseKind<string> = {
    of: 'tests',
    isElsewhere: false,
    async renew(fences, leaseMs) {
      did.push(`renew ${fences} for ${leaseMs}`);
      if (store.fault) throw store.fault;
      return fences.filter((fence) => store.lost.includes(fence));
    },
    async holders() {
      did.push('look');
      return store.holders;
    },
    leftBy: async (id) => (id === 'dead' ? [LEFT] : []),
    async forget(id) {
      did.push(`forget ${id}`);
      store.holders = store.holders.filter((holder) => holder.id !== id);
    },
  };
  const processes: Processes = {
    self: () => ALIVE,
    status: ({ pid }) => (pid === DEAD.pid ? 'dead' : pid === UNKNOWN.pid ? 'unknown' : 'alive'),
  };
  const sandboxes: Pick<Sandboxes, 'end' | 'orphans'> = {
    async end({ id }) {
      did.push(`end ${id}`);
      return 'ended';
    },
    orphans: async () => store.orphans,
  };
  const parts = { processes, sandboxes, clock: { now: () => 0, monotonic: () => time }, settings: { leaseMs: 30 } };
  const holder = {
    held: () => ['a', 'b'],
    lost: (fence: string) => void did.push(`lost ${fence}`),
    wake: () => void did.push('wake'),
    onFault: (error: unknown, where: string) => void did.push(`${where}: ${(error as Error).message}`),
  };
  const pass = (ms: number) => {
    time += ms;
  };
  return { did, store, kind, parts, holder, pass };
}

test('processes of a dead holder are ended before its leases are freed; other holders keep their leases', async () => {
  const { did, store, kind, parts } = world();
  store.holders = [
    { id: 'alive', process: ALIVE },
    { id: 'dead', process: DEAD },
    { id: 'of another namespace', process: UNKNOWN },
  ];
  expect(await freeDead(kind, parts)).toBe(true);
  expect(did).toEqual(['look', `end ${LEFT.id}`, 'forget dead']);
  expect(await freeDead(kind, parts)).toBe(false);
});

test('unrecorded processes are ended by the first look, by one that finds a dead holder, and by the next one', async () => {
  const { did, store, kind, parts, holder, pass } = world();
  const keeper = new LeaseKeeper(kind, holder, parts);
  const look = async () => {
    did.length = 0;
    pass(100);
    await keeper.look();
    return did.filter((one) => one !== 'wake');
  };
  store.orphans = [inSandbox('5')];
  expect(await look()).toEqual(['look', 'end 5']);
  expect(await look()).toEqual(['look']);
  store.holders = [{ id: 'dead', process: DEAD }];
  expect(await look()).toEqual(['look', 'end 5', `end ${LEFT.id}`, 'forget dead']);
  expect(await look()).toEqual(['look', 'end 5']);
  expect(await look()).toEqual(['look']);
});

test('claiming does not wait until the look at all processes has ended', async () => {
  const { did, kind, parts, holder } = world();
  const looked = Promise.withResolvers<SandboxProcess[]>();
  const sandboxes = { ...parts.sandboxes, orphans: () => looked.promise };
  const keeper = new LeaseKeeper(kind, holder, { ...parts, sandboxes });
  expect(await keeper.freeDead()).toBe(false);
  const look = keeper.look();
  looked.resolve([inSandbox('5')]);
  await look;
  expect(did).toEqual(['look', 'wake', 'end 5']);
});

test('the keeper looks for dead holders at most ten times a second', async () => {
  const { did, kind, parts, holder, pass } = world();
  const keeper = new LeaseKeeper(kind, holder, parts);
  await Promise.all([keeper.freeDead(), keeper.freeDead()]);
  pass(99);
  expect(await keeper.freeDead()).toBe(false);
  expect(did).toEqual(['look']);
  pass(1);
  await keeper.freeDead();
  expect(did).toEqual(['look', 'look']);
});

test('a heartbeat renews held leases and reports lost ones to the holder, also after a failed heartbeat', async () => {
  const { did, store, kind, parts, holder } = world();
  const keeper = new LeaseKeeper(kind, holder, parts);
  onTestFinished(() => keeper.stop());
  store.lost = ['b'];
  store.fault = new Error('disk');
  await delay(50);
  expect(did, 'nothing before the first claim').toEqual([]);
  keeper.start();
  keeper.start();
  await until('a fault is reported', () => did.includes('heartbeat of tests: disk'));
  expect(did).not.toContain('lost b');
  store.fault = null;
  await until('the next one renews', () => did.includes('lost b'));
  expect(did).toContain('renew a,b for 30');
  expect(did).not.toContain('lost a');
  keeper.stop();
  const { length } = did;
  await delay(50);
  expect(did).toHaveLength(length);
});

test('a holder that waits to claim is woken after every look; for one that never waits there are no looks', async () => {
  const { did, kind, parts, holder } = world();
  const { wake: _, ...patient } = holder;
  const keepers = [new LeaseKeeper(kind, patient, parts), new LeaseKeeper(kind, holder, parts)] as const;
  onTestFinished(() => {
    for (const keeper of keepers) keeper.stop();
  });
  keepers[0].start();
  await until('it renews', () => did.length > 2);
  expect(did).not.toContain('look');
  keepers[1].start();
  await until('it wakes', () => did.filter((what) => what === 'wake').length > 1);
  expect(did.indexOf('look')).toBeLessThan(did.indexOf('wake'));
});

test('a lease of another holder is checked when it ends, without waiting for the next look', async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const { did, store, kind, parts, holder, pass } = world();
  const keeper = new LeaseKeeper(kind, holder, { ...parts, settings: { leaseMs: 30_000 } });
  onTestFinished(() => keeper.stop());
  const after = async (ms: number) => {
    pass(ms);
    await vi.advanceTimersByTimeAsync(ms);
    return did.splice(0).filter((what) => what === 'wake').length;
  };
  keeper.start();
  store.holders = [
    { id: 'ends soon', process: UNKNOWN, leftMs: 400 },
    { id: 'ends later', process: UNKNOWN, leftMs: 9_000 },
    { id: 'has ended', process: UNKNOWN, leftMs: -5 },
  ];
  expect(await after(1_000)).toBe(1);
  expect(await after(400)).toBe(0);
  store.holders = [{ id: 'ends later', process: UNKNOWN, leftMs: 8_600 }];
  expect(await after(1)).toBe(1);
  expect(await after(598)).toBe(0);
  expect(await after(1), 'the next look by the clock').toBe(1);
});

test('a holder that cannot reach a shared store gives up its leases before they end', async () => {
  const { did, store, kind, parts, holder, pass } = world();
  const keepers = [kind, { ...kind, isElsewhere: true }].map((one) => new LeaseKeeper(one, holder, parts));
  onTestFinished(() => {
    for (const keeper of keepers) keeper.stop();
  });
  const [alone, shared] = keepers as [LeaseKeeper<string>, LeaseKeeper<string>];
  shared.start();
  pass(20);
  await until('it renews', () => did.includes('renew a,b for 30'));
  store.fault = new Error('cut off');
  await until('it cannot renew any more', () => did.includes('heartbeat of tests: cut off'));
  pass(26);
  await until('a while has passed', () => did.filter((one) => one.endsWith('cut off')).length > 3);
  expect(did, 'most of the time is not over').not.toContain('lost a');
  pass(1);
  await until('it gives up', () => did.includes('lost a') && did.includes('lost b'));
  shared.stop();

  did.length = 0;
  alone.start();
  pass(1_000);
  await until('it cannot renew', () => did.filter((one) => one.endsWith('cut off')).length > 3);
  expect(did, 'nobody else reaches a file of this machine').not.toContain('lost a');
});
