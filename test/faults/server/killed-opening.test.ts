// Servers are killed at random moments while sessions are opened, agents are probed and gates run. The doctor finds the programs that they
// had started, and the next server ends them. No session stays recorded as live that is not.
import { chmodSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { startModel } from '../../../src/testing/index.ts';
import { smallAgent } from '../../agents/support/acp-agents.ts';
import { claudeEnvironment, findClaude, packageFolder, userHome } from '../../agents/support/claude.ts';
import { CliHome, parseLines } from '../../e2e/cli/process.ts';
import type { Caller } from '../../e2e/http/support/caller.ts';
import { serveProcess } from '../../e2e/http/support/served-process.ts';
import { endProcess } from '../harness/marked.ts';
import { Random, seedOfRun } from '../harness/random.ts';
import { until } from '../harness/until.ts';

const LONG = process.env.THROUGHLINE_LONG === '1';
const ROUNDS = LONG ? 30 : 2;
/** The latest kill, in milliseconds after the requests. */
const LATEST_MS = 1_500;

test(`${ROUNDS} servers are killed while sessions open, and none of their programs stays`, {
  timeout: 600_000,
}, async () => {
  const seed = seedOfRun();
  const random = new Random(seed);
  console.info(`THROUGHLINE_SEED=${seed}`);
  const { home, agents } = await makeHome();
  let left: Started[] = [];
  let ended = 0;
  for (let round = 0; round < ROUNDS; round += 1) {
    const server = await serveProcess(home, '--log-level', 'warn');
    await expectEnded(home, left);
    ended += left.length;
    begin(server.caller, agents, round, random);
    await delay(random.whole(0, LATEST_MS));
    server.running.kill('SIGKILL');
    await server.running.ended;
    left = await expectFound(home);
  }
  const last = await serveProcess(home, '--log-level', 'warn');
  await expectEnded(home, left);
  await until('every turn has ended', async () => (await openTurns(last.caller)) === 0, { ms: 120_000, every: 200 });
  await expectOneLiving(last.caller);
  last.running.kill('SIGTERM');
  await last.running.ended;
  expect(started(home)).toEqual([]);
  expect(parseLines((await home.run('doctor', '--json')).stdout).filter(({ check }) => check === 'sessions')).toEqual(
    [],
  );
  console.info(`${ROUNDS} kills left ${ended + left.length} programs, and none stayed`);
});

/** Agents of three kinds, and one that never answers and ignores the end of its input, SIGTERM and SIGHUP. */
async function makeHome() {
  const model = await startModel();
  const home = new CliHome();
  const slow = join(home.path, 'slow');
  writeFileSync(slow, '#!/bin/sh\ntrap "" TERM HUP\nexec sleep 600\n');
  chmodSync(slow, 0o755);
  const claude =
    findClaude() === null
      ? {}
      : {
          claude: { adapter: 'claude-cli', package: packageFolder, env: claudeEnvironment(model, userHome(home.path)) },
        };
  const agents = {
    scripted: { adapter: 'scripted' },
    acp: smallAgent(model, home.path, ['complete']),
    slow: { adapter: 'acp', command: [slow], options: { openMs: 3_000 } },
    ...claude,
  };
  writeFileSync(home.config, JSON.stringify({ defaultAgent: 'scripted', agents }));
  onTestFinished(async () => {
    for (const { pid } of started(home)) endProcess(pid);
    await home.remove();
    await model.close();
  });
  return { home, agents: Object.keys(agents) };
}

/** Prompts new and earlier conversations, probes the agents, and starts a long gate. Does not wait for the answers. */
function begin(caller: Caller, agents: readonly string[], round: number, random: Random): void {
  const ask = (method: string, path: string, body?: unknown) => void caller.ask(method, path, body).catch(() => {});
  for (let n = 0; n < 4; n += 1) {
    const key = `c${random.whole(0, round)}-${n}`;
    ask('POST', `/conversations/${key}/turns`, { prompt: 'Hello.', agent: random.pick(agents) });
  }
  if (random.chance(0.5)) ask('GET', '/agents?login=true');
  if (random.chance(0.5))
    ask('POST', '/tasks', { plan: { tasks: [{ goal: 'Hello.', agent: 'scripted', gate: 'sleep 600' }] } });
}

interface Started {
  readonly pid: number;
  readonly what: string;
  readonly began: number;
}

/** Living programs that were started from the data home: they run in it, or have it in their environment. Without our own commands. */
function started(home: CliHome): Started[] {
  return processesOf(home).filter(({ what }) => !/ serve --json | doctor /.test(what));
}

function processesOf(home: CliHome): Started[] {
  return readdirSync('/proc').flatMap((name) => {
    const pid = Number(name);
    if (!Number.isInteger(pid) || pid === process.pid) return [];
    try {
      const read = (file: string) => readFileSync(`/proc/${name}/${file}`, 'latin1');
      const [stat, what] = [read('stat'), read('cmdline').replaceAll('\0', ' ')];
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
      const belongs = read('environ').includes(home.path) || readlinkSync(`/proc/${name}/cwd`).startsWith(home.path);
      if (!belongs || fields[0] === 'Z') return [];
      return [{ pid, what, began: Number(fields[19]) }];
    } catch {
      return []; // it has just ended, or belongs to another user
    }
  });
}

/** Expects the doctor to name every program of the killed server, or the process group of it. Returns these programs. */
async function expectFound(home: CliHome): Promise<Started[]> {
  // Between fork and exec, a child of the killed server has the command line and environment of the server.
  await until('every child is a program', () => !processesOf(home).some(({ what }) => what.includes(' serve --json ')));
  const { stdout } = await home.run('doctor', '--json');
  const named = parseLines(stdout)
    .filter(({ check }) => check === 'processes')
    .map(({ process }) => Number(process.split(' ')[1]));
  const stay = started(home);
  // The leader of a process group may have ended; the group keeps its number.
  const groups = new Set([...named, ...named.map(groupOf)]);
  const unnamed = stay.filter(({ pid }) => !named.includes(pid) && !groups.has(groupOf(pid)));
  expect(unnamed).toEqual([]);
  return stay;
}

function groupOf(pid: number): number {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[2]);
  } catch {
    return -1;
  }
}

async function expectEnded(home: CliHome, left: readonly Started[]): Promise<void> {
  const isLeft = ({ pid, began }: Started) => left.some((one) => one.pid === pid && one.began === began);
  await until('the next server has ended them', () => !started(home).some(isLeft), { every: 50 });
}

async function openTurns(caller: Caller): Promise<number> {
  const { conversations } = await caller.ok('GET', '/conversations?limit=500');
  return conversations.reduce(
    (sum: number, { open, stranded }: { open: number; stranded: unknown }) => sum + (stranded ? 0 : open),
    0,
  );
}

/** In each conversation at most one session of each agent is live: the newest. */
async function expectOneLiving(caller: Caller): Promise<void> {
  const { conversations } = await caller.ok('GET', '/conversations?limit=500');
  const wrong = [];
  for (const { id } of conversations) {
    const { sessions } = await caller.ok('GET', `/conversations/${id}/sessions`);
    const newest = new Map<string, string>();
    for (const session of sessions) if (!newest.has(session.agent)) newest.set(session.agent, session.id);
    wrong.push(
      ...sessions.filter(
        (one: { agent: string; id: string; state: string }) => one.state === 'live' && newest.get(one.agent) !== one.id,
      ),
    );
  }
  expect(wrong).toEqual([]);
}
