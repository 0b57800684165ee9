import { DEEPEST, isTooDeep } from '../core/input/too-deep.ts';
import type { Agent, AgentEvent, SentPrompt, Tail } from '../ports/agent.ts';
import type { OpenSandbox } from '../ports/sandbox.ts';

/** What to take of an event: the event, or in place of one that is nested too deep the end of the prompt, after which nothing counts. */
export function notTooDeep(event: AgentEvent): AgentEvent {
  return isTooDeep(event) ? { type: 'ended', outcome: { kind: 'lost', message: TOO_DEEP } } : event;
}

const TOO_DEEP = `the agent was ended: it sent something that is nested deeper than ${DEEPEST} levels`;

/** The tail of a session without what is nested too deep, and without what follows that. The rest does not show how the turn ended. */
export async function readableTail(
  agent: Agent,
  sessionId: string,
  sent: SentPrompt,
  sandbox: OpenSandbox,
): Promise<Tail | null> {
  const tail = await agent.tail(sessionId, sent, sandbox);
  const cut = tail?.updates.findIndex(isTooDeep) ?? -1;
  if (tail === null || cut === -1) return tail;
  return { ...tail, updates: tail.updates.slice(0, cut), ended: false };
}
