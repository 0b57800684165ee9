import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { sandboxInUse } from '../../core/sandbox/sandbox.ts';
import type { WorkerInfo } from '../../ports/store/leases.ts';
import type { SandboxHold } from '../../ports/store/sandboxes.ts';
import type { Store } from '../../ports/store.ts';
import type { EngineParts } from '../parts.ts';

/*
 * Who has a sandbox for something that others must not disturb: alone, to set it up or to leave it; or beside others, while a command runs in
 * it. Each is a lease in the store, which is renewed until the work has ended.
 */

export interface Holding {
  readonly parts: EngineParts;
  readonly worker: WorkerInfo;
  readonly owner: string;
  readonly id: string;
  readonly signal: AbortSignal;
}

/** How long we wait before we look again whether another process still has the sandbox alone. */
const LOOK_MS = 200;

/** Two pieces of work of one process must not both have it alone. */
export function holderIn(worker: WorkerInfo): WorkerInfo {
  return { ...worker, id: `${worker.id}.${randomUUID()}` };
}

/** Takes it when nobody else has it alone. False: the signal has aborted. The rest as in the store. */
export async function hold(holding: Holding, how: Pick<SandboxHold, 'unused' | 'shared'> = {}): Promise<boolean> {
  const { parts, worker, owner, id, signal } = holding;
  while (!signal.aborted) {
    const other = await parts.store.holdSandbox(owner, id, { worker, leaseMs: parts.settings.leaseMs, ...how });
    if (other === null) return true;
    await waitFor(other.alone, holding);
  }
  return false;
}

/**
 * Keeps what was taken until the work has ended, and gives it back. `lost` is aborted when another one has it alone, with `unused` also when
 * somebody uses it, and when the store cannot say.
 */
export async function whileHeld<T>(
  holding: Holding,
  work: (lost: AbortSignal) => Promise<T>,
  how: Pick<SandboxHold, 'unused'> = {},
): Promise<T> {
  const { parts, worker, owner, id } = holding;
  const lost = new AbortController();
  const renewing = renewed(holding, how, (why) => lost.abort(why));
  try {
    return await work(lost.signal);
  } finally {
    clearInterval(renewing);
    await parts.store.releaseSandbox(owner, id, worker.id);
  }
}

/** What runs in sandboxes for this process, by store and sandbox: all of one sandbox have one lease. */
const used = new WeakMap<Store, Map<string, { readonly worker: WorkerInfo; count: number }>>();

/**
 * Uses it beside others: until the work has ended, it is neither removed nor put to rest. `take` does that once more, for work that itself
 * had the sandbox alone in between.
 */
export async function whileUsed<T>(holding: Holding, work: (take: () => Promise<boolean>) => Promise<T>): Promise<T> {
  const { parts, owner, id } = holding;
  const { store } = parts;
  const here = used.get(store) ?? new Map();
  used.set(store, here);
  const use = here.get(id) ?? { worker: holderIn(holding.worker), count: 0 };
  here.set(id, use);
  use.count += 1;
  const shared = { ...holding, worker: use.worker };
  const take = () => hold(shared, { shared: true });
  const renewing = renewed(shared, { shared: true }, () => {});
  try {
    await take();
    return await work(take);
  } finally {
    clearInterval(renewing);
    use.count -= 1;
    if (use.count === 0) {
      here.delete(id);
      await store.releaseSandbox(owner, id, use.worker.id);
    }
  }
}

function renewed(
  { parts, worker, owner, id }: Holding,
  how: Pick<SandboxHold, 'unused' | 'shared'>,
  lost: (why: unknown) => void,
): NodeJS.Timeout {
  const { leaseMs } = parts.settings;
  return setInterval(() => {
    parts.store
      .holdSandbox(owner, id, { worker, leaseMs, ...how })
      .then((other) => other !== null && lost(sandboxInUse('another process has taken it')), lost);
  }, leaseMs / 3).unref();
}

/** What a dead one left running in it is ended first. */
export async function waitFor(alone: WorkerInfo, { parts, worker, owner, id, signal }: Holding): Promise<void> {
  const { store, processes, sandboxes, settings } = parts;
  if (processes.status(alone.process) !== 'dead') {
    return delay(LOOK_MS, undefined, { signal }).catch(() => {});
  }
  for (const left of await sandboxes.orphans()) await sandboxes.end(left);
  const taken = await store.holdSandbox(owner, id, { worker, leaseMs: settings.leaseMs, instead: alone.id });
  if (taken === null) await store.releaseSandbox(owner, id, worker.id);
}
