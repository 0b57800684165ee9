// Kills during a tool, in any kind of sandbox: of our process, of the agent, and of the process that holds the sandbox. After each kill the
// turn is interrupted, the tool does not run again, the next turn says so, and no process is left.
//
// Each kind of sandbox has its own test file that calls `killSeries`, such as directory.test.ts. `SandboxToTest` has what differs between
// the kinds. `onThisMachine` has most of it for a sandbox whose files and processes are on this machine.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { conversationOf, type Model } from '../../../src/testing/index.ts';
import { until } from '../../contracts/agent-sandbox.ts';
import { hasStoredUpdate, WHICH_CODEWORDS } from '../../e2e/support/conversations.ts';
import type { Host } from '../../e2e/support/host.ts';
import { storedSessions } from '../../e2e/support/stored.ts';
import { marked } from '../../faults/harness/marked.ts';
import { bash, smallAgent } from '../support/acp-agents.ts';
import { AcpHome } from '../support/acp-home.ts';
import { FIRST } from '../support/agent-home.ts';

const LONG = process.env.THROUGHLINE_LONG === '1';
const ROUNDS = LONG ? 50 : 3;
/** Processes must end within this time. Only the long series checks it, because the machine may be busy in `npm run test:all`. */
const END_LIMIT_MS = 10_000;

/** A turn whose tool runs. */
export interface RunningTurn {
  readonly home: AcpHome;
  /** Our process that runs the turn. */
  readonly host: Host;
  /** The working directory of the conversation. */
  readonly work: string;
}

export interface SandboxToTest {
  readonly name: string;
  /** The reason to skip the tests; null: they can run here. */
  readonly whySkipped: string | null;
  /** The settings of the agent for this model. It must keep its sessions after a restart, and run commands without a permission. */
  readonly agent: (model: Model, root: string) => object;
  /** Additional settings of the data home: its sandbox. */
  readonly settings: (model: Model, root: string) => object;
  /** A line of a prompt that makes the agent run a command. */
  readonly run: (command: string) => string;
  /** What is killed, by name. The process has ended when the function resolves. */
  readonly kills: Readonly<Record<string, (turn: RunningTurn) => Promise<void>>>;
  /** The working directory of a conversation. */
  work(home: AcpHome, conversation: string): string;
  /** Reads a file of the working directory; null: there is none. */
  read(turn: RunningTurn, name: string): Promise<string | null>;
  write(turn: RunningTurn, name: string): Promise<void>;
  /** The running processes of the agent, and those that it has started. */
  running(turn: RunningTurn): Promise<readonly unknown[]>;
}

/** The values for a small agent in a sandbox whose files and processes are on this machine. */
export function onThisMachine() {
  return {
    agent: (model: Model, root: string) => smallAgent(model, root, ['complete']),
    run: bash,
    work: (home: AcpHome, conversation: string) => join(home.path, 'sandboxes', conversation, 'work'),
    async read({ work }: RunningTurn, name: string) {
      return existsSync(join(work, name)) ? readFileSync(join(work, name), 'utf8') : null;
    },
    write: async ({ work }: RunningTurn, name: string) => writeFileSync(join(work, name), ''),
    running: async ({ home }: RunningTurn) => marked(basename(home.path)),
  };
}

export const killThroughline = ({ host }: RunningTurn) => host.kill();

/** Kills the process that our store has for the agent: without isolation the agent itself, otherwise the one that holds the sandbox. */
export async function killRecordedProcess({ home }: RunningTurn): Promise<void> {
  const pid = storedSessions(home)[0]?.process?.pid ?? expect.unreachable('no process holds the session');
  process.kill(pid, 'SIGKILL');
}

/** Kills the agent itself. It has our mark and its parent does not. The programs that it has started have a parent with the mark. */
export async function killAgentProcess({ home }: RunningTurn): Promise<void> {
  const all = marked(basename(home.path));
  const agents = all.filter(({ parent }) => !all.some(({ pid }) => pid === parent));
  expect(agents, 'the agent').toHaveLength(1);
  process.kill(agents[0]?.pid ?? 0, 'SIGKILL');
}

export function killSeries(sandbox: SandboxToTest): void {
  describe(`${sandbox.name}: after a kill during a tool`, { timeout: Math.max(600_000, ROUNDS * 60_000) }, () => {
    for (const [victim, kill] of Object.entries(sandbox.kills)) {
      const title = `of ${victim} the turn is interrupted, its tool does not run again, the next turn says so, and no process is left (${ROUNDS} times)`;
      test(title, async (context) => {
        if (sandbox.whySkipped !== null) context.skip(sandbox.whySkipped);
        await using home = await AcpHome.make({ agent: sandbox.agent });
        home.settings = { ...(home.settings as object), ...sandbox.settings(home.model, home.path) };
        let host = await home.host();
        const { turn: first } = await host.calls.ask('chat', FIRST);
        const work = sandbox.work(home, first.conversationId);
        for (let round = 1; round <= ROUNDS; round += 1) {
          const turn = { home, host, work };
          await startTool(sandbox, turn, round);
          await kill(turn);
          // After a kill of Throughline another process continues.
          if (kill === killThroughline) host = await home.host();
          await expectRecovered(sandbox, { ...turn, host }, round);
        }
      });
    }
  });
}

/** The file to which the tool writes. */
const effectsFile = (round: number) => `effects-${round}`;

/** Sends a prompt and waits until its tool runs and its call is stored. The tool ends when the file `go-…` exists. */
async function startTool(sandbox: SandboxToTest, turn: RunningTurn, round: number): Promise<void> {
  const file = effectsFile(round);
  const tool = `echo begun >> ${file}; while [ ! -e go-${round} ]; do sleep 0.1; done; echo ended >> ${file}`;
  // In its own session, so that no signal to a process group reaches it.
  const command = `setsid -w /bin/sh -c "${tool}"`;
  // The kill may make this call fail. The state of the turn says how it ended.
  turn.host.calls.ask('chat', sandbox.run(command)).catch(() => {});
  await until('the tool runs', async () => (await sandbox.read(turn, file)) === 'begun\n');
  await until('its call is stored', () => hasStoredUpdate(turn.host.engine, 'chat', file));
  expect((await sandbox.running(turn)).length, 'the agent and its tool').toBeGreaterThan(1);
}

async function expectRecovered(sandbox: SandboxToTest, turn: RunningTurn, round: number): Promise<void> {
  const { home, host } = turn;
  const since = performance.now();
  await until('all processes have ended', async () => (await sandbox.running(turn)).length === 0);
  if (LONG) expect(performance.now() - since).toBeLessThan(END_LIMIT_MS);
  const { reply } = await host.calls.ask('chat', WHICH_CODEWORDS);
  expect(reply).toContain('amber');
  const turns = await host.engine.turns('chat', { limit: 1_000 });
  expect(turns.slice(-2).map(({ state }) => state)).toEqual(['interrupted', 'completed']);
  expect(turns).toHaveLength(2 * round + 1);
  const request = home.model.lastRequest();
  const texts = request ? conversationOf(request).map(({ text }) => text) : [];
  expect(texts.join('\n')).toMatch(new RegExp(`\\[turn ${2 * round}\\] tool .*${effectsFile(round)}.*: unknown`));
  // A tool that still ran, unseen, would now write its last line. The next rounds read this file again.
  await sandbox.write(turn, `go-${round}`);
  for (let earlier = 1; earlier <= round; earlier += 1)
    expect(await sandbox.read(turn, effectsFile(earlier))).toBe('begun\n');
}
