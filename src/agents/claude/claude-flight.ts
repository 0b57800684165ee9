import type { AgentOutcome, PromptRequest } from '../../ports/agent.ts';
import { Flight, type Stopping } from '../shared/flight.ts';
import type { TurnReader } from './messages.ts';

/** A prompt on its way to Claude, and from there into its transcript. */
export class ClaudeFlight extends Flight {
  readonly request: PromptRequest;
  readonly turn: TurnReader;
  /** Where it must land; undefined: nothing to check. */
  readonly landsAt: string | null | undefined;
  /** The prompt has left: what Claude says before that is no answer to it. */
  sent = false;
  proved = false;
  ending = false;

  constructor(stopping: Stopping, about: Pick<ClaudeFlight, 'request' | 'turn' | 'landsAt'>) {
    super(stopping);
    this.request = about.request;
    this.turn = about.turn;
    this.landsAt = about.landsAt;
  }
}

export function gone(): AgentOutcome {
  return unsent('Claude’s process ended before the prompt was sent', true);
}

export function unsent(message: string, again: boolean): AgentOutcome {
  return { kind: 'failed', code: 'agent_failed', message, again, unsent: true };
}
