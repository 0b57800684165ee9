import { setTimeout as delay } from 'node:timers/promises';
import type { Failure } from '../../core/errors.ts';
import type { EventPayloads } from '../../core/event.ts';
import { effectiveTimes, judgeTime, type TimeLimits } from '../../core/limits/time-limits.ts';
import type { Permission } from '../../core/turn/permission.ts';
import type { Turn } from '../../core/turn/turn.ts';
import type { TurnStop } from '../../core/turn/turn-decision.ts';
import type { ToolCallFields, Update } from '../../core/turn/update.ts';
import type { Clock } from '../../ports/clock.ts';
import { LONGEST_TIMER_MS } from '../parts.ts';
import type { Begun, Held } from '../worker/held.ts';
import type { Slot } from '../worker/slots.ts';

/** Nobody notices when a cancel or an answer takes effect this much later. */
const GATHER_MS = 5;

/** How the end of this program stops a turn. */
export interface Stops {
  /** Stops it at once. */
  readonly shutdown: AbortSignal;
  /** Stops it as long as nothing was sent; null: nothing does. */
  readonly unsent: AbortSignal | null;
}

/**
 * Everything that can stop a running turn or answers its questions: a cancel request and answers to permissions, both stored facts
 * that any process may write; a limit that is reached; the end of this program; and the loss of the lease.
 */
export class TurnSignal {
  readonly #abort = new AbortController();
  readonly #held: Held;
  readonly #turn: Turn;
  readonly #slot: Slot | null;
  readonly #shutdown: AbortSignal;
  #unsent: AbortSignal | null;
  #cancelled = false;
  /** The limit that was reached; null: none was. */
  #limit: Failure | null = null;
  readonly #waiting = new Map<string, (permission: Permission) => void>();
  readonly #clock: TurnClock;
  /** Something may have been stored since the last look began. */
  #mayHaveChanged = false;
  #isLooking = false;
  #isClosed = false;

  readonly #poll: NodeJS.Timeout;

  constructor(held: Held, { turn, takenAway }: Begun, { shutdown, unsent }: Stops) {
    this.#held = held;
    this.#turn = turn;
    this.#slot = held.slot;
    this.#shutdown = shutdown;
    this.#unsent = unsent;
    for (const outside of this.#outside) {
      if (outside.aborted) this.#abort.abort(outside.reason);
      outside.addEventListener('abort', this.#stopWith);
    }
    // A notification may get lost.
    this.#poll = setInterval(() => this.lookAgain(), held.parts.settings.pollMs);
    // For whatever came between the begin of the turn and now.
    if (held.wasNotified) this.lookAgain();
    if (turn.cancelRequested) this.#cancel();
    void takenAway.then((taken) => taken && this.#cancel());
    this.#clock = new TurnClock(timesOf(held, turn), held.parts.clock, {
      silent: (payload) => this.#reportSilence({ n: turn.n, ...payload }),
      over: (failure) => this.stopFor(failure),
    });
  }

  /** Aborts when the turn has to stop, or when the lease is lost. */
  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  /** Why the turn has to stop; null: it does not have to. */
  get stop(): TurnStop | null {
    if (this.#limit !== null) return this.#limit;
    if (this.#cancelled) return 'cancelled';
    return this.#shutdown.aborted || this.#unsent?.aborted ? 'shutdown' : null;
  }

  /** The prompt is about to leave. */
  sending(): void {
    this.#unsent = null;
  }

  /** A limit is reached. What stopped the turn first counts. */
  stopFor(failure: Failure): void {
    if (this.signal.aborted) return;
    this.#limit = failure;
    this.#abort.abort(failure);
  }

  #cancel(): void {
    this.#cancelled = true;
    this.#abort.abort();
  }

  get #outside(): readonly AbortSignal[] {
    return [this.#shutdown, this.#held.lease.lost];
  }

  readonly #stopWith = ({ target }: Event): void => this.#abort.abort((target as AbortSignal).reason);

  /** The agent did something: it is not silent. */
  heard(update?: Update): void {
    this.#clock.heard(update);
  }

  /**
   * Calls back once, when the permission was answered, denied or withdrawn. Until then the clock of the turn is stopped, and another
   * turn may run in its slot.
   */
  onPermission(id: string, decided: (permission: Permission) => void): void {
    this.#waiting.set(id, decided);
    this.#clock.pause();
    this.#slot?.ask();
    this.lookAgain();
  }

  get openQuestions(): number {
    return this.#waiting.size;
  }

  /** The attempt that asked has ended. */
  noMoreQuestions(): void {
    this.#waiting.clear();
    this.#resume();
  }

  /**
   * Reads the turn and its questions soon: somebody may have cancelled or answered. Several calls in a row are one look, and calls during a
   * look are one more after it.
   */
  lookAgain(): void {
    this.#mayHaveChanged = true;
    if (!this.#isLooking) void this.#lookWhileChanged();
  }

  close(): void {
    for (const outside of this.#outside) outside.removeEventListener('abort', this.#stopWith);
    this.#clock.close();
    clearInterval(this.#poll);
    this.#isClosed = true;
  }

  async #lookWhileChanged(): Promise<void> {
    this.#isLooking = true;
    while (this.#mayHaveChanged && !this.#isClosed) {
      await delay(GATHER_MS);
      this.#mayHaveChanged = false;
      // If the store is closed or cannot be reached, the lease is lost as well. The next call looks again.
      if (!this.#isClosed) await this.#look().catch(() => {});
    }
    this.#isLooking = false;
  }

  async #look(): Promise<void> {
    const { store } = this.#held.parts;
    const { owner, id: conversation } = this.#held.conversation;
    const turn = await store.findTurn(owner, this.#turn.id);
    if (turn?.cancelRequested) this.#cancel();
    const asked = [...this.#waiting];
    if (asked.length === 0) return;
    const open = new Set(await store.openPermissions(owner, conversation));
    for (const [id, decided] of asked) {
      const permission = open.has(id) ? null : await store.findPermission(owner, id);
      if (permission && this.#waiting.delete(id)) decided(permission);
    }
    if (this.#waiting.size === 0) this.#resume();
  }

  #resume(): void {
    this.#clock.resume();
    this.#slot?.resume();
  }

  /** If this cannot be stored, the lease is lost or the storage is full. Both are handled elsewhere. */
  #reportSilence(payload: EventPayloads['turn.stalled']): void {
    const event = { kind: 'turn.stalled', turn: this.#turn.id, payload } as const;
    this.#held.lease.write({ write: 'event', event }).catch(() => {});
  }
}

/** Limits of the turn come first, then those of its agent, then those of the settings. */
function timesOf({ parts }: Held, { agent, options }: Turn): TimeLimits {
  return effectiveTimes(parts.settings.times, parts.agents.get(agent)?.times, options.limits);
}

// ── its time ───────────────────────────────────────────────────────────────────────────────────────────────────────────

interface Alarms {
  /** The agent is silent. `endsInMs`: when the turn is ended if it stays silent; null: never. */
  silent(payload: { silentMs: number; tool: string | null; endsInMs: number | null }): void;
  over(failure: Failure): void;
}

/** Measures a running turn, and how long its agent has been silent. The time in which it waits for an answer does not count. */
class TurnClock {
  readonly #limits: TimeLimits;
  readonly #clock: Clock;
  readonly #alarms: Alarms;
  /** Tools that have begun and not ended, by id. */
  readonly #tools = new Map<string, string>();
  #beganAt: number;
  #heardAt: number;
  #noticed = false;
  /** Since when a question waits; null: none does. */
  #pausedAt: number | null = null;
  #timer: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(limits: TimeLimits, clock: Clock, alarms: Alarms) {
    this.#limits = limits;
    this.#clock = clock;
    this.#alarms = alarms;
    this.#beganAt = clock.monotonic();
    this.#heardAt = this.#beganAt;
    this.#look();
  }

  /** Called for every word of an answer, so it only notes the time. The timer compares it when it fires. */
  heard(update?: Update): void {
    this.#heardAt = this.#clock.monotonic();
    if (update?.sessionUpdate === 'tool_call' || update?.sessionUpdate === 'tool_call_update') {
      this.#note(update as ToolCallFields);
    }
    if (!this.#noticed) return;
    this.#noticed = false;
    this.#look();
  }

  pause(): void {
    this.#pausedAt ??= this.#clock.monotonic();
    clearTimeout(this.#timer);
  }

  resume(): void {
    if (this.#pausedAt === null) return;
    this.#heardAt = this.#clock.monotonic();
    this.#beganAt += this.#heardAt - this.#pausedAt;
    this.#pausedAt = null;
    this.#look();
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
  }

  #note({ toolCallId, title, status }: ToolCallFields): void {
    if (status === 'completed' || status === 'failed') this.#tools.delete(toolCallId);
    else this.#tools.set(toolCallId, title ?? this.#tools.get(toolCallId) ?? 'a tool');
  }

  #look(): void {
    if (this.#closed || this.#pausedAt !== null) return;
    clearTimeout(this.#timer);
    const now = this.#clock.monotonic();
    const passed = { sinceBegin: now - this.#beganAt, sinceHeard: now - this.#heardAt, noticed: this.#noticed };
    const tool = [...this.#tools.values()].at(-1) ?? null;
    const verdict = judgeTime(this.#limits, passed, tool);
    switch (verdict.due) {
      case 'end':
        this.close();
        this.#alarms.over(verdict.failure);
        break;
      case 'notice':
        this.#noticed = true;
        this.#alarms.silent({ silentMs: Math.round(passed.sinceHeard), tool, endsInMs: verdict.endsInMs });
        this.#look();
        break;
      case 'nothing':
        if (verdict.inMs !== null) this.#lookIn(verdict.inMs);
    }
  }

  /** `setImmediate`: if this process was frozen for a while, the agent's output of that time is read before the silence is judged. */
  #lookIn(ms: number): void {
    const inMs = Math.min(Math.ceil(ms), LONGEST_TIMER_MS);
    this.#timer = setTimeout(() => setImmediate(() => this.#look()), inMs);
  }
}
