import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { AGENTS } from './agents.ts';
import { CliHome, MANY_SLOTS, until } from './process.ts';

/** Every command is a process of its own, as the requests of a user reach different servers. */
let home: CliHome;
beforeEach(() => {
  home = new CliHome();
  const setup = [{ name: 'install', command: ['/bin/sh', '-c', 'echo installed | tee -a ../ran'] }];
  home.configure({ defaultAgent: 'scripted', agents: AGENTS, turns: MANY_SLOTS, sandbox: { setup } });
});
afterEach(() => home.remove());

/** What the set-up has written into the sandbox: one line per run. */
const setUpLog = (id: string) => readFileSync(join(home.path, 'home', 'sandboxes', id, 'ran'), 'utf8');

test('after a kill, the next request reopens the sandbox in another process without a second set-up, and the agent has its history', async () => {
  await home.ok('send', 'chat', 'The codeword is heron.');
  const killed = home.start(['send', 'chat', '/say half\n/hang']);
  await killed.until('stdout', /half/);
  killed.kill('SIGKILL');
  await killed.ended;
  expect(await home.ok('send', 'chat', 'Which codewords have you seen?')).toContain('heron');
  const { conversation, sessions } = await home.show('chat');
  const [view] = await home.lines('sandbox', 'show', conversation.id);
  expect(view).toMatchObject({
    sandbox: { state: 'ready' },
    setup: [{ name: 'install', code: 0, output: 'installed' }],
  });
  expect(view.uses).toEqual([
    { owner: 'local', sandboxId: conversation.id, conversationId: conversation.id, sessionId: sessions[0].id },
  ]);
  expect(setUpLog(conversation.id)).toBe('installed\n');
  const events = await home.ok('follow', 'chat', '--until-idle');
  expect(events.match(/sandbox \S+ (created|set up: install|reopened by another process)/g)).toEqual([
    expect.stringContaining('created'),
    expect.stringContaining('set up: install'),
    expect.stringContaining('reopened'),
    expect.stringContaining('reopened'),
  ]);
});

test('if two processes open a sandbox at the same time, one of them sets it up; then it is listed, used, put to rest and removed', async () => {
  const opened = await Promise.all([1, 2].map(() => home.lines('sandbox', 'open', 'website')));
  const [[{ id }]] = opened as [[{ id: string }]];
  expect(opened).toMatchObject([[{ id, name: 'website' }], [{ id, name: 'website' }]]);
  expect(setUpLog(id)).toBe('installed\n');
  const ran = await home.run('sandbox', 'exec', 'website', '--', '/bin/sh', '-c', 'echo x > note.txt; pwd; exit 3');
  expect(ran).toMatchObject({ code: 3, stdout: expect.stringContaining(`${id}/work`) });
  expect(await home.ok('sandbox')).toMatch(new RegExp(`^${id} {2}ready, 0 conversations, used .* website\n$`));
  expect(await home.ok('sandbox', 'show', 'website', '--measure')).toMatch(/set-up install done in \d+ ms/);
  expect(await home.ok('sandbox', 'rest', 'website')).toContain('resting');
  expect(await home.run('sandbox', 'rm', 'website')).toMatchObject({
    ...{ code: 2, stderr: expect.stringContaining('note.txt is in no git repository') },
  });
  expect(await home.ok('sandbox', 'rm', 'website', '--force')).toBe(`Removed ${id}.\n`);
  await until(() => !existsSync(join(home.path, 'home', 'sandboxes', id)));
  expect((await home.run('sandbox', 'show', 'website')).code).toBe(4);
});

test('"sandbox exec" ends with the exit code of the command and passes on both of its outputs; our own failures end with 125', async () => {
  await home.ok('sandbox', 'open', 'website');
  const exec = (...words: string[]) => home.run('sandbox', 'exec', 'website', ...words);
  const sh = (script: string) => exec('--', '/bin/sh', '-c', script);
  expect(await sh('printf out; echo err >&2; exit 4')).toMatchObject({ code: 4, stdout: 'out', stderr: 'err\n' });
  expect(await sh('kill -9 $$')).toMatchObject({ code: 137, stdout: '', stderr: '' });
  const long = await sh('head -c 20000 /dev/zero | tr "\\0" x; echo; echo last');
  expect(long).toMatchObject({ code: 0, stderr: expect.stringContaining('The beginning of the output is left out') });
  expect(long.stdout).toMatch(/^x{15994}\nlast\n$/);
  expect(await exec('--', '/nowhere/program')).toMatchObject({
    ...{
      code: 125,
      stdout: '',
      stderr: expect.stringMatching(/^throughline: .* was not found.* or give its full path/),
    },
  });
  expect(await exec()).toMatchObject({ code: 125, stderr: expect.stringContaining('Missing required argument') });
  const unknown = await home.run('sandbox', 'exec', 'other', '--', 'true');
  expect(unknown).toMatchObject({ code: 125, stderr: expect.stringContaining('other') });
  const json = await home.run('sandbox', 'exec', 'website', '--json', '--', '/bin/sh', '-c', 'echo err >&2; exit 4');
  expect(json.code).toBe(4);
  expect(JSON.parse(json.stdout)).toMatchObject({
    code: 4,
    signal: null,
    timedOut: false,
    stdout: '',
    stderr: 'err\n',
  });
});

/** A hook that makes the packages for sandboxes look as if they were not installed. */
const WITHOUT_PACKAGES = `
import { registerHooks } from 'node:module';
registerHooks({
  resolve(name, context, next) {
    if (!['ssh2', 'e2b', '@vercel/sandbox'].includes(name)) return next(name, context);
    throw Object.assign(new Error('Cannot find package ' + name), { code: 'ERR_MODULE_NOT_FOUND' });
  },
});`;

test.each([
  ['bubblewrap', 2, { network: 'none' }, 'bubblewrap is not installed', 'apt install bubblewrap'],
  ['container', 2, { network: 'none', image: 'localhost/none:1' }, 'podman is not installed', 'apt install podman'],
  [
    'container',
    2,
    { network: 'none', image: 'localhost/none:1', engine: 'docker' },
    'docker is not',
    'apt install docker.io',
  ],
  [
    'ssh',
    2,
    { host: '127.0.0.1', user: 'nobody', hostKey: 'ssh-ed25519 AAAA' },
    'need the package ssh2',
    'npm install ssh2',
  ],
  ['vercel', 2, {}, 'need the package @vercel/sandbox', 'npm install @vercel/sandbox'],
  ['e2b', 2, {}, 'need the package e2b', 'npm install e2b'],
])(
  'a sandbox of the kind %s that is not installed is refused with the exit code %i and the command that installs it, and no other kind is used (%o)',
  async (kind, expectedCode, more, why, install) => {
    const hook = join(home.path, 'without-packages.mjs');
    writeFileSync(hook, WITHOUT_PACKAGES);
    home.configure({ defaultAgent: 'scripted', agents: AGENTS, turns: MANY_SLOTS, sandbox: { kind, ...more } });
    const env = { PATH: '/nowhere', NODE_OPTIONS: `--import ${pathToFileURL(hook)}` };
    const { code, stdout, stderr } = await home.start(['send', 'chat', '/tool write note'], { env }).ended;
    expect([code, stdout]).toEqual([expectedCode, '']);
    expect(stderr).toContain(why);
    expect(stderr).toContain(install);
    expect((await home.show('chat')).sessions).toEqual([]);
    // Commands that need no sandbox still work.
    expect(await home.start(['list'], { env }).ended).toMatchObject({ code: 0, stderr: '' });
    const doctor = await home.start(['doctor'], { env }).ended;
    expect(doctor).toMatchObject({ code: 0, stdout: expect.stringContaining(why), stderr: '' });
  },
);
