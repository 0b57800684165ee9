/** @import { AgentOutcome } from '../../../ports/agent.ts' */

/** Thrown through a running turn to end it with this outcome. */
export class Ending extends Error {
  /** @param {AgentOutcome} outcome */
  constructor(outcome) {
    super(outcome.kind);
    this.outcome = outcome;
  }
}

/**
 * @param {Extract<AgentOutcome, { kind: 'failed' }>['code']} code
 * @param {string} message
 * @param {boolean} again
 */
export function failed(code, message, again) {
  return new Ending({ kind: 'failed', code, message, again });
}
