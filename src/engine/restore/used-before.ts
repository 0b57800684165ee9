import type { Agent } from '../../ports/agent.ts';
import type { Hold } from '../worker/hold.ts';

/**
 * Whether the conversation has lived in a session of this id before. Of an agent whose storage can be read, what it calls a new one
 * is not new then; others may well count their sessions anew with every process.
 */
export async function wasUsed(id: string, { parts, conversation }: Hold, agent: Agent): Promise<boolean> {
  const known = await parts.store.findSessions(conversation.owner, id);
  return known.some((session) => session.conversation === conversation.id && session.agent === agent.name);
}

export function notNew(id: string): string {
  return `the agent gave ${id} for a new session, and that was used here before`;
}
