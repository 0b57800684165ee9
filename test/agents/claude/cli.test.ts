import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { claudeCliAgent } from '../../../src/agents/claude/cli/adapter.ts';
import { systemClock } from '../../../src/host/clock.ts';
import { type Model, startModel } from '../../../src/testing/index.ts';
import { agentContract } from '../../contracts/agent.contract.ts';
import { ask, TestSandboxes, text } from '../../contracts/agent-sandbox.ts';
import { identityOf } from '../../contracts/liveness.ts';
import { claudeEnvironment, findClaude, NOT_INSTALLED, userHome } from '../support/claude.ts';

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
    const sandboxes = new TestSandboxes();
    const env = claudeEnvironment(model, userHome(sandboxes.root, { permissions: { allow: ['Bash'] } }));
    return {
      agent: claudeCliAgent({
        name: 'claude',
        env,
        command: [claude.program],
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

  test('the id of a stored session is refused for a new one, can be resumed with its context, and no argument has a secret', async () => {
    const sandboxes = new TestSandboxes();
    try {
      const env = claudeEnvironment(model, userHome(sandboxes.root));
      const options = { permissionMode: 'default', settingSources: ['project'] };
      const agent = claudeCliAgent({
        name: 'claude',
        env,
        command: [claude.program],
        options,
        installed: sandboxes.root,
        memory: sandboxes.root,
        clock: systemClock,
      });
      const sandbox = await sandboxes.sandbox();
      const id = '11111111-1111-4111-8111-111111111111';
      const session = await sandboxes.open(agent, sandbox, { kind: 'new', id });
      await ask(session, 'The codeword is amber.');
      if (process.platform === 'linux') {
        const args = readFileSync(`/proc/${identityOf(session.process).pid}/cmdline`, 'utf8').split('\0');
        expect(args).toContain('--session-id');
        expect(args.join(' ')).not.toMatch(/sk-fake|amber/);
      }
      await session.close();
      const request = { sandbox, noTools: false, signal: new AbortController().signal };
      const again = await agent.open({ how: { kind: 'new', id }, ...request });
      expect(again).toMatchObject({ ok: false, reason: 'in_use' });
      const resumed = await sandboxes.open(agent, sandbox, { kind: 'resume', id });
      expect((await ask(resumed, 'Which codewords have you seen?')).reply).toContain('amber');
    } finally {
      await sandboxes.dispose();
    }
  });
}
