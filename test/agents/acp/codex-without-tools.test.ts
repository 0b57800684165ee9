// Codex, started so that no tool can run, in a home and a project that are full of things to run.
import { createHash } from 'node:crypto';
import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { acpAgent } from '../../../src/agents/acp/adapter.ts';
import { startModel } from '../../../src/testing/index.ts';
import { ask, TestSandboxes } from '../../contracts/agent-sandbox.ts';
import { codexAcp, missing } from '../support/acp-agents.ts';
import { startLocalServer } from '../support/local-server.ts';
import { execCommand } from './contract/contract.ts';

const why = missing('@agentclientprotocol/codex-acp');
const EVENTS = { SessionStart: 'session_start', UserPromptSubmit: 'user_prompt_submit', Stop: 'stop' } as const;

/** A local server that notes every request. */
function startSpy(note: (what: string) => void) {
  return startLocalServer((_, response) => {
    note('address');
    response.writeHead(404).end();
  });
}

/** Everything that a person can have Codex run, and that it does not ask about. Each leaves a line in the file. */
function furnish(codex: string, trace: string): void {
  const line = (what: string) => `echo ${what} >> ${trace}`;
  const hooks = Object.keys(EVENTS).map((event) => [event, [{ hooks: [{ type: 'command', command: line('hook') }] }]]);
  const hooksFile = join(codex, 'hooks.json');
  writeFileSync(hooksFile, JSON.stringify({ hooks: Object.fromEntries(hooks) }));
  // Codex runs a hook when a person has agreed to it: a hash of it is in the settings then.
  const trusted = Object.values(EVENTS).map((event) => {
    const hook = { async: false, command: line('hook'), timeout: 600, type: 'command' };
    const hash = createHash('sha256')
      .update(JSON.stringify({ event_name: event, hooks: [hook] }))
      .digest('hex');
    return `[hooks.state."${hooksFile}:${event}:0:0"]\ntrusted_hash = "sha256:${hash}"\n`;
  });
  const config = join(codex, 'config.toml');
  writeFileSync(
    config,
    `notify = ["/bin/sh", "-c", "${line('notify')}"]
features.hooks = true
features.shell_tool = true
features.multi_agent_v2 = true
${readFileSync(config, 'utf8').replace('features.plugins = false', 'features.plugins = true')}
[mcp_servers.mine]
${server('server', trace)}
${trusted.join('')}`,
  );
}

function server(what: string, trace: string): string {
  return `command = "/bin/sh"\nargs = ["-c", "echo ${what} >> ${trace}"]`;
}

/** The same for a project. */
function furnishProject(work: string, trace: string, address: string): void {
  mkdirSync(join(work, '.git'));
  mkdirSync(join(work, '.codex'));
  writeFileSync(
    join(work, '.codex', 'config.toml'),
    `[mcp_servers.ours]\n${server('project-server', trace)}\n[mcp_servers.web]\nurl = "${address}"\n`,
  );
}

/** The second model gets one tool, a script, that calls all others. */
const MODELS = { plain: 'gpt-5.4', scripts: 'gpt-6-sol' } as const;

/** What is still offered without tools: it acts on nothing but the conversation, or on servers, of which there are none. */
const HARMLESS = /^(?:request_user_input(?:_async)?|update_plan|.*_mcp_resource.*|exec|wait|sleep)$/;

test.for<[keyof typeof MODELS, boolean]>([
  ['plain', false],
  ['plain', true],
  ['scripts', false],
  ['scripts', true],
])(
  'codex-acp with the model "%s", without tools: %s: all that can run does, or nothing',
  async ([kind, noTools], context) => {
    if (why !== null) return context.skip(why);
    const model = await startModel();
    const sandboxes = new TestSandboxes();
    const trace = join(sandboxes.root, 'trace.log');
    await using spy = await startSpy((what) => appendFileSync(trace, `${what}\n`));
    try {
      const settings = codexAcp(model, sandboxes.root, {}, MODELS[kind]);
      const sandbox = await sandboxes.sandbox();
      furnish(join(settings.env.HOME ?? '', '.codex'), trace);
      if (!noTools) furnishProject(sandbox.work, trace, spy.url);
      const agent = acpAgent({
        name: 'codex',
        ...settings,
        // Where it would look for plugins.
        env: { ...settings.env, HTTPS_PROXY: 'http://127.0.0.1:9' },
        installed: sandboxes.root,
        memory: join(sandboxes.root, 'learnt'),
      });
      expect((await agent.traits(sandbox)).noTools).toBe(true);
      const session = await sandboxes.open(agent, sandbox, { kind: 'new', id: null }, noTools);
      const patch = join(sandbox.work, 'patched');
      const patching = `*** Begin Patch\n*** Add File: ${patch}\n+line\n*** End Patch\n`;
      const cmd = `echo exec >> ${trace}`;
      const child = { task_name: 'child', message: execCommand(cmd) };
      const script = (call: string) => `model: tool! exec ${JSON.stringify(`await tools.${call};`)}`;
      for (const prompt of [
        execCommand(cmd),
        `model: tool! shell_command ${JSON.stringify({ command: cmd })}`,
        `model: tool! apply_patch ${JSON.stringify(patching)}`,
        `model: tool! spawn_agent ${JSON.stringify(child)}`,
        'model: tool! mcp__mine__run {}',
        'model: tool! list_mcp_resources {}',
        script(`exec_command(${JSON.stringify({ cmd: `echo script >> ${trace}` })})`),
        script(`apply_patch(${JSON.stringify(patching)})`),
      ]) {
        const { outcome } = await ask(session, prompt);
        expect(outcome.kind).toBe('completed');
      }
      await session.close();
      const ran = existsSync(trace) ? readFileSync(trace, 'utf8').trim().split('\n') : [];
      const everything = ['address', 'exec', 'hook', 'notify', 'project-server', 'server'];
      expect([...new Set([...ran, ...(existsSync(patch) ? ['patch'] : [])])].toSorted()).toEqual(
        noTools ? [] : [...everything, ...(kind === 'scripts' ? ['patch', 'script'] : [])].toSorted(),
      );
      if (!noTools) return;
      const offered = new Set(model.requests.filter(({ side }) => !side).flatMap(({ tools }) => tools));
      expect([...offered].filter((name) => !HARMLESS.test(name))).toEqual([]);
      // No second session of the agent's own, in which it finds a title.
      expect(model.requests.filter(({ side }) => side)).toEqual([]);
    } finally {
      await sandboxes.dispose();
      await model.close();
    }
  },
);

test('codex-acp is not opened without tools where a project has settings', async (context) => {
  if (why !== null) return context.skip(why);
  const sandboxes = new TestSandboxes();
  try {
    const settings = codexAcp({ url: 'http://127.0.0.1:9' }, sandboxes.root);
    const sandbox = await sandboxes.sandbox();
    furnishProject(sandbox.work, join(sandboxes.root, 'trace.log'), 'http://127.0.0.1:9');
    const folders = { installed: sandboxes.root, memory: join(sandboxes.root, 'learnt') };
    const agent = acpAgent({ name: 'codex', ...settings, ...folders });
    await agent.traits(sandbox);
    const how = { kind: 'new', id: null } as const;
    const opened = await agent.open({ how, sandbox, noTools: true, signal: AbortSignal.timeout(60_000) });
    expect(opened).toMatchObject({
      ok: false,
      reason: 'refused',
      message: expect.stringContaining('settings of a project'),
    });
  } finally {
    await sandboxes.dispose();
  }
});
