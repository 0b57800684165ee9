import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { start, until } from '../../../../test/contracts/agent-sandbox.ts';
import { isAlive } from '../../../../test/contracts/liveness.ts';
import { listSessions, type ProbeRequest, probing } from './probe.ts';

let scratch: string;
beforeEach(() => {
  scratch = mkdtempSync(join(tmpdir(), 'throughline-probe-'));
});
afterEach(() => rmSync(scratch, { recursive: true, force: true }));

/** An agent that is a few lines of JavaScript: `say` prints a message; `answers` is called with each request. */
function agent(script: string): ProbeRequest {
  const whole = `
    const say = (m) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...m }) + '\\n');
    const initialized = { protocolVersion: 1, agentCapabilities: { sessionCapabilities: { list: {} } } };
    ${script}
    require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => answers(JSON.parse(line)));`;
  return {
    name: 'agent',
    command: [process.execPath, '-e', whole],
    env: {},
    start,
    auth: null,
    knownAs: null,
    openMs: 120_000,
    login: '',
    scratch,
  };
}

test('the last notification of each method is kept, for a limited number of methods', async () => {
  const loud = agent(`const answers = ({ id }) => {
    for (let n = 0; n < 150; n += 1) say({ method: 'm' + n, params: n });
    say({ method: 'm0', params: 'newest' });
    say({ id, result: initialized });
  };`);
  const heard = await probing(loud, async ({ hear }) => [
    await hear('m0', 0),
    await hear('m99', 0),
    await hear('m100', 0),
  ]);
  expect(heard).toEqual(['newest', 99, null]);
  expect(readdirSync(scratch)).toEqual([]);
});

test('an endless list of sessions is cut', async () => {
  const endless = agent(`let pages = 0; const answers = ({ id, method }) => say({
    id,
    result: method === 'initialize' ? initialized : { sessions: [{ sessionId: 's' + (pages += 1) }], nextCursor: 'more' },
  });`);
  const all = await listSessions(endless, '/');
  expect(all?.map(({ id }) => id)).toEqual(Array.from({ length: 50 }, (_, n) => `s${n + 1}`));
});

test('what an agent leaves behind is ended with it', async () => {
  const leaving = agent(`
    const { spawn } = require('node:child_process');
    const child = spawn('sleep', ['600'], { detached: true, stdio: 'inherit' });
    const answers = ({ id }) => say({ id, result: { ...initialized, agentInfo: { name: 'a', version: String(child.pid) } } });`);
  const { version } = await probing(leaving, async ({ can }) => can);
  await until('it is gone', () => !isAlive(Number(version)));
});
