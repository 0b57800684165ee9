// An installed agent for the scenarios: it has its own home, and nothing from the user who runs the tests.
import { mkdirSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import type { AgentUnderTest } from '../agents/acp/scenarios/scenarios.ts';
import type { AcpAgentSettings } from '../agents/support/acp-agents.ts';
import type { AcpAgent } from './agents.ts';
import { binOf } from './install.ts';

/** An agent that takes longer has failed. Slow ones take ten seconds to start, more on a busy machine. */
export const LIMIT_MS = 300_000;

export function underTest(name: string, agent: AcpAgent): AgentUnderTest {
  const [tool, others] = agent.shell;
  return {
    name,
    storage: agent.storage,
    reopens: agent.reopens,
    limitMs: LIMIT_MS,
    settings: ({ url }, root) => settingsOf(name, agent, url, root),
    run: (command) => `model: tool ${tool} ${JSON.stringify({ command, ...others })}`,
  };
}

function settingsOf(name: string, agent: AcpAgent, model: string, root: string): AcpAgentSettings {
  const [home, temporary] = [join(root, 'person'), join(root, 'tmp')];
  for (const folder of [home, temporary]) mkdirSync(folder, { recursive: true });
  for (const [path, value] of Object.entries(agent.files(model))) {
    const file = join(home, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, JSON.stringify(value));
  }
  const env = {
    PATH: [binOf(name), process.env.PATH].join(delimiter),
    HOME: home,
    TMPDIR: temporary,
    // Some agents ask npm for updates of themselves and of their plugins. No request may leave this machine.
    npm_config_registry: model,
    ...agent.env(model),
  };
  const [program, ...args] = agent.command;
  const mode = agent.mode === undefined ? {} : { mode: agent.mode };
  const options = { agent: name, ...mode };
  return { adapter: 'acp', command: [join(binOf(name), program), ...args], env, options };
}
