import { ThroughlineError } from '../../../core/errors.ts';
import type { Agent } from '../../../ports/agent.ts';
import { claudeAgent } from '../claude-agent.ts';
import type { FoundClaude } from '../find.ts';
import { type ClaudeSettings, readClaudeSettings, WITHOUT_TOOLS } from '../settings.ts';
import { cliConnect, type Program, programOf } from './connect.ts';

/** Claude through its program alone, without the SDK. Throws `invalid` for options that it does not have. */
export function claudeCliAgent(settings: ClaudeSettings): Agent {
  const { parts, find } = readClaudeSettings(settings, programIn);
  return claudeAgent({
    ...parts,
    connect: cliConnect(find, parts.options),
    program: async () => (await find(null)).command,
    async probe() {
      const { can, where } = await find(null);
      const noTools = can.noTools && WITHOUT_TOOLS.has(can.version);
      return { version: can.version, where, assignsIds: can.assignsIds, noTools };
    },
  });
}

/** Throws `agent_unavailable` where there is no program, or one that is too old. */
function programIn({ command, version, where, problem }: FoundClaude, path: string): Promise<Program> {
  if (version !== null && problem === null) return programOf({ command, where }, version, path);
  throw new ThroughlineError('agent_unavailable', problem ?? 'Claude was not found.');
}
