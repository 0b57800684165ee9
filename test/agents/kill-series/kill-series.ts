// Kills in the middle of a turn, while a tool runs, in any kind of sandbox: of our process, of the agent, of whatever holds the sandbox.
// Each time: one side effect at most, the turn is interrupted, the next one knows of it, and nothing is left running.
//
// A kind of sandbox calls it from a test file of its own, as directory.test.ts does. What differs between them is in
// `KilledSandbox`; for one whose files and processes are on this machine, `onThisMachine` has most of it.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { conversationOf, type Model } from '../../../src/testing/index.ts';
import { until } from '../../contracts/agent-sandbox.ts';
import { hasStoredUpdate } from '../../e2e/support/conversations.ts';
import type { Host } from '../../e2e/support/host.ts';
import { storedSessions } from '../../e2e/support/stored.ts';
import { marked } from '../../faults/harness/marked.ts';
import { bash, smallAgent } from '../support/acp-agents.ts';
import { AcpHome } from '../support/acp-home.ts';
import { FIRST } from '../support/agent-home.ts';

const LONG = process.env.THROUGHLINE_LONG === '1';
const ROUNDS = LONG ? 50 : 3;
const RECALL = 'Which codewords have you seen?';
/** How long something may run on. Only the long series measures it: on a busy machine, a short one would measure the machine. */
const LEFT_MS = 10_000;

/** The moment of a kill. */
export interface InTheMiddle {
  readonly home: AcpHome;
  /** The process of ours that runs the turn. */
  readonly host: Host;
  /** The working directory of the conversation, as the sandbox has it. */
  readonly work: string;
}

export interface KilledSandbox {
  readonly name: string;
  /** Why it cannot be tried here; null: it can. */
  readonly missing: string | null;
  /** How the agent is set, with this model; it must know after a restart what it was told, and may run any command. */
  readonly agent: (model: Model, root: string) => object;
  /** The other settings of the data home: its sandboxes. */
  readonly settings: (model: Model, root: string) => object;
  /** The line that makes the agent run a command. */
  readonly run: (command: string) => string;
  /** What is killed, by what it is called. Each has to be gone when it resolves. */
  readonly victims: Readonly<Record<string, (at: InTheMiddle) => Promise<void>>>;
  /** Where a conversation works. */
  work(home: AcpHome, conversation: string): string;
  /** A file of the working directory; null: there is none. */
  read(at: InTheMiddle, name: string): Promise<string | null>;
  write(at: InTheMiddle, name: string): Promise<void>;
  /** What still runs of the agent and of all that it has started. */
  running(at: InTheMiddle): Promise<readonly unknown[]>;
}

/** The small agent of the tests, in a sandbox whose files and processes are on this machine. */
export function onThisMachine() {
  return {
    agent: (model: Model, root: string) => smallAgent(model, root, ['complete']),
    run: bash,
    work: (home: AcpHome, conversation: string) => join(home.path, 'sandboxes', conversation, 'work'),
    async read({ work }: InTheMiddle, name: string) {
      return existsSync(join(work, name)) ? readFileSync(join(work, name), 'utf8') : null;
    },
    write: async ({ work }: InTheMiddle, name: string) => writeFileSync(join(work, name), ''),
    running: async ({ home }: InTheMiddle) => marked(basename(home.path)),
  };
}

export const ourProcess = ({ host }: InTheMiddle) => host.kill();

/** The process that our store has for the agent: in a directory the agent itself, else what holds the sandbox. */
export async function recordedProcess({ home }: InTheMiddle): Promise<void> {
  const pid = storedSessions(home)[0]?.process?.pid ?? expect.unreachable('no process holds the session');
  process.kill(pid, 'SIGKILL');
}

/** The agent itself, wherever it runs on this machine: what it has started has its mark, and a parent that has it. */
export async function agentProcess({ home }: InTheMiddle): Promise<void> {
  const all = marked(basename(home.path));
  const agents = all.filter(({ parent }) => !all.some(({ pid }) => pid === parent));
  expect(agents, 'the agent').toHaveLength(1);
  process.kill(agents[0]?.pid ?? 0, 'SIGKILL');
}

export function killSeries(sandbox: KilledSandbox): void {
  describe(`${sandbox.name}: killed with a tool running`, { timeout: Math.max(600_000, ROUNDS * 60_000) }, () => {
    for (const [victim, kill] of Object.entries(sandbox.victims)) {
      test(`${victim}, ${ROUNDS} times: one effect, an interrupted turn, the next one knows, nothing runs on`, async (context) => {
        if (sandbox.missing !== null) context.skip(sandbox.missing);
        await using home = await AcpHome.make({ agent: sandbox.agent });
        home.settings = { ...(home.settings as object), ...sandbox.settings(home.model, home.path) };
        let host = await home.host();
        const { turn } = await host.calls.ask('chat', FIRST);
        const work = sandbox.work(home, turn.conversationId);
        for (let round = 1; round <= ROUNDS; round += 1) {
          const at = { home, host, work };
          await killedOnce(sandbox, at, round, () => kill(at));
          // The one that was killed ran the turn: another goes on.
          if (kill === ourProcess) host = await home.host();
          await afterwards(sandbox, { ...at, host }, round);
        }
      });
    }
  });
}

const effects = (round: number) => `effects-${round}`;

async function killedOnce(sandbox: KilledSandbox, at: InTheMiddle, round: number, kill: () => Promise<void>) {
  const file = effects(round);
  const tool = `echo begun >> ${file}; while [ ! -e go-${round} ]; do sleep 0.1; done; echo ended >> ${file}`;
  // In a session of its own: no signal to a group of processes reaches it.
  const command = `setsid -w /bin/sh -c "${tool}"`;
  at.host.calls.ask('chat', sandbox.run(command)).catch(() => {}); // how it ends is in its turn
  await until('the tool runs', async () => (await sandbox.read(at, file)) === 'begun\n');
  await until('its call is stored', () => hasStoredUpdate(at.host.engine, 'chat', file));
  expect((await sandbox.running(at)).length, 'the agent and its tool').toBeGreaterThan(1);
  await kill();
}

async function afterwards(sandbox: KilledSandbox, at: InTheMiddle, round: number): Promise<void> {
  const { home, host } = at;
  const since = performance.now();
  await until('nothing runs on', async () => (await sandbox.running(at)).length === 0);
  if (LONG) expect(performance.now() - since).toBeLessThan(LEFT_MS);
  const { reply } = await host.calls.ask('chat', RECALL);
  expect(reply).toContain('amber');
  const turns = await host.engine.turns('chat', { limit: 1_000 });
  expect(turns.slice(-2).map(({ state }) => state)).toEqual(['interrupted', 'completed']);
  expect(turns).toHaveLength(2 * round + 1);
  const request = home.model.lastRequest();
  const told = request ? conversationOf(request).map(({ text }) => text) : [];
  expect(told.join('\n')).toMatch(new RegExp(`\\[turn ${2 * round}\\] tool .*${effects(round)}.*: unknown`));
  // A tool that ran on unseen would now come to its end.
  await sandbox.write(at, `go-${round}`);
  for (let earlier = 1; earlier <= round; earlier += 1)
    expect(await sandbox.read(at, effects(earlier))).toBe('begun\n');
}
