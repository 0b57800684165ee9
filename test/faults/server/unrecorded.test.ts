// A process is killed in the first moments of a turn or a probe, before it could record the agent that it started.
import { randomUUID } from 'node:crypto';
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, onTestFinished, type TestContext, test } from 'vitest';
import { startModel } from '../../../src/testing/index.ts';
import { codexAcp, whyNotInstalled } from '../../agents/support/acp-agents.ts';
import { CliHome, parseLines } from '../../e2e/cli/process.ts';
import { serveProcess } from '../../e2e/http/support/served-process.ts';
import { endMarked, MARK, marked } from '../harness/marked.ts';
import { until } from '../harness/until.ts';

/** From the start of the agent until the kill, in milliseconds. */
const MOMENTS = [0, 5, 15, 30, 60, 100];

/** An agent that never answers, and ignores the end of its input, SIGTERM and SIGHUP. The server waits for it until the kill. */
function slow(home: CliHome): object {
  const file = join(home.path, 'slow');
  writeFileSync(file, '#!/bin/sh\ntrap "" TERM HUP\nexec sleep 600\n');
  chmodSync(file, 0o755);
  return { adapter: 'acp', command: [file], options: { openMs: 600_000 } };
}

function makeHome(agent: (home: CliHome) => object): { home: CliHome; mark: string } {
  const mark = randomUUID();
  const home = new CliHome();
  const settings: { env?: object } = agent(home);
  home.configure({ agents: { agent: { ...settings, env: { ...settings.env, [MARK]: mark } } } });
  onTestFinished(async () => {
    await endMarked(mark);
    await home.remove();
  });
  return { home, mark };
}

/** Kills the server soon after an agent was started, again and again. */
async function killedEarly({ home, mark }: { home: CliHome; mark: string }): Promise<void> {
  for (const [round, moment] of MOMENTS.entries()) {
    const server = await serveProcess(home, '--log-level', 'warn');
    // The server may still be ending what the one before it left.
    const before = new Set(marked(mark).map(({ pid }) => pid));
    const key = `c${round}`;
    await server.caller.ok('POST', '/conversations', { key });
    await server.caller.ok('POST', `/conversations/${key}/turns`, { prompt: 'Hello.' });
    await until('an agent is started', () => marked(mark).some(({ pid }) => !before.has(pid)));
    await delay(moment);
    server.running.kill('SIGKILL');
    await server.running.ended;
  }
}

/** Starts a server and stops it normally. It must end the programs of the servers before it. */
async function startAndStop(home: CliHome): Promise<void> {
  const last = await serveProcess(home, '--log-level', 'warn');
  last.running.kill('SIGTERM');
  await last.running.ended;
}

const AGENTS: Readonly<
  Record<string, { agent(home: CliHome, url: string): object; needs(context: TestContext): void }>
> = {
  'an agent that never answers': { agent: slow, needs: () => {} },
  'codex-acp': {
    agent: (home, url) => codexAcp({ url }, home.path),
    needs(context) {
      const why = whyNotInstalled('@agentclientprotocol/codex-acp');
      if (why !== null) context.skip(why);
    },
  },
};

test.for(Object.entries(AGENTS))(
  '%s: servers that are killed right after it was started leave none behind',
  { timeout: 600_000 },
  async ([, { agent, needs }], context) => {
    needs(context);
    const model = await startModel();
    onTestFinished(() => model.close());
    const world = makeHome((home) => agent(home, model.url));
    await killedEarly(world);
    await startAndStop(world.home);
    expect(marked(world.mark)).toEqual([]);
  },
);

test.each([
  ['a turn', ['send', 'chat', 'Hello.', '--embedded']],
  ['a probe', ['agents']],
])('the doctor and the next process find the agent that a killed command started for %s', async (_, command) => {
  const { home, mark } = makeHome(slow);
  const leave = async () => {
    const running = home.start(command);
    await until('an agent is started', () => marked(mark).length === 1);
    running.kill('SIGKILL');
    await running.ended;
    return marked(mark)[0]?.pid;
  };
  const pid = await leave();
  const found = parseLines((await home.run('doctor', '--no-agents', '--json')).stdout).filter(
    ({ check }) => check === 'processes',
  );
  expect(found).toMatchObject([
    { subject: 'unrecorded program', process: `process ${pid}`, problem: expect.stringContaining('has ended') },
  ]);
  await home.run('doctor', '--no-agents', '--fix');
  expect(marked(mark)).toEqual([]);

  await leave();
  await home.ok('list');
  await until('it is ended', () => marked(mark).length === 0);
});
