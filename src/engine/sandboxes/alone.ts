import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { sandboxInUse } from '../../core/sandbox/sandbox.ts';
import type { WorkerInfo } from '../../ports/store/leases.ts';
import type { SandboxHold } from '../../ports/store/sandboxes.ts';
import type { Store } from '../../ports/store.ts';
import type { EngineParts } from '../parts.ts';

/*
 * Leases of sandboxes: exclusive while one is set up, put to rest or removed, and shared while a command runs in it. A lease is renewed
 * until the work has ended.
 */

export interface Holding {
  readonly parts: EngineParts;
  readonly worker: WorkerInfo;
  readonly owner: string;
  readonly id: string;
  readonly signal: AbortSignal;
}

/** How often we check whether another process still has the sandbox alone. */
const LOOK_MS = 200;

/** A holder for one piece of work: two pieces of work of the same process must not both have a sandbox alone. */
export function newHolder(worker: WorkerInfo): WorkerInfo {
  return { ...worker, id: `${worker.id}.${randomUUID()}` };
}

/** Waits until nobody else has it alone, and takes it. False: the signal has aborted. Throws as `holdSandbox` of the store. */
export async function hold(holding: Holding, how: Pick<SandboxHold, 'unused' | 'shared'> = {}): Promise<boolean> {
  const { parts, worker, owner, id, signal } = holding;
  while (!signal.aborted) {
    const other = await parts.store.holdSandbox(owner, id, { worker, leaseMs: parts.settings.leaseMs, ...how });
    if (other === null) return true;
    await waitForHolder(other.alone, holding);
  }
  return false;
}

/**
 * Renews the lease until the work has ended, then releases it. `lost` is aborted when another one has the sandbox alone, when the store
 * cannot be asked, and with `unused` also when somebody uses the sandbox.
 */
export async function whileHeld<T>(
  holding: Holding,
  work: (lost: AbortSignal) => Promise<T>,
  how: Pick<SandboxHold, 'unused'> = {},
): Promise<T> {
  const { parts, worker, owner, id } = holding;
  const lost = new AbortController();
  const renewing = startRenewing(holding, how, (why) => lost.abort(why));
  try {
    return await work(lost.signal);
  } finally {
    await renewing.stop();
    await parts.store.releaseSandbox(owner, id, worker.id);
  }
}

/** By store and sandbox: how many pieces of work of this process use it. They share one lease. */
const used = new WeakMap<Store, Map<string, { readonly worker: WorkerInfo; count: number }>>();

/**
 * Shares the sandbox with others: until the work has ended, it is neither removed nor put to rest. `take` takes the lease again, for work
 * that had the sandbox alone in between.
 */
export async function whileUsed<T>(holding: Holding, work: (take: () => Promise<boolean>) => Promise<T>): Promise<T> {
  const { parts, owner, id } = holding;
  const { store } = parts;
  const here = used.get(store) ?? new Map();
  used.set(store, here);
  const use = here.get(id) ?? { worker: newHolder(holding.worker), count: 0 };
  here.set(id, use);
  use.count += 1;
  const shared = { ...holding, worker: use.worker };
  const take = () => hold(shared, { shared: true });
  const renewing = startRenewing(shared, { shared: true }, () => {});
  try {
    await take();
    return await work(take);
  } finally {
    await renewing.stop();
    use.count -= 1;
    if (use.count === 0) {
      here.delete(id);
      await store.releaseSandbox(owner, id, use.worker.id);
    }
  }
}

/** Renews the lease until it is stopped. `stop` waits for a renewal that is under way: after the release, it would take the lease again. */
function startRenewing(
  { parts, worker, owner, id }: Holding,
  how: Pick<SandboxHold, 'unused' | 'shared'>,
  lost: (why: unknown) => void,
): { stop(): Promise<void> } {
  const { leaseMs } = parts.settings;
  const renew = async () => {
    try {
      const other = await parts.store.holdSandbox(owner, id, { worker, leaseMs, ...how });
      if (other !== null) lost(sandboxInUse('another process has taken it'));
    } catch (error) {
      lost(error);
    }
  };
  let renewal: Promise<void> | null = null;
  const timer = setInterval(() => {
    // A slow store is not asked again before it has answered.
    renewal ??= renew().finally(() => {
      renewal = null;
    });
  }, leaseMs / 3).unref();
  return {
    async stop() {
      clearInterval(timer);
      await renewal;
    },
  };
}

/** Waits for another holder for a moment. If that holder is dead, ends what it left running, and releases its lease. */
export async function waitForHolder(alone: WorkerInfo, { parts, worker, owner, id, signal }: Holding): Promise<void> {
  const { store, processes, sandboxes, settings } = parts;
  if (processes.status(alone.process) !== 'dead') {
    return delay(LOOK_MS, undefined, { signal }).catch(() => {});
  }
  for (const left of await sandboxes.orphans()) await sandboxes.end(left);
  const taken = await store.holdSandbox(owner, id, { worker, leaseMs: settings.leaseMs, instead: alone.id });
  if (taken === null) await store.releaseSandbox(owner, id, worker.id);
}
