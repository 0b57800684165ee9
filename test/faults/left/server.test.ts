import { afterEach, beforeEach, expect, test } from 'vitest';
import { open } from '../../../src/index.ts';
import { CliHome, type Running } from '../../e2e/cli/process.ts';
import { type ServedProcess, serveProcess } from '../../e2e/http/support/served-process.ts';

let home: CliHome;
let server: ServedProcess;
/** How long the server took to start, as a measure of how busy the machine is. */
let startMs: number;
beforeEach(async () => {
  home = new CliHome();
  const start = performance.now();
  server = await serveProcess(home);
  startMs = performance.now() - start;
});
afterEach(() => home.remove());

/** Kills the server while it streams the answer of the first turn. */
async function killServer(): Promise<number> {
  server.running.kill('SIGKILL');
  await server.running.ended;
  return Date.now();
}

const streaming = async (): Promise<Running> => {
  const sending = home.start(['send', 'chat', 'Hello.\n/stream 100000 5']);
  await sending.until('stdout', /chunk 2 /);
  return sending;
};

// A client waits half a minute for its server. All clients here do so at the same time.
test('a killed server that does not return: waiting clients say so soon, and in the end what happened to the turn', async () => {
  const first = await streaming();
  const [second, json] = [
    home.start(['send', 'chat', 'Which codewords have you seen?']),
    home.start(['send', 'other', '/stream 100000 5', '--json']),
  ];
  await json.until('stdout', /"turn.update"/);
  const task = home.start(['task', 'run', 'Hello.\n/stream 100000 5', '--json']);
  await task.until('stdout', /"task.started"/);
  const tl = await open({ server: `unix:${server.socket}`, token: server.token });
  const accepted = tl.conversation('chat').send('Hello?');
  await accepted.accepted;
  const asked = Array.fromAsync(accepted.events).catch((error: unknown) => error);
  await second.until('stderr', /Waiting: this server holds the conversation/);
  const killedAt = await killServer();

  const said = /Waiting: The connection to \S+ was lost \(.*\)\. The server is tried again for 30 seconds/;
  await Promise.all([first.until('stderr', said), second.until('stderr', said), json.until('stderr', /"waiting"/)]);
  // After two seconds, more on a busy machine, but long before they give up.
  expect(Date.now() - killedAt).toBeLessThan(Math.max(20_000, 8 * startMs));

  const interrupted = await first.ended;
  expect(interrupted.code).toBe(7);
  expect(interrupted.stderr.match(/Waiting: The connection/g)).toHaveLength(1);
  expect(interrupted.stderr).toContain('Turn 1: The program that ran this turn ended in the middle of it.');
  const queued = await second.ended;
  expect(queued.code).toBe(1);
  expect(queued.stderr).toMatch(
    /does not answer \(.*\)\. Turn 2 was accepted and is stored\. No process runs turn 2 now\. "throughline serve", .* runs it\. "throughline show \S+" shows it\./,
  );
  const ended = await json.ended;
  expect(ended.code).toBe(7);
  const last = JSON.parse(ended.stdout.trim().split('\n').at(-1) ?? '');
  expect(last).toMatchObject({
    kind: 'result',
    turn: { state: 'interrupted' },
    reply: expect.stringContaining('chunk'),
  });
  expect(await asked).toMatchObject({
    code: 'unreachable',
    message: expect.stringContaining('Turn 3 was accepted and is stored.'),
  });
  await tl.close();
  expect(await task.ended).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('The tasks were accepted and are stored.'),
  });

  expect(await home.ok('send', 'chat', 'Hello again.')).toContain('Noted');
  const { turns } = await home.show('chat');
  expect(turns.map(({ state }: { state: string }) => state)).toEqual(['interrupted', ...Array(3).fill('completed')]);
});

test('a killed server that returns: waiting clients continue, and do not mention a short absence', async () => {
  const sending = await streaming();
  await killServer();
  server = await serveProcess(home);
  const { code, stderr } = await sending.ended;
  expect(code).toBe(7);
  expect(stderr).toContain('Turn 1: The program that ran this turn ended in the middle of it.');
  expect(stderr).not.toContain('does not answer');
});
