import { existsSync } from 'node:fs';
import { flushCompileCache } from 'node:module';
import { ThroughlineError } from '../../../src/core/errors.ts';
import type { Write } from '../../../src/ports/store/writes.ts';
import type { Store } from '../../../src/ports/store.ts';
import { say } from './commands.ts';

/** What happens to a process at one exact step: right before or right after a verb of its store is called. */
export interface Hook {
  readonly verb: keyof Store;
  /** For a commit: it has a write of this kind. Events count by the kind of the event. */
  readonly write?: string;
  readonly side: 'before' | 'after';
  /** At which call, from 1. */
  readonly call?: number;
  /** Calls are counted only after a commit that had this kind of write. Left out: from the beginning. */
  readonly since?: string;
  /** `stop`: SIGSTOP. `block`: blocks the event loop until a file of this name exists. */
  readonly action: 'kill' | 'stop' | { readonly block: string };
}

/** The store with the hook. It also reports when the store refused a verb because the lease was lost. */
export function hooked(store: Store, hook: Hook | null): Store {
  let calls = 0;
  let armed = hook?.since === undefined;
  return new Proxy(store, {
    get(target, name) {
      const verb = target[name as keyof Store] as (...args: unknown[]) => unknown;
      if (name === 'listen' || typeof verb !== 'function') return verb;
      return async (...args: unknown[]) => {
        const here = hook !== null && armed && matches(hook, name, args) && ++calls === (hook.call ?? 1);
        if (here && hook.side === 'before') act(hook.action);
        const result = await Promise.resolve(verb.apply(target, args)).catch((error: unknown) => refusal(name, error));
        if (name === 'commit' && hook?.since !== undefined) armed ||= kindsOf(args).includes(hook.since);
        if (name === 'renew' && Array.isArray(result) && result.length > 0) say({ refused: 'renew' });
        if (here && hook.side === 'after') act(hook.action);
        return result;
      };
    },
  });
}

function matches(hook: Hook, verb: string | symbol, args: readonly unknown[]): boolean {
  if (verb !== hook.verb) return false;
  return hook.write === undefined || kindsOf(args).includes(hook.write);
}

/** Of a commit: the kinds of its writes. */
function kindsOf(args: readonly unknown[]): string[] {
  const writes = (args[2] ?? []) as readonly Write[];
  return writes.map((write) => (write.write === 'event' ? write.event.kind : write.write));
}

/** A limit for tests that hang. Long enough that another process can take over on a busy machine. */
const LONGEST_BLOCK_MS = 120_000;
const POLL_MS = 10;

function act(action: Hook['action']): void {
  if (action === 'kill') {
    flushCompileCache(); // for the next one, as in `ready`
    process.kill(process.pid, 'SIGKILL');
  } else standStill(action);
}

/** Never called in the middle of a transaction: a process that is stopped there keeps the database locked for all others. */
export function standStill(how: Exclude<Hook['action'], 'kill'>): void {
  say({ stopped: true });
  if (how === 'stop') process.kill(process.pid, 'SIGSTOP');
  else {
    const never = new Int32Array(new SharedArrayBuffer(4));
    const end = performance.now() + LONGEST_BLOCK_MS;
    while (!existsSync(how.block) && performance.now() < end) Atomics.wait(never, 0, 0, POLL_MS);
  }
  say({ woke: true });
}

function refusal(verb: string | symbol, error: unknown): never {
  if (error instanceof ThroughlineError && error.code === 'lease_lost') say({ refused: String(verb) });
  throw error;
}
