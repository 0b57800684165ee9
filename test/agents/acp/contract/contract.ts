import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll } from 'vitest';
import { acpAgent } from '../../../../src/agents/acp/adapter.ts';
import { systemClock } from '../../../../src/host/clock.ts';
import { type Model, startModel } from '../../../../src/testing/index.ts';
import { agentContract } from '../../../contracts/agent.contract.ts';
import { TestSandboxes, text } from '../../../contracts/agent-sandbox.ts';
import type { AcpAgentSettings } from '../../support/acp-agents.ts';

/** Runs the contract of agents with an agent that uses the stand-in model. `run`: a line of a prompt that runs a command. */
export function acpContract(
  name: string,
  settingsOf: (model: Model, root: string) => AcpAgentSettings,
  run: (command: string) => string,
): void {
  let model: Model;
  // All tests share what Throughline has learnt about the agent, so it is learnt only once.
  const memory = mkdtempSync(join(tmpdir(), 'throughline-learnt-'));
  beforeAll(async () => {
    model = await startModel();
  });
  afterAll(async () => {
    await model.close();
    rmSync(memory, { recursive: true, force: true });
  });

  const setUp = async () => {
    const sandboxes = new TestSandboxes();
    const settings = settingsOf(model, sandboxes.root);
    return {
      agent: acpAgent({ name: 'agent', ...settings, installed: sandboxes.root, memory, clock: systemClock }),
      sandboxes,
      tell: (codeword: string) => text(`The codeword is ${codeword}.`),
      recall: text('Which codewords have you seen?'),
      endless: text('model: stream 1000 50ms'),
      tool: (file: string) => text(run(`echo line >> ${file}`)),
      toolThenEndless: (file: string) =>
        text(`${run(`echo line >> ${file}`)}\nmodel: say Half of it.\n${run('sleep 600')}`),
    };
  };
  agentContract(`acp, ${name}`, setUp);
}
