import { readdirSync } from 'node:fs';
import { basename } from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { sandboxAt, until } from '../../../../test/contracts/agent-sandbox.ts';
import { isAlive } from '../../../../test/contracts/liveness.ts';
import { temporaryFolder } from '../../../../test/temporary-folder.ts';
import type { AgentProgram } from '../known/description.ts';
import { AgentMemory } from '../known/memory.ts';
import { ACP_DEFAULTS } from '../options.ts';
import { listSessions, loginOf, probing } from './probe.ts';

let scratch: string;
beforeEach(() => {
  scratch = temporaryFolder();
});

const never = new AbortController().signal;

/** An agent that is a few lines of JavaScript: `say` prints a message; `answers` is called with each request. */
function agent(script: string): AgentProgram {
  const whole = `
    const say = (m) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...m }) + '\\n');
    const initialized = { protocolVersion: 1, agentCapabilities: { sessionCapabilities: { list: {} } } };
    ${script}
    require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => answers(JSON.parse(line)));`;
  const command = [process.execPath, '-e', whole];
  return {
    name: 'agent',
    command,
    env: {},
    options: ACP_DEFAULTS,
    ownCommand: true,
    knownAs: null,
    login: '',
    model: null,
    memory: new AgentMemory(scratch, 'agent'),
  };
}

test.each([
  ['none', { loggedIn: false, hint: 'log in' }],
  ['api_key', { loggedIn: true, hint: null }],
  [null, { loggedIn: null, hint: 'the agent does not report it' }],
])('a login status of %j that comes after the session is open counts', async (kind, login) => {
  const status = (value: unknown) =>
    `say({ method: '_auth/status_update', params: { authStatus: { kind: ${value} } } })`;
  const silent = agent(`const answers = ({ id, method }) => {
    say({ id, result: method === 'initialize' ? initialized : { sessionId: 's' } });
    if (method === 'session/new') setImmediate(() => { ${status(JSON.stringify(kind))} });
  };`);
  const program = { ...silent, knownAs: 'claude-code', login: 'log in' };
  expect(await loginOf(program, sandboxAt(scratch), never)).toEqual(login);
  expect(silent.memory.learnt).toMatchObject({ list: true });
  expect(readdirSync(scratch)).toEqual([basename(silent.memory.file)]);
});

test('a list of sessions that never ends is cut off', async () => {
  const endless = agent(`let pages = 0; const answers = ({ id, method }) => say({
    id,
    result: method === 'initialize' ? initialized : { sessions: [{ sessionId: 's' + (pages += 1) }], nextCursor: 'more' },
  });`);
  const all = await listSessions(endless, sandboxAt(scratch), never);
  expect(all?.map(({ id }) => id)).toEqual(Array.from({ length: 50 }, (_, n) => `s${n + 1}`));
});

test('what an agent leaves behind is ended with it', async () => {
  const leaving = agent(`
    const { spawn } = require('node:child_process');
    const child = spawn('sleep', ['600'], { detached: true, stdio: 'inherit' });
    const answers = ({ id }) => say({ id, result: { ...initialized, agentInfo: { name: 'a', version: String(child.pid) } } });`);
  const { version } = await probing(leaving, sandboxAt(scratch), async ({ can }) => can);
  await until('it is gone', () => !isAlive(Number(version)));
});
