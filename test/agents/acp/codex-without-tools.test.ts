// Codex with its profile without tools, in a home and a project that configure many things to run.
import { createHash } from 'node:crypto';
import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { acpAgent } from '../../../src/agents/acp/adapter.ts';
import { systemClock } from '../../../src/host/clock.ts';
import { startModel } from '../../../src/testing/index.ts';
import { ask, TestSandboxes } from '../../contracts/agent-sandbox.ts';
import { codexAcp, execCommand, whyNotInstalled } from '../support/acp-agents.ts';
import { startLocalServer } from '../support/local-server.ts';

const why = whyNotInstalled('@agentclientprotocol/codex-acp');
const HOOK_EVENTS = { SessionStart: 'session_start', UserPromptSubmit: 'user_prompt_submit', Stop: 'stop' } as const;

/** An HTTP server that reports every request. */
function startSpy(report: (line: string) => void) {
  return startLocalServer((_, response) => {
    report('address');
    response.writeHead(404).end();
  });
}

/** Configures everything that Codex runs without a permission. Each of them appends a line to the file `trace`. */
function configureHome(codex: string, trace: string): void {
  const line = (name: string) => `echo ${name} >> ${trace}`;
  const hooks = Object.keys(HOOK_EVENTS).map((event) => [
    event,
    [{ hooks: [{ type: 'command', command: line('hook') }] }],
  ]);
  const hooksFile = join(codex, 'hooks.json');
  writeFileSync(hooksFile, JSON.stringify({ hooks: Object.fromEntries(hooks) }));
  // Codex runs a hook only if its settings contain the hash of it, which shows that the user has agreed.
  const trusted = Object.values(HOOK_EVENTS).map((event) => {
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
${serverSettings('server', trace)}
${trusted.join('')}`,
  );
}

function serverSettings(name: string, trace: string): string {
  return `command = "/bin/sh"\nargs = ["-c", "echo ${name} >> ${trace}"]`;
}

/** Configures what a project can make Codex run: its MCP servers. */
function configureProject(work: string, trace: string, address: string): void {
  mkdirSync(join(work, '.git'));
  mkdirSync(join(work, '.codex'));
  writeFileSync(
    join(work, '.codex', 'config.toml'),
    `[mcp_servers.ours]\n${serverSettings('project-server', trace)}\n[mcp_servers.web]\nurl = "${address}"\n`,
  );
}

/** `scripts`: Codex offers this model one tool, which runs a script that calls all other tools. */
const MODELS = { plain: 'gpt-5.4', scripts: 'gpt-6-sol' } as const;

/** Tools that are still offered without tools. They act only on the conversation, or on MCP servers, and there are none. */
const HARMLESS = /^(?:request_user_input(?:_async)?|update_plan|.*_mcp_resource.*|exec|wait|sleep)$/;

test.for<[keyof typeof MODELS, 'with tools' | 'without tools', string]>([
  ['plain', 'with tools', 'everything that is configured runs'],
  ['plain', 'without tools', 'nothing runs'],
  ['scripts', 'with tools', 'everything that is configured runs'],
  ['scripts', 'without tools', 'nothing runs'],
])('codex-acp with the model "%s" and %s: %s', async ([kind, profile], context) => {
  const noTools = profile === 'without tools';
  if (why !== null) return context.skip(why);
  const model = await startModel();
  const sandboxes = new TestSandboxes();
  const trace = join(sandboxes.root, 'trace.log');
  await using spy = await startSpy((line) => appendFileSync(trace, `${line}\n`));
  try {
    const settings = codexAcp(model, sandboxes.root, {}, MODELS[kind]);
    const sandbox = await sandboxes.sandbox();
    configureHome(join(settings.env.HOME ?? '', '.codex'), trace);
    if (!noTools) configureProject(sandbox.work, trace, spy.url);
    const agent = acpAgent({
      name: 'codex',
      ...settings,
      // Codex looks for plugins through this proxy. Nothing listens there.
      env: { ...settings.env, HTTPS_PROXY: 'http://127.0.0.1:9' },
      installed: sandboxes.root,
      memory: join(sandboxes.root, 'learnt'),
      clock: systemClock,
    });
    expect((await agent.traits(sandbox)).noTools).toBe(true);
    const session = await sandboxes.open(agent, sandbox, { kind: 'new', id: null }, noTools);
    const patchedFile = join(sandbox.work, 'patched');
    const patch = `*** Begin Patch\n*** Add File: ${patchedFile}\n+line\n*** End Patch\n`;
    const cmd = `echo exec >> ${trace}`;
    const subagent = { task_name: 'child', message: execCommand(cmd) };
    const script = (call: string) => `model: tool! exec ${JSON.stringify(`await tools.${call};`)}`;
    for (const prompt of [
      execCommand(cmd),
      `model: tool! shell_command ${JSON.stringify({ command: cmd })}`,
      `model: tool! apply_patch ${JSON.stringify(patch)}`,
      `model: tool! spawn_agent ${JSON.stringify(subagent)}`,
      'model: tool! mcp__mine__run {}',
      'model: tool! list_mcp_resources {}',
      script(`exec_command(${JSON.stringify({ cmd: `echo script >> ${trace}` })})`),
      script(`apply_patch(${JSON.stringify(patch)})`),
    ]) {
      const { outcome } = await ask(session, prompt);
      expect(outcome.kind).toBe('completed');
    }
    await session.close();
    const ran = existsSync(trace) ? readFileSync(trace, 'utf8').trim().split('\n') : [];
    const everything = ['address', 'exec', 'hook', 'notify', 'project-server', 'server'];
    expect([...new Set([...ran, ...(existsSync(patchedFile) ? ['patch'] : [])])].toSorted()).toEqual(
      noTools ? [] : [...everything, ...(kind === 'scripts' ? ['patch', 'script'] : [])].toSorted(),
    );
    if (!noTools) return;
    const offered = new Set(model.requests.filter(({ side }) => !side).flatMap(({ tools }) => tools));
    expect([...offered].filter((name) => !HARMLESS.test(name))).toEqual([]);
    // Codex does not open a second session to find a title.
    expect(model.requests.filter(({ side }) => side)).toEqual([]);
  } finally {
    await sandboxes.dispose();
    await model.close();
  }
});

test('codex-acp is not opened without tools in a project with settings', async (context) => {
  if (why !== null) return context.skip(why);
  const sandboxes = new TestSandboxes();
  try {
    const settings = codexAcp({ url: 'http://127.0.0.1:9' }, sandboxes.root);
    const sandbox = await sandboxes.sandbox();
    configureProject(sandbox.work, join(sandboxes.root, 'trace.log'), 'http://127.0.0.1:9');
    const folders = { installed: sandboxes.root, memory: join(sandboxes.root, 'learnt') };
    const agent = acpAgent({ name: 'codex', ...settings, ...folders, clock: systemClock });
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
