import { addAbortListener } from 'node:events';
import type { AgentEvent, AgentOutcome, Opened } from '../../ports/agent.ts';
import { Inbox } from './inbox.ts';

/** How to stop an agent. */
export interface Stopping {
  /** Asks it to stop. */
  ask(): void;
  /** Ends its process. */
  kill(): unknown;
  /** How long it may take to stop before it is killed. */
  readonly graceMs: number;
}

/** One prompt in flight: a queue of its events for the turn that reads them. The last event is `ended`; it comes once. */
export class Flight {
  readonly events = new Inbox<AgentEvent>();
  readonly #stopping: Stopping;
  ended = false;
  /** Why the turn fails when the agent has stopped; null: it then counts as cancelled. */
  #failure: Extract<AgentOutcome, { kind: 'failed' }> | null = null;
  /** Runs from the moment the agent was asked to stop; null: it was not. */
  #grace: NodeJS.Timeout | null = null;

  constructor(stopping: Stopping) {
    this.#stopping = stopping;
  }

  /** Whether the agent was asked to stop: the turn then counts as cancelled, or as failed, however it ends. */
  get stopped(): boolean {
    return this.#grace !== null;
  }

  /** Asks the agent to stop, once, and kills it when it does not. */
  stop(): void {
    if (this.ended || this.stopped) return;
    this.#grace = setTimeout(() => void this.#stopping.kill(), this.#stopping.graceMs);
    this.#stopping.ask();
  }

  /** Stops the agent, because it can only go on in vain. Does nothing when it was already asked to stop. */
  fail(why: { readonly code: 'signed_out'; readonly message: string; readonly hint: string }): void {
    if (this.ended || this.stopped) return;
    this.#failure = { kind: 'failed', ...why, again: false };
    this.stop();
  }

  /** The outcome when the agent's process ended without one. */
  whenGone(message: string): AgentOutcome {
    return this.stopped ? { kind: 'cancelled' } : { kind: 'lost', message };
  }

  /** Every event, up to and including `ended`. An abort stops the agent, and so does a reader that leaves before the end. */
  async *deliver(signal: AbortSignal): AsyncGenerator<AgentEvent> {
    using _ = addAbortListener(signal, () => this.stop());
    try {
      yield* this.events;
    } finally {
      this.stop();
      this.events.discard();
    }
  }

  end(outcome: AgentOutcome): void {
    if (this.#grace !== null) clearTimeout(this.#grace);
    this.ended = true;
    const failure = outcome.kind === 'cancelled' ? this.#failure : null;
    this.events.push({ type: 'ended', outcome: failure === null ? outcome : { ...outcome, ...failure } });
    this.events.close();
  }
}

/**
 * The position that a prompt must follow; undefined: nothing to check. A session without prompts must be empty. For
 * other sessions only the caller knows the position.
 */
export function mustFollow(expected: string | null, prompted: boolean): string | null | undefined {
  return expected === null && prompted ? undefined : expected;
}

/** Why a prompt cannot be sent; null: it can. Nothing was sent, so the prompt may be tried again elsewhere. */
export function whyNotSent(signal: AbortSignal, busy: boolean, alive: boolean): AgentOutcome | null {
  if (signal.aborted) return { kind: 'cancelled' };
  const failed = (message: string) =>
    ({ kind: 'failed', code: 'agent_failed', message, again: true, unsent: true }) as const;
  if (busy) return failed('this session is still busy with a prompt');
  return alive ? null : failed('the agent’s process ended before the prompt was sent');
}

export type Refusal = Extract<Opened, { ok: false }>;

export function refused(reason: Refusal['reason'], message: string, hint?: string): Refusal {
  return { ok: false, reason, message, ...(hint !== undefined && { hint }) };
}

export const OPENING_CANCELLED: Refusal = refused('refused', 'opening was cancelled');
