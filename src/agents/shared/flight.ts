import type { AgentEvent, AgentOutcome } from '../../ports/agent.ts';
import { EventQueue } from './event-queue.ts';

/** How an agent is brought to stop. */
export interface Stopping {
  /** Asks it to. */
  ask(): void;
  /** Ends its process. */
  kill(): unknown;
  /** How long it may take to do as it is asked. */
  readonly graceMs: number;
}

/** One prompt in flight: its events, on their way to whoever runs the turn, and whether the agent was asked to stop. */
export class Flight {
  readonly events = new EventQueue();
  readonly #stopping: Stopping;
  /** Runs from the moment the agent was asked to stop; null: it was not. */
  #grace: NodeJS.Timeout | null = null;

  constructor(stopping: Stopping) {
    this.#stopping = stopping;
  }

  /** Whether the agent was asked to stop: however the turn ends then, it was cancelled. */
  get stopped(): boolean {
    return this.#grace !== null;
  }

  /** Asks the agent to stop, once, and ends it when it does not. */
  stop(): void {
    if (this.events.ended || this.stopped) return;
    this.#grace = setTimeout(() => void this.#stopping.kill(), this.#stopping.graceMs);
    this.#stopping.ask();
  }

  /** How it has ended when the agent's process is gone, and has not said so. */
  whenGone(message: string): AgentOutcome {
    return this.stopped ? { kind: 'cancelled' } : { kind: 'lost', message };
  }

  /** Every event up to and with `ended`. An abort stops the agent, and so does leaving in the middle. */
  handOut(signal: AbortSignal): AsyncGenerator<AgentEvent> {
    return this.events.handOut(signal, () => this.stop());
  }

  end(outcome: AgentOutcome): void {
    if (this.#grace !== null) clearTimeout(this.#grace);
    this.events.end(outcome);
  }
}

/** Why a prompt cannot be sent; null: it can. Nothing has left us then, so it may be tried again elsewhere. */
export function whyNotSent(signal: AbortSignal, busy: boolean, alive: boolean): AgentOutcome | null {
  if (signal.aborted) return { kind: 'cancelled' };
  const failed = (message: string) =>
    ({ kind: 'failed', code: 'agent_failed', message, again: true, unsent: true }) as const;
  if (busy) return failed('this session is still busy with a prompt');
  return alive ? null : failed('the agent’s process ended before the prompt was sent');
}
