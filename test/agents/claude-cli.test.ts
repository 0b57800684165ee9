import { afterAll, beforeAll, test } from 'vitest';
import { claudeCliAgent } from '../../src/agents/claude/cli/adapter.ts';
import { type Model, startModel } from '../../src/testing/index.ts';
import { agentContract } from '../contracts/agent.contract.ts';
import { TestRooms, text } from '../contracts/agent-room.ts';
import { claudeEnvironment, findClaude, NOT_INSTALLED, userHome } from './claude.ts';

let model: Model;
beforeAll(async () => {
  model = await startModel();
});
afterAll(() => model.close());

const bash = (command: string) => `model: tool! Bash ${JSON.stringify({ command })}`;
const claude = findClaude();

if (claude === null) test('the agent contract: claude-cli', (context) => context.skip(NOT_INSTALLED));
else {
  agentContract('claude-cli', async () => {
    const rooms = new TestRooms();
    const env = claudeEnvironment(model, userHome(rooms.root, { permissions: { allow: ['Bash'] } }));
    return {
      agent: claudeCliAgent({ name: 'claude', env, command: [claude.program], options: {}, installed: rooms.root }),
      rooms,
      tell: (codeword) => text(`The codeword is ${codeword}.`),
      recall: text('Which codewords have you seen?'),
      endless: text('model: stream 1000 50ms'),
      tool: (file) => text(bash(`echo line >> ${file}`)),
      toolThenEndless: (file) => text(`${bash(`echo line >> ${file}`)}\nmodel: say Half of it.\n${bash('sleep 600')}`),
      writesWithinMs: 300,
    };
  });
}
