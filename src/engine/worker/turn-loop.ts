import { ThroughlineError } from '../../core/errors.ts';
import type { Turn } from '../../core/turn.ts';
import type { Claim } from '../../ports/store/leases.ts';
import type { Accepted } from '../../ports/store/turns.ts';
import { isLost, isStorageFault } from '../faults.ts';
import type { EngineParts } from '../parts.ts';
import type { Changes } from '../reading/changes.ts';
import { endUnsent } from '../turn/end-turn.ts';
import { recover } from '../turn/recover.ts';
import { runTurn } from '../turn/run-turn.ts';
import type { Claims } from './claims.ts';
import type { Expected } from './expected-turn.ts';
import { type HeadStart, headStartSoon, type Outlook } from './head-start.ts';
import type { Hold } from './hold.ts';

/** A hold, and what is known of the turns in it. */
export interface Entry {
  readonly hold: Hold;
  /** Resolves when nothing is being done with it; never rejects. */
  busy: Promise<void>;
  /** Pieces of work that wait for their turn at it: it is not let go before they had it. */
  waiting: number;
  /** The bell has rung for it since we last looked for a turn. */
  rung: boolean;
  /** The last turn that was run here; null: none yet. */
  last: Pick<Turn, 'n' | 'agent'> | null;
  /** What is known of its next turn while it is warm; null: nobody has looked. */
  outlook: Promise<Outlook | null> | null;
  /** Resolves when the turn for which its session is looked at is accepted: later ones must not overtake it; null: there is none. */
  looking: Promise<unknown> | null;
}

/** The end of this process, in two steps. */
export interface Stopping {
  /** No turn is begun any more. */
  readonly isClosed: boolean;
  /** Aborts when those that run are interrupted. */
  readonly shutdown: AbortSignal;
}

interface Begun {
  /** Null: none was, because this one was refused or another comes first. */
  readonly turn: Turn | null;
  /** Null: it is still to be sent. */
  readonly start: HeadStart | null;
}

/** Runs the turns of a hold, one after the other: first what an earlier holder has left, then whatever is open. */
export class TurnLoop {
  readonly #parts: EngineParts;
  readonly #changes: Changes;
  readonly #claims: Claims;
  readonly #stopping: Stopping;

  constructor(parts: EngineParts, changes: Changes, claims: Claims, stopping: Stopping) {
    this.#parts = parts;
    this.#changes = changes;
    this.#claims = claims;
    this.#stopping = stopping;
  }

  /** Resolves when there is none left to run here. `toOthers`: one is open, and waits for a process that knows its agent. */
  async run(entry: Entry, claim: Claim | null, expected: Expected | null): Promise<{ toOthers: boolean }> {
    const { hold } = entry;
    // Whatever has lost it, nothing goes on under a lease that is lost. One that is expected has to be accepted first all the same.
    if (expected === null) hold.lease.lost.throwIfAborted();
    if (claim?.unfinished) {
      await recover(hold, claim.unfinished);
      this.#claims.settle(hold.conversation.id, claim.unfinished.id);
    }
    const first = expected === null ? null : await this.#acceptExpected(entry, expected);
    let start = first?.start ?? null;
    let turn = claim?.turn ?? (first === null ? await this.#next(entry) : first.turn);
    for (; turn !== null; turn = await this.#next(entry)) {
      entry.outlook = null;
      await this.#run(hold, turn, start);
      start = null;
      // Whoever waits for its end has read of it by then.
      await new Promise(setImmediate);
      entry.last = { n: turn.n, agent: turn.agent };
      this.#claims.settle(hold.conversation.id, turn.id);
    }
    // One that came after we last looked may be ours: its bell has rung, and then we look again.
    return { toOthers: (await this.#waitsForOthers(hold)) && !entry.rung };
  }

  async #acceptExpected(entry: Entry, { owner, turn, accept }: Expected): Promise<Begun> {
    const { hold } = entry;
    let start: HeadStart | null = null;
    let taken: Promise<Accepted | null> = Promise.resolve(null);
    try {
      start = await headStartSoon(hold, turn, entry.last, entry.outlook);
      const next = { agents: [...this.#parts.agents.keys()], ahead: start?.ahead ?? null };
      if (!this.#stopping.isClosed) taken = hold.lease.accept(owner, turn, next);
    } finally {
      accept(taken);
    }
    // Whoever submitted it hears of a fault: no reason to end a session.
    const accepted = await taken.catch(() => null);
    if (accepted?.begun) return { turn: accepted.begun, start: accepted.written ? start : null };
    return { turn: await this.#next(entry, true), start: null };
  }

  async #next(entry: Entry, expected = false): Promise<Turn | null> {
    if (this.#stopping.isClosed) return null;
    entry.rung = false;
    const { hold } = entry;
    const { settings, store, agents } = this.#parts;
    // A process that keeps nothing warm runs its conversation up to its own turns, and leaves the rest to others.
    if (settings.claims === 'own' && settings.maxWarm === 0 && !this.#claims.wants(hold.conversation.id)) return null;
    return store.begin(hold.lease.fence, [...agents.keys()]).catch((error: unknown) => {
      // It was not accepted either, and whoever submitted it hears why: no reason to end a session.
      if (expected && isStorageFault(error) && !isLost(error)) return null;
      throw error;
    });
  }

  /** A fault of this program ends the turn as failed; it must not come back for ever. */
  async #run(hold: Hold, turn: Turn, start: HeadStart | null): Promise<void> {
    try {
      await runTurn(hold, turn, start, this.#changes, this.#stopping.shutdown);
    } catch (error) {
      if (hold.lease.lost.aborted || isStorageFault(error)) throw error;
      this.#parts.onBug(error, `turn ${turn.id}`);
      const now = await this.#parts.store.findTurn(hold.conversation.owner, turn.id);
      if (now?.sent) await recover(hold, now);
      else await endUnsent(hold, turn, { code: 'internal', message: 'Throughline failed; its log says why.' }, null);
    }
  }

  /** A turn is open and was not given to us: its agent is one that only others know. It must not wait for us to be idle. */
  async #waitsForOthers({ conversation, live }: Hold): Promise<boolean> {
    if (live.size === 0 || this.#stopping.isClosed) return false;
    const summary = await this.#parts.store.summary(conversation.owner, conversation.id).catch((error: unknown) => {
      throw isNotFound(error) ? new ThroughlineError('lease_lost', 'The conversation was erased.') : error;
    });
    return summary.open > 0;
  }
}

function isNotFound(error: unknown): boolean {
  return error instanceof ThroughlineError && error.code === 'not_found';
}
