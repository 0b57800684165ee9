// Listing the agents starts their programs. Requests at the same time share these starts.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { compose } from '../../../src/compose.ts';
import { agentProgram } from '../../program.ts';
import { CliHome } from '../cli/process.ts';
import { serveProcess } from './support/served-process.ts';

const AGENT = agentProgram('hostile');

let home: CliHome;
beforeEach(() => {
  home = new CliHome();
  // Each start adds an empty line to a file with the name of the agent. The second agent exits at once.
  const acp = (name: string, then: string) => ({
    adapter: 'acp',
    command: ['/bin/sh', '-c', `echo >> '${join(home.path, name)}'; ${then}`],
  });
  const agents = { good: acp('good', `exec '${process.execPath}' '${AGENT}'`), bad: acp('bad', 'exit 1') };
  writeFileSync(home.config, JSON.stringify({ agents }));
});
afterEach(() => home.remove());

/** How often this agent was started: one character for each start. */
const starts = (name: string) => readFileSync(join(home.path, name), 'utf8').length;

test('sixty requests at the same time start each agent at most twice: with logins and without', async () => {
  const { caller } = await serveProcess(home, '--log-level', 'error');
  const requests = Array.from({ length: 60 }, (_, n) => caller.ok('GET', `/agents${n % 2 === 0 ? '?login=true' : ''}`));
  const answers = await Promise.all(requests);
  expect([starts('good'), starts('bad')]).toEqual([expect.toSatisfy((n) => n <= 2), expect.toSatisfy((n) => n <= 2)]);
  expect(answers[0].agents).toMatchObject([
    { name: 'good', problem: null, login: { loggedIn: null } },
    { name: 'bad', traits: null },
  ]);
  const before = starts('good');
  for (let n = 0; n < 10; n += 1) await caller.ok('GET', '/agents?login=true');
  expect(starts('good')).toBe(before);
});

test('the library starts each agent once for all owners, and later starts an agent with a problem again', async () => {
  const { engine } = await compose({ home: join(home.path, 'home'), config: home.config });
  try {
    const lists = ['ann', 'bob', 'eve'].map((owner) => engine.as(owner).agents({ login: true }));
    expect(new Set((await Promise.all(lists)).map((agents) => JSON.stringify(agents))).size).toBe(1);
    expect([starts('good'), starts('bad')]).toEqual([1, 1]);
    await expect.poll(() => engine.agents({ login: true }).then(() => starts('bad'))).toBe(2);
    expect(starts('good')).toBe(1);
  } finally {
    await engine.close();
  }
});

test('with a key that may not start agents, the command lists them without logins and says so', async () => {
  const { url } = await serveProcess(home, '--log-level', 'error');
  const [{ key }] = await home.lines('keys', 'create', 'reader', '--scopes', 'read');
  const env = { THROUGHLINE_TOKEN: key };
  const { code, stdout, stderr } = await home.start(['agents', '--server', url], { env }).ended;
  expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringContaining('good (acp): version hostile 1') });
  expect(stdout).not.toContain('logged in');
  expect(stderr).toContain('Logins are not shown. Asking for logins needs the scope "admin".');
});
