import type { Receipt } from '../../core/receipt.ts';
import { hasEnded } from '../../core/turn.ts';
import { NO_USAGE } from '../../core/usage.ts';
import type { Write } from '../../ports/store/writes.ts';
import type { Store } from '../../ports/store.ts';
import type { Telemetry } from '../../ports/telemetry.ts';

/** The same store, which tells what was done through it: everything that happens to a turn is a write. */
export function observed(store: Store, telemetry: Telemetry): Store {
  /** The receipt of a running attempt is written more than once; the last one counts. */
  const receipts = new Map<string, Receipt>();

  function settleReceipt(turn: string): Receipt | null {
    const receipt = receipts.get(turn) ?? null;
    receipts.delete(turn);
    if (receipt !== null) telemetry.restored(receipt, turn);
    return receipt;
  }

  function note(write: Write): void {
    switch (write.write) {
      case 'receipt':
        if (write.turn === null) telemetry.restored(write.receipt, null);
        else receipts.set(write.turn, write.receipt);
        break;
      case 'retry':
        settleReceipt(write.turn);
        break;
      case 'end': {
        const { outcome, failure, usage, record } = write.end;
        settleReceipt(write.turn);
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
      const turn = await store.begin(fence, agents);
      if (turn !== null) telemetry.turnBegun(turn);
      return turn;
    },
    async commit(fence, counter, writes) {
      const committed = await store.commit(fence, counter, writes);
      for (const write of writes) note(write);
      return committed;
    },
    async requestCancel(owner, id, by) {
      const before = await store.findTurn(owner, id);
      const turn = await store.requestCancel(owner, id, by);
      // A queued one ends on the spot, and no worker hears of it.
      if (before !== null && !hasEnded(before.state) && turn.state === 'cancelled') {
        telemetry.turnEnded({ id, outcome: 'cancelled', failure: turn.failure, usage: NO_USAGE, sessionId: null });
      }
      return turn;
    },
  };
}

/** Several who are told, as one. */
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
  };
}
