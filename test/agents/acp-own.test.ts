import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll } from 'vitest';
import { acpAgent } from '../../src/agents/acp/adapter.ts';
import { type Model, startModel } from '../../src/testing/index.ts';
import { agentContract } from '../contracts/agent.contract.ts';
import { TestRooms, text } from '../contracts/agent-room.ts';
import { ownAgent } from './acp-agents.ts';

let model: Model;
const memory = mkdtempSync(join(tmpdir(), 'throughline-learnt-'));
beforeAll(async () => {
  model = await startModel();
});
afterAll(async () => {
  await model.close();
  rmSync(memory, { recursive: true, force: true });
});

const bash = (command: string) => `model: tool! Bash ${JSON.stringify({ command })}`;
const NO_TOOLS = { noTools: { version: '1.0.0', mode: 'quiet' } };

function contractOf(
  name: string,
  program: readonly [string, ...string[]],
  options: Readonly<Record<string, unknown>> = {},
) {
  agentContract(`acp, ${name}`, async () => {
    const rooms = new TestRooms();
    const settings = ownAgent(model, rooms.root, program, options);
    return {
      agent: acpAgent({ name: 'own', ...settings, installed: rooms.root, memory }),
      rooms,
      tell: (codeword) => text(`The codeword is ${codeword}.`),
      recall: text('Which codewords have you seen?'),
      endless: text('model: stream 1000 50ms'),
      tool: (file) => text(bash(`echo line >> ${file}`)),
      toolThenEndless: (file) => text(`${bash(`echo line >> ${file}`)}\nmodel: say Half of it.\n${bash('sleep 600')}`),
    };
  });
}

contractOf('loads and repeats', ['honest'], NO_TOOLS);
contractOf('cannot load', ['without-load']);
