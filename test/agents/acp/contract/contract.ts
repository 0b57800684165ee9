import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll } from 'vitest';
import { acpAgent } from '../../../../src/agents/acp/adapter.ts';
import { type Model, startModel } from '../../../../src/testing/index.ts';
import { agentContract } from '../../../contracts/agent.contract.ts';
import { TestSandboxes, text } from '../../../contracts/agent-sandbox.ts';
import type { AcpAgentSettings } from '../../support/acp-agents.ts';

/** The contract of agents, with one that talks to the stand-in model. `run`: the line that makes it run a command. */
export function acpContract(
  name: string,
  settingsOf: (model: Model, root: string) => AcpAgentSettings,
  run: (command: string) => string,
): void {
  let model: Model;
  // What is learnt of the agent is the same for every test, and learnt once.
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
      agent: acpAgent({ name: 'agent', ...settings, installed: sandboxes.root, memory }),
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

export const bash = (command: string) => `model: tool! Bash ${JSON.stringify({ command })}`;
/** What Codex calls its shell. */
export const execCommand = (cmd: string) => `model: tool! exec_command ${JSON.stringify({ cmd })}`;
