import type { ContentBlock, Prompt } from '../../../core/content.ts';
import type { AgentOutcome } from '../../../ports/agent.ts';
import type { Capabilities } from './capabilities.ts';

/** How a prompt ended that the agent has answered. `asked`: it was asked to stop before. */
export function outcomeOf(stopReason: unknown, asked: boolean): AgentOutcome {
  if (stopReason === 'cancelled' || (stopReason === 'end_turn' && asked)) return { kind: 'cancelled' };
  if (stopReason === 'end_turn') return { kind: 'completed' };
  const message = STOPPED.get(stopReason) ?? `the agent stopped: ${JSON.stringify(stopReason) ?? 'it did not say why'}`;
  return { kind: 'failed', code: 'agent_failed', message, again: false };
}

const STOPPED: ReadonlyMap<unknown, string> = new Map([
  ['max_tokens', 'the answer was cut off: the model may not say more in one turn'],
  ['max_turn_requests', 'the agent stopped: it may not ask its model more often in one turn'],
  ['refusal', 'the agent refused to answer'],
]);

/**
 * Why the agent cannot be sent this prompt; null: it can. Agents that do not take a kind of content leave it out without a word, or
 * fail of it in words of their own.
 */
export function untakable(prompt: Prompt, can: Capabilities): AgentOutcome | null {
  const kind = prompt.map(({ type }) => KINDS[type]?.(can) ?? null).find((name) => name !== null);
  if (kind === undefined) return null;
  return {
    kind: 'failed',
    code: 'agent_failed',
    message: `this agent takes no ${kind}; nothing was sent`,
    hint: 'Leave that out, say where it is in words or as a link, or name another agent.',
    again: false,
  };
}

/** Kinds of content that an agent has to say it takes, by what they are called if it does not. */
const KINDS: Partial<Record<ContentBlock['type'], (can: Capabilities) => string | null>> = {
  image: ({ image }) => (image ? null : 'pictures'),
  audio: ({ audio }) => (audio ? null : 'sound'),
  resource: ({ embeddedContext }) => (embeddedContext ? null : 'embedded resources'),
};
