import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import type { Server } from 'node:http';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { fill, smallDisk } from '../../faults/full-disk/small-disk.ts';
import { until } from '../../faults/harness/until.ts';
import { CliHome } from '../cli/process.ts';
import { sentTo } from '../support/stored.ts';
import { ServedHome } from './support/served-home.ts';
import { serveProcess } from './support/served-process.ts';

let home: CliHome;
beforeEach(() => {
  home = new CliHome();
});
afterEach(() => home.remove());

const serverDirectory = () => join(home.path, 'home', 'server');
const mode = (path: string) => (statSync(path).mode & 0o777).toString(8);

test('serves until Ctrl-C, in files that nobody else may read, and leaves no address behind', async () => {
  const { running, url, socket, pid, caller } = await serveProcess(home, '--demo');
  expect(mode(serverDirectory())).toBe('700');
  for (const file of ['token', 'lock', 'socket', 'address.json']) {
    expect({ file, mode: mode(join(serverDirectory(), file)) }).toEqual({ file, mode: '600' });
  }
  const address = JSON.parse(readFileSync(join(serverDirectory(), 'address.json'), 'utf8'));
  expect(address).toMatchObject({ url, socket, process: { pid } });
  await until('the demo has been answered', async () => (await caller.ok('GET', '/conversations/demo')).head === 2);
  const view = await caller.ok('GET', '/conversations/demo/view');
  expect(view.conversation.title).toMatch(/scripted agent, no model/);
  expect(view.turns[1].reply).toContain('amber-heron');
  running.kill('SIGINT');
  expect(await running.ended).toMatchObject({ code: 0, signal: null });
  expect(existsSync(join(serverDirectory(), 'address.json'))).toBe(false);
  expect(existsSync(join(serverDirectory(), 'socket'))).toBe(false);
});

test('a person is told where it is, how to sign in, and that the demo has no model', async () => {
  const running = home.start(['serve', '--demo']);
  await running.until('stdout', /Press Ctrl-C to stop\./);
  expect(running.stdout).toMatch(/^Throughline serves at http:\/\/127\.0\.0\.1:\d+\n/);
  expect(running.stdout).toMatch(/open {4}http:\/\/127\.0\.0\.1:\d+\/enter\?code=[\w-]{43}\n/);
  expect(running.stdout).toContain('it answers by rules, and no model is called');
  running.kill('SIGTERM');
  expect(await running.ended).toMatchObject({ code: 0 });
});

test('settings without the agent of the demo cost the demo, and not the server', async () => {
  const config = join(home.path, 'other.json');
  writeFileSync(config, JSON.stringify({ agents: { mine: { adapter: 'scripted' } } }));
  const running = home.start(['serve', '--demo', '--port', '0'], { env: { THROUGHLINE_CONFIG: config } });
  await running.until('stdout', /Press Ctrl-C to stop\./);
  expect(running.stdout).toContain('/enter?code=');
  expect(running.stdout).not.toContain('demo');
  expect(running.stderr).toContain('no demo: the settings have no agent "scripted"');
  running.kill('SIGINT');
  expect(await running.ended).toMatchObject({ code: 0 });
});

test('one server a data home; one that was killed is in nobody’s way', async () => {
  const first = await serveProcess(home);
  const second = await home.run('serve', '--port', '0');
  expect(second.code).toBe(1);
  expect(second.stderr).toContain(`This data home already has a running server: ${first.url}, process ${first.pid}.`);
  expect((await first.caller.get('//healthz')).status).toBe(200);
  first.running.kill('SIGKILL');
  await first.running.ended;
  const third = await serveProcess(home);
  expect((await third.caller.get('/conversations')).status).toBe(200);
  expect(third.token).toBe(first.token);
});

test('a server that is killed leaves what it has compiled to the next one', async () => {
  const cache = join(home.path, 'cache');
  const { running } = await serveProcess(home, { env: { NODE_COMPILE_CACHE: cache } });
  const kept = () => (existsSync(cache) ? readdirSync(cache, { recursive: true }).length : 0);
  await until('what was compiled is kept', () => kept() > 100);
  running.kill('SIGKILL');
  await running.ended;
});

test('what lies where the server keeps its files is told as what it is', async () => {
  mkdirSync(join(serverDirectory(), 'socket'), { recursive: true });
  const noSocket = await home.run('serve', '--port', '0');
  expect([noSocket.code, noSocket.stderr]).toEqual([2, expect.stringMatching(/Cannot replace .*socket\. Remove it/)]);
  rmSync(serverDirectory(), { recursive: true });
  writeFileSync(serverDirectory(), '');
  const noDirectory = await home.run('serve', '--port', '0');
  expect([noDirectory.code, noDirectory.stderr]).toEqual([
    1,
    expect.stringMatching(/Cannot create the directory .*server\. Remove the file/),
  ]);
  expect((await home.run('list')).code).toBe(0);
});

test('a server that cannot say where it is does not stay', async () => {
  mkdirSync(join(serverDirectory(), 'address.json'), { recursive: true });
  const { code, stderr } = await home.run('serve', '--port', '0');
  expect([code, stderr]).toEqual([2, expect.stringMatching(/Cannot write .*address\.json\. Remove the directory/)]);
  expect(readdirSync(serverDirectory()).toSorted()).toEqual(['address.json', 'lock', 'token']);
});

test('every error of a listener is logged, and the server goes on', async () => {
  await using served = await ServedHome.start();
  let listener: Server | undefined;
  const see = (message: unknown) => {
    listener = (message as { server: Server }).server;
  };
  subscribe('http.server.request.start', see);
  await served.caller.get('//healthz');
  unsubscribe('http.server.request.start', see);
  for (const n of [1, 2]) listener?.emit('error', new Error(`accept failed ${n}`));
  expect(served.log.filter((line) => line.includes('accept failed'))).toHaveLength(2);
  expect((await served.caller.get('//healthz')).status).toBe(200);
});

// Eight processes, one after the other: a busy machine takes its time.
test('one that is not let start has touched no turn', async () => {
  const first = await serveProcess(home, '--grace', '0');
  await first.caller.ok('POST', '/conversations', { key: 'chat' });
  for (const prompt of ['/hang', '/hang']) await first.caller.ok('POST', '/conversations/chat/turns', { prompt });
  // One that was not sent yet would not be interrupted, but waits for the next server.
  for await (const { data } of first.caller.events('/conversations/chat/events')) if (data.kind === 'turn.sent') break;
  first.running.kill('SIGTERM');
  await first.running.ended;
  await using other = await ServedHome.start();
  const token = join(serverDirectory(), 'token');
  const refused = [
    '--host 0.0.0.0',
    '--public-url http://a.example',
    '--public-url https://ann:secret@a.example',
    '--public-url https://a.example/#top',
    `--port ${other.port}`,
  ];
  for (const flags of refused) expect((await home.run('serve', ...flags.split(' '))).code).not.toBe(0);
  writeFileSync(token, 'planted');
  expect((await home.run('serve')).stderr).toContain('does not contain a token');
  const { turns } = await home.show('chat');
  expect(turns.map(({ state }: { state: string }) => state)).toEqual(['interrupted', 'queued']);
});

test.each(['0.0.0.0', '::', '192.0.2.1'])(
  'is not opened to the network at %s unprotected, and says how it is',
  async (host) => {
    const { code, stderr, stdout } = await home.run('serve', '--host', host, '--port', '0');
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain('would open this server to the network without TLS');
    expect(stderr).toContain('--public-url https://NAME');
  },
);

test.each([
  ['can be read by other users', (token: string) => writeFileSync(token, `${'A'.repeat(43)}\n`, { mode: 0o644 })],
  ['is a link', (token: string) => symlinkSync('/dev/null', token)],
  ['does not contain a token', (token: string) => writeFileSync(token, 'short\n', { mode: 0o600 })],
])('a token that somebody may have planted is not used: it %s', async (what, plant) => {
  mkdirSync(serverDirectory(), { recursive: true });
  plant(join(serverDirectory(), 'token'));
  const { code, stderr } = await home.run('serve', '--port', '0');
  expect(code).toBe(2);
  expect(stderr).toContain(what);
  rmSync(join(serverDirectory(), 'token'));
  const { token } = await serveProcess(home);
  expect(token).toMatch(/^[\w-]{43}$/);
});

test('a key is shown once, does what its scopes say, and is useless once revoked', async () => {
  const served = await serveProcess(home);
  const [made] = await home.lines('--as', 'ann', 'keys', 'create', 'the dashboard', '--scopes', 'read,prompt');
  expect(made).toMatchObject({ owner: 'ann', scopes: ['read', 'prompt'], name: 'the dashboard' });
  const caller = served.caller.with({ authorization: `Bearer ${made.key}` });
  expect(await caller.ok('POST', '/conversations', { key: 'hers' })).toMatchObject({ owner: 'ann' });
  expect(await home.ok('--as', 'ann', 'keys')).toContain(`${made.id}  valid  read,prompt`);
  expect(JSON.stringify(await home.lines('--as', 'ann', 'keys', 'list'))).not.toContain(made.key.split('.')[1]);
  expect(await home.ok('keys', '--quiet')).toBe('');
  expect((await home.run('keys', 'revoke', made.id)).code).toBe(4);
  const open = (token: string) =>
    fetch(`${served.url}/v1/events`, { headers: { authorization: `Bearer ${token}` } }).then(({ body }) =>
      (body as ReadableStream<Uint8Array>).getReader(),
    );
  const [others, hers] = [await open(served.token), await open(made.key)];
  for (const reader of [others, hers]) expect((await reader.read()).done).toBe(false); // how soon to come back
  const hasEnded = { others: false, hers: false };
  const reading = Object.entries({ others, hers }).map(async ([name, reader]) => {
    while (!(await reader.read()).done); // heartbeats
    hasEnded[name as 'hers'] = true;
  });
  await home.ok('--as', 'ann', 'keys', 'revoke', made.id);
  await until('her stream has ended', () => hasEnded.hers);
  expect((await caller.get('/conversations')).status).toBe(401);
  expect(hasEnded.others).toBe(false);
  await others.cancel();
  await Promise.all(reading);
  expect((await home.run('keys', 'create', 'x', '--scopes', 'everything')).code).toBe(2);
  const late = await home.run('keys', 'create', 'x', '--expires', '2020-01-31');
  expect(late).toMatchObject({ code: 2, stderr: expect.stringContaining('2020-01-31 has already begun') });
});

test('the running server gives another link, but not to a key', async () => {
  expect(await home.run('link')).toMatchObject({ code: 1, stderr: expect.stringContaining('"throughline serve"') });
  const { url, link, token } = await serveProcess(home);
  const enter = async (address: string) => (await fetch(address, { redirect: 'manual' })).status;
  expect([await enter(link), await enter(link)]).toEqual([303, 401]);
  const another = (await home.ok('link', '--quiet')).trim();
  expect(another.startsWith(`${url}/enter?code=`)).toBe(true);
  expect([await enter(another), await enter(another)]).toEqual([303, 401]);
  const [made] = await home.lines('link');
  const everything = ['read', 'prompt', 'approve', 'admin'];
  expect(made).toEqual({
    ...{ link: expect.any(String), expiresAt: expect.any(Number), owner: 'local', scopes: everything },
  });
  expect(await home.lines('link', '--as', 'ann', '--scopes', 'prompt,read')).toMatchObject([
    { owner: 'ann', scopes: ['read', 'prompt'] },
  ]);
  expect((await home.run('link', '--scopes', 'read')).stderr).toContain('as "local", with the scopes read.');
  expect((await home.run('link', '--scopes', 'everything')).code).toBe(2);
  const through = (THROUGHLINE_TOKEN: string, ...args: string[]) =>
    home.start(['--server', url, 'link', ...args], { env: { THROUGHLINE_TOKEN } }).ended;
  expect(await through(token)).toMatchObject({ code: 0 });
  const key = (await home.ok('--quiet', 'keys', 'create', 'all', '--scopes', 'read,prompt,approve,admin')).trim();
  expect(await through(key)).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining('the token') });
  const forAnn = await home.run('--as', 'ann', 'link');
  expect(forAnn).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining('Name the scopes') });
  expect((await home.run('--embedded', 'link')).code).toBe(2);
});

test('a child knows no secret of the server, and neither the log nor any command line has one', async (context) => {
  if (process.platform !== 'linux') context.skip('reads /proc, which only Linux has');
  const served = await serveProcess(home, '--log-level', 'debug');
  const key = (await home.ok('--quiet', 'keys', 'create', 'laptop', '--scopes', 'read,prompt')).trim();
  const entered = await served.caller
    .with({ 'sec-fetch-site': 'none' })
    .get(`/${served.link.slice(served.url.length)}`);
  const [, name, cookie = ''] = /^(throughline-\d+)=([^;]+)/.exec(entered.headers.get('set-cookie') ?? '') ?? [];
  const caller = served.caller.with({ authorization: `Bearer ${key}` });
  await caller.ok('POST', '/conversations', { key: 'chat' });
  const { turn } = await caller.ok('POST', '/conversations/chat/turns', { prompt: 'my password is swordfish' });
  await caller.finished(turn);
  await served.caller.with({ authorization: 'Bearer a-wrong-guess' }).get('/conversations?q=swordfish');
  await served.caller.with({ authorization: '', cookie: `${name}=${cookie}` }).get('/conversations');
  const agent = sentTo({ path: join(home.path, 'home') }, turn.id).pid;
  const code = served.link.split('code=')[1] as string;
  const secrets = { token: served.token, key: key.split('.')[1] as string, cookie, code, guess: 'a-wrong-guess' };
  const places = {
    'the log': served.running.stderr,
    'the command line of the server': readFileSync(`/proc/${served.pid}/cmdline`, 'latin1'),
    'the environment of the server': readFileSync(`/proc/${served.pid}/environ`, 'latin1'),
    'the command line of the agent': readFileSync(`/proc/${agent}/cmdline`, 'latin1'),
    'the environment of the agent': readFileSync(`/proc/${agent}/environ`, 'latin1'),
    'the database': readFileSync(join(home.path, 'home', 'throughline.db'), 'latin1'),
    'what was last written to it': readFileSync(join(home.path, 'home', 'throughline.db-wal'), 'latin1'),
  };
  for (const [place, text] of Object.entries(places)) {
    expect(text.length).toBeGreaterThan(0);
    for (const [name, secret] of Object.entries(secrets)) {
      expect(secret.length).toBeGreaterThan(10);
      expect({ place, name, found: text.includes(secret) }).toEqual({ place, name, found: false });
    }
  }
  expect(served.running.stderr).toContain('"operation":"submit"');
  expect(served.running.stderr).not.toContain('swordfish');
});

test('the log says when something stops working and when it works again, and doctor what that is', async (context) => {
  const disk = smallDisk(context);
  symlinkSync(disk, join(home.path, 'home'));
  const { running, caller } = await serveProcess(home);
  await caller.ok('POST', '/conversations', { key: 'chat' });
  const makeRoom = fill(disk);
  await until('nothing can be stored', async () => {
    const { status } = await caller.post('/conversations', { title: 'x'.repeat(500) });
    return status === 507;
  });
  await running.until('stderr', /"code":"storage_full".*"something does not work"/);
  const looked = await home.run('doctor');
  expect(looked.stdout).toMatch(/^running server, storage_full: The disk is full\. Free some space/m);
  expect(looked.code).toBe(1);
  makeRoom();
  await running.until('stderr', /"code":"storage_full".*"works again"/);
  expect(await home.ok('doctor')).toMatch(/^No problems found\./);
});

test('pages of the origins that are named may call, each of them; what is no origin is refused before anything starts', async () => {
  const { caller, running } = await serveProcess(
    home,
    '--allow-origin',
    'https://a.example',
    '--allow-origin',
    'http://localhost:5173',
  );
  for (const origin of ['https://a.example', 'http://localhost:5173', 'https://b.example']) {
    const page = caller.with({ origin, 'access-control-request-method': 'POST' });
    expect({ origin, status: (await page.ask('OPTIONS', '/conversations')).status }).toEqual({
      ...{ origin, status: origin === 'https://b.example' ? 403 : 204 },
    });
  }
  running.kill('SIGTERM');
  await running.ended;
  for (const origin of ['*', 'null', 'http://app.example.org']) {
    const { code, stderr } = await home.run('serve', '--port', '0', '--allow-origin', origin);
    expect({ code, stderr }).toEqual({
      code: 2,
      stderr: expect.stringMatching(/is not an origin|could change the pages/),
    });
  }
});
