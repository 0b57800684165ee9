// Codex, started so that no tool can run, in a home and a project that are full of things to run.
import { createHash } from 'node:crypto';
import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { acpAgent } from '../../src/agents/acp/adapter.ts';
import { startModel } from '../../src/testing/index.ts';
import { ask, start, TestSandboxes } from '../contracts/agent-sandbox.ts';
import { codexAcp, missing } from './acp-agents.ts';
import { execCommand } from './acp-contract.ts';
import { startLocalServer } from './local-server.ts';

const why = missing('@zed-industries/codex-acp');
const EVENTS = { SessionStart: 'session_start', UserPromptSubmit: 'user_prompt_submit', Stop: 'stop' } as const;

/** A local server that notes every request. */
function startSpy(note: (what: string) => void) {
  return startLocalServer((_, response) => {
    note('address');
    response.writeHead(404).end();
  });
}

/** Everything that a person or a project can have Codex run, and that it does not ask about. Each leaves a line in the file. */
function furnish(codex: string, work: string, trace: string, address: string): void {
  const line = (what: string) => `echo ${what} >> ${trace}`;
  const server = (what: string) => `command = "/bin/sh"\nargs = ["-c", "${line(what)}"]`;
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
${readFileSync(config, 'utf8')}
[projects."${work}"]
trust_level = "trusted"
[features]
codex_hooks = true
shell_tool = true
[mcp_servers.mine]
${server('server')}
${trusted.join('')}`,
  );
  mkdirSync(join(work, '.git'));
  mkdirSync(join(work, '.codex'));
  writeFileSync(
    join(work, '.codex', 'config.toml'),
    `[mcp_servers.ours]\n${server('project-server')}\n[mcp_servers.web]\nurl = "${address}"\n`,
  );
}

test.for<[string, boolean, string[]]>([
  [
    'with its tools it runs them all',
    false,
    ['address', 'exec', 'hook', 'notify', 'patch', 'project-server', 'server'],
  ],
  ['without tools it runs nothing', true, []],
])('codex-acp: %s', async ([, noTools, expected], context) => {
  if (why !== null) return context.skip(why);
  const model = await startModel();
  const sandboxes = new TestSandboxes();
  const trace = join(sandboxes.root, 'trace.log');
  await using spy = await startSpy((what) => appendFileSync(trace, `${what}\n`));
  try {
    const settings = codexAcp(model, sandboxes.root);
    const sandbox = await sandboxes.sandbox();
    furnish(join(settings.env.HOME ?? '', '.codex'), sandbox.work, trace, spy.url);
    const agent = acpAgent({
      name: 'codex',
      ...settings,
      installed: sandboxes.root,
      memory: join(sandboxes.root, 'learnt'),
      start,
    });
    expect((await agent.traits()).noTools).toBe(true);
    const session = await sandboxes.open(agent, sandbox, { kind: 'new', id: null }, noTools);
    const patch = join(sandbox.work, 'patched');
    for (const prompt of [
      execCommand(`echo exec >> ${trace}`),
      `model: tool! shell_command ${JSON.stringify({ command: `echo exec >> ${trace}` })}`,
      `model: tool! apply_patch ${JSON.stringify(`*** Begin Patch\n*** Add File: ${patch}\n+line\n*** End Patch\n`)}`,
      `model: tool! spawn_agent ${JSON.stringify({ message: execCommand(`echo exec >> ${trace}`) })}`,
      'model: tool! mcp__mine__run {}',
      'model: tool! list_mcp_resources {}',
    ]) {
      const { outcome } = await ask(session, prompt);
      expect(outcome.kind).toBe('completed');
    }
    await session.close();
    const ran = existsSync(trace) ? readFileSync(trace, 'utf8').trim().split('\n') : [];
    expect([...new Set([...ran, ...(existsSync(patch) ? ['patch'] : [])])].toSorted()).toEqual(expected);
    if (!noTools) return;
    // What is still offered acts on nothing but the conversation, or on servers, of which there are none.
    const offered = new Set(model.requests.filter(({ side }) => !side).flatMap(({ tools }) => tools));
    expect([...offered].filter((name) => !/_mcp_resource/.test(name)).toSorted()).toEqual([
      'request_user_input',
      'update_plan',
    ]);
  } finally {
    await sandboxes.dispose();
    await model.close();
  }
});
