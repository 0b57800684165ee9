import type { Failure } from '../../core/errors.ts';
import { judgeTime, type TimeLimits } from '../../core/limits/time-limits.ts';
import type { ToolCallFields, Update } from '../../core/turn/update.ts';
import type { Clock } from '../../ports/clock.ts';
import { LONGEST_TIMER_MS } from '../parts.ts';

export interface Alarms {
  /** The agent is silent. `endsInMs`: when the turn is ended if it stays silent; null: never. */
  silent(payload: { silentMs: number; tool: string | null; endsInMs: number | null }): void;
  over(failure: Failure): void;
}

/** Measures a running turn, and how long its agent has been silent. The time in which it waits for an answer does not count. */
export class TurnClock {
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

  /** A sign of life. Called for every word of an answer, so it only notes the time; the timer looks at it when it fires. */
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

  /** If this process was stopped for a while, what the agent said meanwhile is read before anything is decided. */
  #lookIn(ms: number): void {
    const inMs = Math.min(Math.ceil(ms), LONGEST_TIMER_MS);
    this.#timer = setTimeout(() => setImmediate(() => this.#look()), inMs);
  }
}
