import { ThroughlineError } from '../../core/errors.ts';
import type { Agent } from '../../ports/agent.ts';
import type { AgentInfo } from '../../ports/engine.ts';
import type { EngineParts } from '../parts.ts';

const PROBE_MS = 30_000;

/** Probes every configured agent. A missing one is listed with the reason. */
export function listAgents(
  { agents, settings }: Pick<EngineParts, 'agents'> & { settings: Pick<EngineParts['settings'], 'defaultAgent'> },
  { login = false }: { login?: boolean } = {},
): Promise<AgentInfo[]> {
  return Promise.all(
    [...agents].map(async ([name, { agent, adapter }]) => {
      const known = { name, adapter, isDefault: name === settings.defaultAgent };
      return { ...known, ...(await stateOf(agent, login)) };
    }),
  );
}

async function stateOf(agent: Agent, asked: boolean): Promise<Omit<AgentInfo, 'name' | 'adapter' | 'isDefault'>> {
  const late = AbortSignal.timeout(PROBE_MS);
  try {
    const login = asked ? ((await agent.login?.(late)) ?? null) : null;
    const traits = await agent.traits();
    return { where: (await agent.where?.()) ?? null, traits, problem: (await agent.doubt?.()) ?? null, login };
  } catch (error) {
    if (!(error instanceof ThroughlineError)) throw error;
    const said = late.aborted ? `It did not answer within ${PROBE_MS / 1_000} seconds.` : error.message;
    return { where: null, traits: null, problem: error.hint ? `${said} ${error.hint}` : said, login: null };
  }
}
