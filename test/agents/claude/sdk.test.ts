import { afterAll, beforeAll, test } from 'vitest';
import { claudeSdkAgent } from '../../../src/agents/claude/sdk/adapter.ts';
import { systemClock } from '../../../src/host/clock.ts';
import { type Model, startModel } from '../../../src/testing/index.ts';
import { agentContract } from '../../contracts/agent.contract.ts';
import { TestSandboxes, text } from '../../contracts/agent-sandbox.ts';
import { claudeEnvironment, findClaude, NOT_INSTALLED, packageFolder, userHome } from '../support/claude.ts';

let model: Model;
beforeAll(async () => {
  model = await startModel();
});
afterAll(() => model.close());

const bash = (command: string) => `model: tool! Bash ${JSON.stringify({ command })}`;

if (findClaude() === null) test('the agent contract: claude-sdk', (context) => context.skip(NOT_INSTALLED));
else {
  agentContract('claude-sdk', async () => {
    const sandboxes = new TestSandboxes();
    const env = claudeEnvironment(model, userHome(sandboxes.root, { permissions: { allow: ['Bash'] } }));
    return {
      agent: claudeSdkAgent({
        name: 'claude',
        env,
        package: packageFolder,
        options: {},
        installed: sandboxes.root,
        memory: sandboxes.root,
        clock: systemClock,
      }),
      sandboxes,
      tell: (codeword) => text(`The codeword is ${codeword}.`),
      recall: text('Which codewords have you seen?'),
      endless: text('model: stream 1000 50ms'),
      tool: (file) => text(bash(`echo line >> ${file}`)),
      toolThenEndless: (file) => text(`${bash(`echo line >> ${file}`)}\nmodel: say Half of it.\n${bash('sleep 600')}`),
    };
  });
}
