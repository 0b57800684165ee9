import { setTimeout as pause } from 'node:timers/promises';
import { startModel } from '../../../src/testing/index.ts';
import { claudeAcp, whyNotInstalled } from '../../agents/support/acp-agents.ts';
import { claudeEnvironment, findClaude, NOT_INSTALLED, packageFolder, userHome } from '../../agents/support/claude.ts';
import { ALLOW_BASH } from '../../agents/support/claude-home.ts';
import { QUESTION } from '../../faults/storm/prompts.ts';
import { Crowd } from '../harness/crowd.ts';
import type { Scenario } from '../harness/figures.ts';
import { World } from '../harness/world.ts';

export const realAgents: Scenario = {
  name: 'real-agents',
  does: 'the server is killed while Claude (SDK, and ACP) works, with a stand-in for its model',
  onlyLong: true,
  missing: () => (findClaude() === null ? NOT_INSTALLED : whyNotInstalled('@agentclientprotocol/claude-agent-acp')),
  async run({ seed, random }) {
    await using model = await startedModel();
    await using world = await World.start({
      agents: (root) => ({
        sdk: {
          adapter: 'claude-sdk',
          package: packageFolder,
          env: claudeEnvironment(model, userHome(root, ALLOW_BASH)),
        },
        acp: claudeAcp(model, root),
      }),
    });
    const crowd = new Crowd(world, {
      ...{ seed, clients: 3, agents: ['sdk', 'acp'] },
      request: (_, { key, agent, name, file }) => {
        const command = `echo ${name} run >> ${file}`;
        const prompt = [`The codeword is ${name}.`, `model: tool Bash ${JSON.stringify({ command })}`, QUESTION];
        return { name, key, prompt: prompt.join('\n'), options: { requestId: name, agent, permissions: 'deny' } };
      },
    });
    await crowd.begin();
    while (world.kills < KILLS) {
      const enough = crowd.acknowledged + random.whole(2, 5);
      for (let waits = 0; crowd.acknowledged < enough && waits < 60; waits += 1) {
        await pause(200);
        crowd.cut(random);
      }
      await world.kill();
      await world.up();
    }
    await crowd.calm(300_000);
    const { figures, violations } = await crowd.outcome();
    return { figures: { 'server kills': world.kills, ...figures }, violations };
  },
};

const KILLS = 8;

async function startedModel() {
  const model = await startModel();
  return { url: model.url, [Symbol.asyncDispose]: () => model.close() };
}
