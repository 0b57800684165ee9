import type { Failure } from '../../core/errors.ts';
import type { Receipt } from '../../core/restore/receipt.ts';
import { hasEnded } from '../../core/turn/turn.ts';
import { NO_USAGE } from '../../core/turn/usage.ts';
import type { Requeued } from '../../ports/store/turns.ts';
import type { Write } from '../../ports/store/writes.ts';
import type { Store } from '../../ports/store.ts';
import type { Telemetry } from '../../ports/telemetry.ts';

/** The same store, which also reports to telemetry: everything that happens to a turn is a write. */
export function observed(store: Store, telemetry: Telemetry): Store {
  /** By turn. The receipt of an attempt may be written more than once; the last one is reported when the attempt ends. */
  const receipts = new Map<string, Receipt>();

  function reportReceipt(turn: string): void {
    const receipt = receipts.get(turn);
    receipts.delete(turn);
    if (receipt !== undefined) telemetry.restored(receipt, turn);
  }

  function report(write: Write): void {
    switch (write.write) {
      case 'receipt':
        if (write.turn === null) telemetry.restored(write.receipt, null);
        else receipts.set(write.turn, write.receipt);
        break;
      case 'retry':
        reportReceipt(write.turn);
        break;
      case 'end': {
        const { outcome, failure, usage, record } = write.end;
        reportReceipt(write.turn);
        telemetry.turnEnded({ id: write.turn, outcome, failure, usage, sessionId: record?.sessionId ?? null });
        break;
      }
    }
  }

  return {
    ...store,
    async claim(request) {
      const claim = await store.claim(request);
      if (claim?.turn) telemetry.turnBegun(claim.turn);
      return claim;
    },
    async begin(fence, agents) {
      const begun = await store.begin(fence, agents);
      if (begun !== null) telemetry.turnBegun(begun.turn);
      return begun;
    },
    async commit(fence, counter, writes) {
      const committed = await store.commit(fence, counter, writes);
      for (const write of writes) report(write);
      return committed;
    },
    async requestCancel(owner, id, by) {
      const before = await store.findTurn(owner, id);
      const turn = await store.requestCancel(owner, id, by);
      // A queued turn ends at once, without a worker.
      const wasOpen = before !== null && !hasEnded(before.state);
      if (wasOpen && turn.state === 'cancelled') reportCancelled(telemetry, id, turn.failure);
      return turn;
    },
    async requeue(owner, request) {
      const requeued = await store.requeue(owner, request);
      if (!requeued.duplicate) reportRequeued(telemetry, requeued);
      return requeued;
    },
  };
}

const REQUEUED = { code: 'cancelled', message: 'Ended by a change of the queue.' } as const;

function reportRequeued(telemetry: Telemetry, { cancelled }: Requeued): void {
  for (const { turnId } of cancelled) reportCancelled(telemetry, turnId, REQUEUED);
}

function reportCancelled(telemetry: Telemetry, id: string, failure: Failure | null): void {
  telemetry.turnEnded({ id, outcome: 'cancelled', failure, usage: NO_USAGE, sessionId: null });
}

/** Reports to all of them. */
export function together(...all: readonly Telemetry[]): Telemetry {
  return {
    turnBegun: (turn) => {
      for (const one of all) one.turnBegun(turn);
    },
    restored: (receipt, turn) => {
      for (const one of all) one.restored(receipt, turn);
    },
    turnEnded: (end) => {
      for (const one of all) one.turnEnded(end);
    },
    slots: (use) => {
      for (const one of all) one.slots?.(use);
    },
    connections: (read) => {
      for (const one of all) one.connections?.(read);
    },
  };
}
