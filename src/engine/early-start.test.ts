import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { TestSandboxes, until } from '../../test/contracts/agent-sandbox.ts';
import { identityOf, systemProcesses } from '../../test/contracts/liveness.ts';
import type { Agent, ProgramStart } from '../ports/agent.ts';
import type { Child, Sandboxes } from '../ports/sandbox.ts';
import { EarlyStart } from './early-start.ts';

const PLACE = { sandbox: 'one', cwd: null };
/** Reads its input to the end. */
const CAT: ProgramStart = { command: ['cat'], env: { FIRST: '1' } };

let own: TestSandboxes;
/** All programs that were started, by any caller. */
let started: Child[];
let plain: Sandboxes;

beforeEach(async () => {
  own = new TestSandboxes();
  started = [];
  const made = own.all;
  plain = {
    ...made,
    async open(id, options) {
      const sandbox = await made.open(id, options);
      const spawn: typeof sandbox.spawn = async (...how) => {
        const child = await sandbox.spawn(...how);
        started.push(child);
        return child;
      };
      return { ...sandbox, spawn };
    },
  };
  await plain.open('one', { cwd: null });
});
afterEach(async () => {
  for (const child of started) child.kill('SIGKILL');
  await own.dispose();
});

const agentWith = (program: ProgramStart | null) =>
  ({ name: 'one', program: async () => program }) as Partial<Agent> as Agent;
const isAlive = (child: Child | undefined) =>
  child !== undefined && systemProcesses.status(identityOf(child.identity)) === 'alive';

/** An early start whose program runs. */
async function begun(program: ProgramStart = CAT): Promise<EarlyStart> {
  const earlyStart = new EarlyStart(plain);
  await earlyStart.begin(agentWith(program), PLACE);
  await until('it runs', () => started.length === 1);
  return earlyStart;
}

async function spawnIn(earlyStart: EarlyStart, { command, env }: ProgramStart, cwd?: string): Promise<Child> {
  const sandbox = await earlyStart.sandboxes.open('one', { cwd: null });
  return sandbox.spawn(command, cwd === undefined ? { env } : { env, cwd });
}

test('the first caller that starts the program gets the running one, which the early start no longer ends', async () => {
  const earlyStart = await begun();
  expect(await spawnIn(earlyStart, CAT)).toBe(started[0]);
  await earlyStart.end();
  expect(isAlive(started[0])).toBe(true);
  expect(await spawnIn(earlyStart, CAT)).toBe(started[1]);
});

test.each([
  ['another program', { ...CAT, command: ['sleep', '60'] }, undefined],
  ['another environment', { ...CAT, env: {} }, undefined],
  ['another directory', CAT, '/'],
] as const)('%s starts a new program, and the unused running one is ended', async (_, program, cwd) => {
  const earlyStart = await begun();
  expect(await spawnIn(earlyStart, program, cwd)).toBe(started[1]);
  await earlyStart.end();
  expect(started.map(isAlive)).toEqual([false, true]);
});

test('the running program is not used in another sandbox', async () => {
  const earlyStart = await begun();
  const other = await earlyStart.sandboxes.open('two', { cwd: null });
  expect(await other.spawn(CAT.command, { env: CAT.env })).toBe(started[1]);
});

test('the running program is ended when its sandbox is gone', async () => {
  const earlyStart = await begun();
  rmSync(join(own.root, 'one'), { recursive: true });
  expect(await earlyStart.sandboxes.find('one')).toBeNull();
  expect(isAlive(started[0])).toBe(false);
  expect(await spawnIn(earlyStart, CAT)).toBe(started[1]);
});

test('a program that has ended meanwhile is started again', async () => {
  const earlyStart = await begun();
  started[0]?.kill('SIGKILL');
  for await (const _ of started[0]?.stdout ?? []);
  await started[0]?.exited;
  expect(await spawnIn(earlyStart, CAT)).toBe(started[1]);
});

test('starting a program that cannot be started throws the reason', async () => {
  const missing = { command: ['no-such-program'], env: {} };
  const earlyStart = new EarlyStart(plain);
  await earlyStart.begin(agentWith(missing), PLACE);
  await expect(spawnIn(earlyStart, missing)).rejects.toMatchObject({ code: 'agent_unavailable' });
});

test.each([
  ['an agent whose arguments say which session', agentWith(null), PLACE],
  ['an agent that names no program', { name: 'one' } as Agent, PLACE],
  ['a sandbox that has to be made first', agentWith(CAT), { sandbox: 'new', cwd: null }],
])('nothing is started for %s', async (_, agent, place) => {
  await new EarlyStart(plain).begin(agent, place);
  expect(started).toEqual([]);
  expect((await plain.list()).ids).toEqual(['one']);
});

test('no rented machine is started before there is a prompt', async () => {
  await new EarlyStart({ ...plain, rest: async () => {} }).begin(agentWith(CAT), PLACE);
  expect(started).toEqual([]);
});

test('nothing is started after the end', async () => {
  const earlyStart = new EarlyStart(plain);
  await earlyStart.end();
  await earlyStart.begin(agentWith(CAT), PLACE);
  expect(started).toEqual([]);
});
