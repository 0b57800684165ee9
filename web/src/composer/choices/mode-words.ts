import type { Named } from '../../data/conversation/announced.ts';

/** What the modes of Claude Code allow. */
const CLAUDE: Readonly<Record<string, string>> = {
  default: 'Asks first',
  acceptEdits: 'Edits without asking',
  plan: 'Plans only',
  dontAsk: 'Refuses what is not allowed',
  bypassPermissions: 'Never asks',
};

/** A mode as people read it: what it allows, if that is known of this agent, or the name that the agent gives it. */
export function modeWords(agent: string | null, id: string, values: readonly Named[]): string {
  const known = agent === 'claude' || agent === 'claude-code' ? CLAUDE[id] : undefined;
  return known ?? values.find((value) => value.id === id)?.name ?? id;
}
