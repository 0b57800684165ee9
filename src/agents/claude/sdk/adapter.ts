import { ThroughlineError } from '../../../core/errors.ts';
import type { Agent } from '../../../ports/agent.ts';
import { claudeAgent } from '../claude-agent.ts';
import type { FoundClaude } from '../find.ts';
import { type ClaudeSettings, readClaudeSettings, WITHOUT_TOOLS } from '../settings.ts';
import { sdkConnect } from './connect.ts';
import { loadSdk } from './sdk.ts';

/** Claude through its Agent SDK. Throws `invalid` for options that it does not have. */
export function claudeSdkAgent(settings: ClaudeSettings): Agent {
  const { parts, find } = readClaudeSettings(settings, usable);
  return claudeAgent({
    ...parts,
    connect: sdkConnect(async (cwd) => {
      const { sdk, command, version } = await find(cwd);
      return { sdk: loadSdk(sdk), command, version };
    }, parts.options),
    program: async () => (await find(null)).command,
    async probe() {
      const { version, where } = await find(null);
      return { version, where, assignsIds: true, noTools: WITHOUT_TOOLS.has(version) };
    },
  });
}

/** Throws `agent_unavailable` where the SDK, or a program for it, is missing. */
function usable({ sdk, command, version, where, problem }: FoundClaude) {
  if (sdk !== null && command.length > 0 && version !== null) return { sdk, command, version, where };
  if (problem !== null) throw new ThroughlineError('agent_unavailable', problem);
  throw new ThroughlineError('agent_unavailable', 'The Agent SDK was not found.', {
    hint: 'Run "throughline agents install claude", or use the adapter "claude-cli".',
  });
}
