// The command line while a server runs for its data home: commands find it, and print and exit as without it.
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { CliHome, parseLines } from '../cli/process.ts';
import { type ServedProcess, serveProcess } from '../http/support/served-process.ts';

let home: CliHome;
let server: ServedProcess;
beforeAll(async () => {
  home = new CliHome();
  server = await serveProcess(home);
});
afterAll(() => home.remove());

/** The process that holds the lock of the conversation. */
async function holder(key: string): Promise<string | null> {
  const [{ lock }] = await home.lines('summary', key);
  return lock?.holder ?? null;
}

test('the server does the work, and keeps the session warm for the next command', async () => {
  expect(await home.ok('send', 'notes', 'The codeword is osprey')).toBe('Noted: The codeword is osprey\n');
  expect(await holder('notes')).toBe('this server');
  const lines = await home.lines('send', 'notes', 'Which codewords have you seen?');
  expect(lines.at(-1)).toMatchObject({ kind: 'result', turn: { n: 2 }, receipt: { rung: 'live', carried: 1 } });
  const view = await home.show('notes');
  expect(view.turns.map(({ reply }: { reply: string }) => reply)).toEqual([
    'Noted: The codeword is osprey',
    'I have seen these codewords: osprey.',
  ]);
  const [embedded] = parseLines(await home.ok('--embedded', 'show', 'notes', '--json'));
  expect(view).toEqual(embedded);
});

test('verify, search, export, import and list work through the server', async () => {
  expect(await home.ok('verify', 'notes')).toMatch(/^intact: (\d+) events\nhead: \1:[0-9a-f]{64}\n$/);
  expect(await home.lines('search', 'osprey')).toHaveLength(2);
  const exported = await home.ok('export', 'notes');
  expect(await home.start(['import', '-', '--key', 'copy'], { input: exported }).ended).toMatchObject({ code: 0 });
  expect((await home.lines('list')).map(({ key }) => key).toSorted()).toEqual(['copy', 'notes']);
});

test('a relative directory is relative to the command, and not to the server', async () => {
  const folder = join(home.path, 'folder');
  mkdirSync(folder);
  const { ended } = home.start(['send', 'there', 'Which directory are you in?', '--cwd', '.'], { cwd: folder });
  expect((await ended).stdout).toBe(`I am in ${folder}.\n`);
});

test.each([
  [4, ['show', 'nothing'], /There is no conversation "nothing"\. See "throughline list"\./],
  [3, ['send', 'x', 'hello', '--agent', 'nobody'], /There is no agent "nobody".*"throughline agents"/],
  [2, ['send', 'notes', ' '], /The prompt is empty/],
  [2, ['send', 'notes', 'hello', '--cwd', '/'], /another working directory/],
  [1, ['send', 'failing', '/fail it'], /failed as asked: it/],
])('a command exits with %i for %j', async (code, args, why) => {
  const ended = await home.run(...args);
  expect(ended).toMatchObject({ code });
  expect(ended.stderr).toMatch(why);
});

test('Ctrl-C cancels the turn in the server', async () => {
  const running = home.start(['send', 'once', '/say begun\n/hang']);
  await running.until('stdout', /begun/);
  running.kill('SIGINT');
  expect(await running.ended).toMatchObject({ code: 130, stdout: 'begun\n' });
  expect((await home.show('once')).turns[0]).toMatchObject({ state: 'cancelled', reply: 'begun' });
});

test('a turn is followed, and cancelled, from another terminal', async () => {
  const running = home.start(['send', 'shared', '/say begun\n/hang']);
  await running.until('stdout', /begun/);
  const following = home.start(['follow', 'shared', '--until-idle']);
  await following.until('stdout', /says: begun/);
  expect(await home.ok('cancel', 'shared')).toBe('turn 1 cancelled\n');
  expect((await running.ended).code).toBe(130);
  expect(await following.ended).toMatchObject({ code: 0, stdout: expect.stringMatching(/turn 1 cancelled/) });
});

test('a permission is answered in another terminal', async () => {
  const running = home.start(['send', 'asking', '/ask May I?\n/say done', '--permissions', 'ask']);
  const [, id = ''] = await running.until('stderr', /throughline answer (\S+) OPTION/);
  expect(await home.lines('permissions')).toMatchObject([{ id, state: 'open' }]);
  await home.ok('answer', id, 'allow');
  expect(await running.ended).toMatchObject({ code: 0, stdout: expect.stringMatching(/done/) });
});

describe('the server of a command', () => {
  test('is named with --server or in the environment, and its token comes from the environment or the data home', async () => {
    const away = { THROUGHLINE_HOME: join(home.path, 'away') };
    const named = ['--server', server.url, 'list'];
    expect((await home.start(named).ended).stdout).toMatch(/^notes /m);
    const without = await home.start(named, { env: away }).ended;
    expect(without).toMatchObject({ code: 2, stdout: '' });
    expect(without.stderr).toMatch(/no token for this server\. Set THROUGHLINE_TOKEN/);
    const wrong = await home.start(named, { env: { ...away, THROUGHLINE_TOKEN: 'x' } }).ended;
    expect(wrong).toMatchObject({ code: 2 });
    expect(wrong.stderr).toMatch(/does not accept this token\. Set THROUGHLINE_TOKEN \(/);
    const env = { ...away, THROUGHLINE_TOKEN: server.token, THROUGHLINE_SERVER: `unix:${server.socket}` };
    expect(parseLines((await home.start(['list', '--json'], { env }).ended).stdout)).toEqual(await home.lines('list'));
    expect(existsSync(away.THROUGHLINE_HOME)).toBe(false);
  });

  test('acts for the owner of the key, and refuses --as with another owner', async () => {
    const key = (await home.ok('--as', 'ann', 'keys', 'create', 'hers', '--scopes', 'read,prompt')).trim();
    const env = { THROUGHLINE_TOKEN: key, THROUGHLINE_SERVER: server.url };
    expect((await home.start(['send', 'hers', 'hello'], { env }).ended).stdout).toBe('Noted: hello\n');
    expect((await home.lines('--as', 'ann', 'list')).map((one) => one.key)).toEqual(['hers']);
    expect((await home.start(['--as', 'bob', 'list'], { env }).ended).stderr).toMatch(
      /act for "ann" only, not for "bob"/,
    );
  });

  test('acts for the owner of --as if the key may do so, and keys create says for whom a key acts', async () => {
    const create = (...more: string[]) => home.run('--as', 'app', 'keys', 'create', 'the app', '--scopes', ...more);
    const made = await create('act-as,read,prompt', '--owners', 'app:*');
    expect(made.stderr).toMatch(
      /acts for the owners "app:\*": .*Throughline-Owner\. Without the header, it acts for "app"/,
    );
    const env = { THROUGHLINE_TOKEN: made.stdout.trim(), THROUGHLINE_SERVER: server.url };
    expect((await home.start(['--as', 'app:ann', 'send', 'hers', 'hello'], { env }).ended).stdout).toBe(
      'Noted: hello\n',
    );
    expect((await home.lines('--as', 'app:ann', 'list')).map((one) => one.key)).toEqual(['hers']);
    const refused = await home.start(['--as', 'bob', 'list'], { env }).ended;
    expect(refused).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/act for "app:\*", not for "bob".*--owners/s),
    });
    expect(await home.lines('--as', 'app', 'keys', 'list')).toMatchObject([
      { owner: 'app', scopes: ['act-as', 'read', 'prompt'], owners: 'app:*' },
    ]);
    expect(await home.ok('--as', 'app', 'keys', 'list')).toMatch(/act-as,read,prompt for app:\*, created/);
    for (const wrong of [['read', '--owners', 'app:*'], ['act-as'], ['act-as,read', '--owners', 'app*']]) {
      expect(await create(...wrong)).toMatchObject({ code: 2, stdout: '' });
    }
    expect((await create('act-as,read')).stderr).toMatch(
      /acts for every owner of this data home \(--owners limits it\)/,
    );
  });

  test.each([
    ['--embedded', '--server', 'http://127.0.0.1:1', 'list'],
    ['--server', 'http://127.0.0.1:1', 'keys', 'list'],
    ['--server', 'http://127.0.0.1:1', 'demo'],
    ['--server', 'http://127.0.0.1:1', 'doctor'],
    ['--server', 'http://127.0.0.1:1', 'agents', 'install', 'claude'],
    ['--config', 'settings.json', 'list'],
    ['--server', 'http://192.0.2.1', 'list'],
  ])('is not ignored where it cannot be used: %s %s %s', async (...args) => {
    const { code, stderr, stdout } = await home.run(...args);
    expect({ args, code, stdout }).toEqual({ args, code: 2, stdout: '' });
    expect(stderr).toMatch(
      /cannot be used together|works on the data home itself|with its own settings|could read the token/,
    );
  });
});

test('commands act for the same owner, whichever owner the server was started for', async () => {
  const ids = async (...as: string[]) => (await home.lines(...as, 'list')).map(({ id }) => id).toSorted();
  const before = await ids();
  server.running.kill('SIGTERM');
  await server.running.ended;
  server = await serveProcess(home, '--as', 'ann');
  expect(before.length).toBeGreaterThan(0);
  expect(await ids()).toEqual(before);
  expect(await ids('--as', 'ann')).not.toEqual(before);
});

test('--embedded uses the data home without its server, and the turn runs once', async () => {
  expect(await home.ok('--embedded', 'send', 'past', 'hello')).toBe('Noted: hello\n');
  expect((await home.show('past')).turns).toMatchObject([{ state: 'completed', attempt: 1 }]);
});

test('after a server is killed, a waiting command continues with the next one; without any, commands run embedded', async () => {
  const running = home.start(['send', 'cut', '/say begun\n/hang']);
  await running.until('stdout', /begun/);
  server.running.kill('SIGKILL');
  await server.running.ended;
  server = await serveProcess(home);
  expect(await running.ended).toMatchObject({ code: 7, stdout: expect.stringMatching(/^begun/) });
  server.running.kill('SIGKILL');
  await server.running.ended;
  expect(existsSync(server.socket)).toBe(true); // the killed server has not removed it
  expect(await home.ok('send', 'notes', 'Which codewords have you seen?')).toBe(
    'I have seen these codewords: osprey.\n',
  );
  expect(await holder('notes')).toBeNull();
});
