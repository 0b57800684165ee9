import { setTimeout as delay } from 'node:timers/promises';
import type { EventDraft } from '../../core/event.ts';
import type { Sandbox } from '../../core/sandbox/sandbox.ts';
import type { OpenedSandbox } from '../../ports/store/sandboxes.ts';
import type { Held } from '../worker/held.ts';

/** How long we wait before we look again whether another process still has the sandbox alone. */
const LOOK_MS = 200;

/**
 * Makes the sandbox of a held conversation ready for a turn: notes that this process opens it, which keeps it from being removed.
 * Returns early when the signal aborts.
 */
export async function readySandbox(held: Held, signal: AbortSignal): Promise<void> {
  const entered = await enter(held, signal);
  if (entered === null) return;
  const { opened, sandbox } = entered;
  if (opened !== 'same' && isWorthTelling(held, sandbox)) {
    const { id, name } = sandbox;
    const event: EventDraft = { kind: `sandbox.${opened}`, turn: null, payload: { id, name } };
    held.lease.note({ write: 'event', event });
  }
}

/** A folder of one conversation alone is made with it, and says nothing new. */
function isWorthTelling({ parts: { sandboxes } }: Held, { name }: Sandbox): boolean {
  return name !== null || sandboxes.rest !== undefined;
}

/** Waits until no other process has it alone. Null: the signal has aborted. */
async function enter(held: Held, signal: AbortSignal): Promise<OpenedSandbox | null> {
  const { parts, worker, conversation } = held;
  const { owner, sandbox: id, place } = conversation;
  const { store, processes, settings } = parts;
  while (!signal.aborted) {
    const entered = await store.openSandbox(owner, { id, place }, worker);
    if ('opened' in entered) return entered;
    const { alone } = entered;
    if (processes.status(alone.process) === 'dead') {
      await store.holdSandbox(owner, id, { worker, leaseMs: settings.leaseMs, instead: alone.id });
      await store.releaseSandbox(owner, id, worker.id);
    } else await delay(LOOK_MS, undefined, { signal }).catch(() => {});
  }
  return null;
}
