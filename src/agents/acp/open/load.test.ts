// Our process may be suspended, on a laptop or a busy machine. Messages that an agent sent meanwhile are still read.
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { TestSandboxes } from '../../../../test/contracts/agent-sandbox.ts';
import type { Child, OpenSandbox } from '../../../ports/sandbox.ts';
import { acpAgent } from '../adapter.ts';

let sandboxes: TestSandboxes;
let sandbox: OpenSandbox;
beforeEach(async () => {
  sandboxes = new TestSandboxes();
  sandbox = await sandboxes.sandbox();
});
afterEach(() => sandboxes.dispose());

/** Continues when the file `go` exists, then writes the file `done`. `late`: repeats a turn after its answer to a load. `slow`: answers only then. */
const AGENT = `
  const { existsSync, writeFileSync } = require('node:fs');
  const say = (m) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...m }) + '\\n');
  const repeat = (sessionUpdate, text) => say({
    method: 'session/update', params: { sessionId: 's', update: { sessionUpdate, content: { type: 'text', text } } },
  });
  const whenTold = (then) => existsSync('go') ? (then(), writeFileSync('done', '')) : setTimeout(whenTold, 5, then);
  const history = () => { repeat('user_message_chunk', 'Hello.'); repeat('agent_message_chunk', 'Hi.'); };
  const loads = { late: (answer) => { answer(); whenTold(history); }, slow: whenTold };
  require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
    const { id, method } = JSON.parse(line);
    if (method === 'session/load') return loads[process.argv[1]](() => say({ id, result: {} }));
    say({ id, result: { protocolVersion: 1, agentCapabilities: { loadSession: true } } });
  });`;

function agent(how: 'late' | 'slow', options: Record<string, unknown>) {
  const folders = { installed: sandboxes.root, memory: join(sandboxes.root, 'learnt') };
  const clock = { now: () => 0, monotonic: () => 0 };
  return acpAgent({ name: 'agent', command: [process.execPath, '-e', AGENT, how], options, ...folders, clock });
}

/** Lets the agent continue, and blocks our process until it has, for at least this time. Timers run first afterwards. */
function suspended(ms: number): void {
  const begun = performance.now();
  writeFileSync(join(sandbox.work, 'go'), '');
  const isOver = () => existsSync(join(sandbox.work, 'done')) && performance.now() - begun > ms;
  for (const nobody = new Int32Array(new SharedArrayBuffer(4)); !isOver(); ) Atomics.wait(nobody, 0, 0, 10);
}

const withChild = (as: (child: Child) => Child): OpenSandbox => ({
  ...sandbox,
  spawn: async (...given) => as(await sandbox.spawn(...given)),
});

test('a history that came while we were suspended is read', async () => {
  // We are suspended as soon as its answer to the load is read.
  const watched = withChild((child) => {
    const stdout = async function* () {
      let said = '';
      for await (const chunk of child.stdout) {
        said += Buffer.from(chunk);
        if (said.includes('"result":{}')) setImmediate(suspended, 300);
        yield chunk;
      }
    };
    return { ...child, stdout: stdout() };
  });
  const history = await agent('late', { quietMs: 200 }).history?.('s', watched, new AbortController().signal);
  expect(history?.turns).toHaveLength(1);
});

test('an agent that answered while we were suspended is not treated as silent', async () => {
  const told = async () => {
    setImmediate(suspended, 600);
    return [];
  };
  let started: Child | null = null;
  const watched = withChild((child) => {
    started = child;
    return child;
  });
  const session = await sandboxes.open(agent('slow', { silentMs: 500 }), watched, { kind: 'resume', id: 's', told });
  await session.close();
  expect((await (started as Child | null)?.exited)?.signal).not.toBe('SIGKILL');
});
