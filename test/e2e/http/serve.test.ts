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

test('a server runs until Ctrl-C, keeps its files private, and removes its address and socket at the end', async () => {
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

test('a server prints its address, a sign-in link, and that the demo has no model', async () => {
  const running = home.start(['serve', '--demo']);
  await running.until('stdout', /Press Ctrl-C to stop\./);
  expect(running.stdout).toMatch(/^Throughline serves at http:\/\/127\.0\.0\.1:\d+\n/);
  expect(running.stdout).toMatch(/open {4}http:\/\/127\.0\.0\.1:\d+\/enter\?code=[\w-]{43}\n/);
  expect(running.stdout).toContain('it answers by rules, and no model is called');
  running.kill('SIGTERM');
  expect(await running.ended).toMatchObject({ code: 0 });
});

test('a server starts without the demo, and says so, if the settings lack the agent of the demo', async () => {
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

test('a data home has one server at a time, and a new one starts after the old one was killed', async () => {
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

test('a server writes its compile cache while it runs, so that it survives a kill', async () => {
  const cache = join(home.path, 'cache');
  const { running } = await serveProcess(home, { env: { NODE_COMPILE_CACHE: cache } });
  const filesInCache = () => (existsSync(cache) ? readdirSync(cache, { recursive: true }).length : 0);
  await until('the cache is written', () => filesInCache() > 100);
  running.kill('SIGKILL');
  await running.ended;
  expect(filesInCache()).toBeGreaterThan(100);
});

test('the error names the file or directory that is where a server keeps its own files', async () => {
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

test('a server that cannot write its address ends with an error', async () => {
  mkdirSync(join(serverDirectory(), 'address.json'), { recursive: true });
  const { code, stderr } = await home.run('serve', '--port', '0');
  expect([code, stderr]).toEqual([2, expect.stringMatching(/Cannot write .*address\.json\. Remove the directory/)]);
  expect(readdirSync(serverDirectory()).toSorted()).toEqual(['address.json', 'lock', 'token']);
});

test('every error of a listener is logged, and the server continues', async () => {
  await using served = await ServedHome.start();
  let listener: Server | undefined;
  const keepListener = (message: unknown) => {
    listener = (message as { server: Server }).server;
  };
  subscribe('http.server.request.start', keepListener);
  await served.caller.get('//healthz');
  unsubscribe('http.server.request.start', keepListener);
  for (const n of [1, 2]) listener?.emit('error', new Error(`accept failed ${n}`));
  expect(served.log.filter((line) => line.includes('accept failed'))).toHaveLength(2);
  expect((await served.caller.get('//healthz')).status).toBe(200);
});

test('a server that refuses to start has not changed any turn', async () => {
  const first = await serveProcess(home, '--grace', '0');
  await first.caller.ok('POST', '/conversations', { key: 'chat' });
  for (const prompt of ['/hang', '/hang']) await first.caller.ok('POST', '/conversations/chat/turns', { prompt });
  // Stopping the server interrupts only a turn that was sent. Another one stays queued for the next server.
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
  'a server refuses to listen on %s without TLS, and says how to do it',
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
])('a token file that another user may have planted is not used: it %s', async (what, plant) => {
  mkdirSync(serverDirectory(), { recursive: true });
  plant(join(serverDirectory(), 'token'));
  const { code, stderr } = await home.run('serve', '--port', '0');
  expect(code).toBe(2);
  expect(stderr).toContain(what);
  rmSync(join(serverDirectory(), 'token'));
  const { token } = await serveProcess(home);
  expect(token).toMatch(/^[\w-]{43}$/);
});

test('a key is shown once, allows what its scopes say, and is invalid after it is revoked', async () => {
  const served = await serveProcess(home);
  const [created] = await home.lines('--as', 'ann', 'keys', 'create', 'the dashboard', '--scopes', 'read,prompt');
  expect(created).toMatchObject({ owner: 'ann', scopes: ['read', 'prompt'], name: 'the dashboard' });
  const caller = served.caller.with({ authorization: `Bearer ${created.key}` });
  expect(await caller.ok('POST', '/conversations', { key: 'hers' })).toMatchObject({ owner: 'ann' });
  expect(await home.ok('--as', 'ann', 'keys')).toContain(`${created.id}  valid  read,prompt`);
  expect(JSON.stringify(await home.lines('--as', 'ann', 'keys', 'list'))).not.toContain(created.key.split('.')[1]);
  expect(await home.ok('keys', '--quiet')).toBe('');
  expect((await home.run('keys', 'revoke', created.id)).code).toBe(4);
  const openStream = (token: string) =>
    fetch(`${served.url}/v1/events`, { headers: { authorization: `Bearer ${token}` } }).then(({ body }) =>
      (body as ReadableStream<Uint8Array>).getReader(),
    );
  const [byToken, byKey] = [await openStream(served.token), await openStream(created.key)];
  for (const reader of [byToken, byKey]) expect((await reader.read()).done).toBe(false); // the retry interval
  const hasEnded = { byToken: false, byKey: false };
  const reading = Object.entries({ byToken, byKey }).map(async ([name, reader]) => {
    while (!(await reader.read()).done); // heartbeats
    hasEnded[name as 'byKey'] = true;
  });
  await home.ok('--as', 'ann', 'keys', 'revoke', created.id);
  await until('the stream of the revoked key has ended', () => hasEnded.byKey);
  expect((await caller.get('/conversations')).status).toBe(401);
  expect(hasEnded.byToken).toBe(false);
  await byToken.cancel();
  await Promise.all(reading);
  expect((await home.run('keys', 'create', 'x', '--scopes', 'everything')).code).toBe(2);
  const late = await home.run('keys', 'create', 'x', '--expires', '2020-01-31');
  expect(late).toMatchObject({ code: 2, stderr: expect.stringContaining('2020-01-31 has already begun') });
});

test('the running server creates another sign-in link for its token, but not for a key', async () => {
  expect(await home.run('link')).toMatchObject({ code: 1, stderr: expect.stringContaining('"throughline serve"') });
  const { url, link, token } = await serveProcess(home);
  const statusOf = async (address: string) => (await fetch(address, { redirect: 'manual' })).status;
  expect([await statusOf(link), await statusOf(link)]).toEqual([303, 401]);
  const another = (await home.ok('link', '--quiet')).trim();
  expect(another.startsWith(`${url}/enter?code=`)).toBe(true);
  expect([await statusOf(another), await statusOf(another)]).toEqual([303, 401]);
  const [created] = await home.lines('link');
  const everything = ['read', 'prompt', 'approve', 'admin'];
  expect(created).toEqual({
    ...{ link: expect.any(String), expiresAt: expect.any(Number), owner: 'local', scopes: everything },
  });
  expect(await home.lines('link', '--as', 'ann', '--scopes', 'prompt,read')).toMatchObject([
    { owner: 'ann', scopes: ['read', 'prompt'] },
  ]);
  expect((await home.run('link', '--scopes', 'read')).stderr).toContain('as "local", with the scopes read.');
  expect((await home.run('link', '--scopes', 'everything')).code).toBe(2);
  const linkWith = (THROUGHLINE_TOKEN: string) =>
    home.start(['--server', url, 'link'], { env: { THROUGHLINE_TOKEN } }).ended;
  expect(await linkWith(token)).toMatchObject({ code: 0 });
  const key = (await home.ok('--quiet', 'keys', 'create', 'all', '--scopes', 'read,prompt,approve,admin')).trim();
  expect(await linkWith(key)).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining('the token') });
  const forAnn = await home.run('--as', 'ann', 'link');
  expect(forAnn).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining('Name the scopes') });
  expect((await home.run('--embedded', 'link')).code).toBe(2);
});

test('no secret of the server is in its log, in the database, or in the arguments and environment of a process', async (context) => {
  if (process.platform !== 'linux') context.skip('reads /proc, which only Linux has');
  const served = await serveProcess(home, '--log-level', 'debug');
  const key = (await home.ok('--quiet', 'keys', 'create', 'laptop', '--scopes', 'read,prompt')).trim();
  const signedIn = await served.caller
    .with({ 'sec-fetch-site': 'none' })
    .get(`/${served.link.slice(served.url.length)}`);
  const [, name, cookie = ''] = /^(throughline-\d+)=([^;]+)/.exec(signedIn.headers.get('set-cookie') ?? '') ?? [];
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
    'the write-ahead log of the database': readFileSync(join(home.path, 'home', 'throughline.db-wal'), 'latin1'),
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

test('the log says when the storage stops working and when it works again, and doctor names the reason', async (context) => {
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
  const examined = await home.run('doctor');
  expect(examined.stdout).toMatch(/^running server, storage_full: The disk is full\. Free some space/m);
  expect(examined.code).toBe(1);
  makeRoom();
  await running.until('stderr', /"code":"storage_full".*"works again"/);
  expect(await home.ok('doctor')).toMatch(/^No problems found\./);
});

test('pages of every allowed origin may call, and a server with an invalid origin does not start', async () => {
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
