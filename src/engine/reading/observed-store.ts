import type { Failure } from '../../core/errors.ts';
import { toPublicReceipt } from '../../core/public/session.ts';
import { toPublicTurn } from '../../core/public/turn.ts';
import type { Receipt } from '../../core/restore/receipt.ts';
import { begun, hasEnded, type Turn } from '../../core/turn/turn.ts';
import { NO_USAGE } from '../../core/turn/usage.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Fence } from '../../ports/store/leases.ts';
import type { Write } from '../../ports/store/writes.ts';
import type { Store } from '../../ports/store.ts';
import type { Telemetry } from '../../ports/telemetry.ts';

/** The same store, which also reports to telemetry: everything that happens to a turn is a write. */
export function observed(store: Store, telemetry: Telemetry, clock: Clock): Store {
  const writes = new ObservedWrites(telemetry, clock);
  return {
    ...store,
    async claim(request) {
      const claim = await store.claim(request);
      if (claim?.turn) telemetry.turnBegun(toPublicTurn(claim.turn));
      return claim;
    },
    async nextTurn(fence, agents) {
      const next = await store.nextTurn(fence, agents);
      writes.comesNext(fence, next?.turn ?? null);
      return next;
    },
    async commit(fence, counter, given) {
      const committed = await store.commit(fence, counter, given);
      for (const write of given) writes.report(fence, write);
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
      const cancelled = requeued.duplicate ? [] : requeued.cancelled;
      for (const { turnId } of cancelled) reportCancelled(telemetry, turnId, REQUEUED);
      return requeued;
    },
  };
}

class ObservedWrites {
  readonly #telemetry: Telemetry;
  readonly #clock: Clock;
  /** The turn that comes next under a lease, until it begins. Weak: if it never begins, it is kept no longer than the lease. */
  readonly #next = new WeakMap<Fence, Turn>();
  /** By turn. The receipt of an attempt may be written more than once; the last one is reported when the attempt ends. */
  readonly #receipts = new Map<string, Receipt>();

  constructor(telemetry: Telemetry, clock: Clock) {
    this.#telemetry = telemetry;
    this.#clock = clock;
  }

  /** Null: there is no next turn. */
  comesNext(fence: Fence, turn: Turn | null): void {
    if (turn === null) this.#next.delete(fence);
    else this.#next.set(fence, turn);
  }

  report(fence: Fence, write: Write): void {
    switch (write.write) {
      case 'begin': {
        const turn = this.#next.get(fence);
        if (turn?.id !== write.turn) break;
        this.#next.delete(fence);
        this.#telemetry.turnBegun(toPublicTurn(begun(turn, this.#clock.now())));
        break;
      }
      case 'receipt':
        if (write.turn === null) this.#telemetry.restored(toPublicReceipt(write.receipt), null);
        else this.#receipts.set(write.turn, write.receipt);
        break;
      case 'retry':
        this.#reportReceipt(write.turn);
        break;
      case 'end': {
        const { outcome, failure, usage, record } = write.end;
        this.#reportReceipt(write.turn);
        this.#telemetry.turnEnded({ id: write.turn, outcome, failure, usage, sessionId: record?.sessionId ?? null });
        break;
      }
    }
  }

  #reportReceipt(turn: string): void {
    const receipt = this.#receipts.get(turn);
    this.#receipts.delete(turn);
    if (receipt !== undefined) this.#telemetry.restored(toPublicReceipt(receipt), turn);
  }
}

const REQUEUED = { code: 'cancelled', message: 'Ended by a change of the queue.' } as const;

function reportCancelled(telemetry: Telemetry, id: string, failure: Failure | null): void {
  telemetry.turnEnded({ id, outcome: 'cancelled', failure, usage: NO_USAGE, sessionId: null });
}

/** One telemetry that reports to all of these. */
export function together(...all: readonly Telemetry[]): Telemetry {
  const tell = (report: (one: Telemetry) => void) => {
    for (const one of all) report(one);
  };
  return {
    turnBegun: (turn) => tell((one) => one.turnBegun(turn)),
    restored: (receipt, turn) => tell((one) => one.restored(receipt, turn)),
    turnEnded: (end) => tell((one) => one.turnEnded(end)),
    slots: (use) => tell((one) => one.slots?.(use)),
    connections: (read) => tell((one) => one.connections?.(read)),
  };
}
