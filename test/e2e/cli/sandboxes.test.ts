import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { AGENTS } from './agents.ts';
import { CliHome, MANY_SLOTS, until } from './process.ts';

/** A process for each request, as a user's requests come to any server. */
let home: CliHome;
beforeEach(() => {
  home = new CliHome();
  const setup = [{ name: 'install', command: ['/bin/sh', '-c', 'echo installed | tee -a ../ran'] }];
  home.configure({ defaultAgent: 'scripted', agents: AGENTS, turns: MANY_SLOTS, sandbox: { setup } });
});
afterEach(() => home.remove());

const ranIn = (id: string) => readFileSync(join(home.path, 'home', 'sandboxes', id, 'ran'), 'utf8');

test('a request is killed in the middle; the next, in another process, reopens the sandbox, sets nothing up again, and the agent recalls', async () => {
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
    { owner: 'local', sandbox: conversation.id, conversation: conversation.id, session: sessions[0].id },
  ]);
  expect(ranIn(conversation.id)).toBe('installed\n');
  const told = await home.ok('follow', 'chat', '--until-idle');
  expect(told.match(/sandbox \S+ (created|set up: install|reopened by another process)/g)).toEqual([
    expect.stringContaining('created'),
    expect.stringContaining('set up: install'),
    expect.stringContaining('reopened'),
    expect.stringContaining('reopened'),
  ]);
});

test('of processes that open a sandbox at once, one sets it up; then it is listed, used, put to rest and removed', async () => {
  const opened = await Promise.all([1, 2].map(() => home.lines('sandbox', 'open', 'website')));
  const [[{ id }]] = opened as [[{ id: string }]];
  expect(opened).toMatchObject([[{ id, name: 'website' }], [{ id, name: 'website' }]]);
  expect(ranIn(id)).toBe('installed\n');
  const ran = await home.run('sandbox', 'exec', 'website', '--', '/bin/sh', '-c', 'echo x > note.txt; pwd; exit 3');
  expect(ran).toMatchObject({ code: 1, stdout: expect.stringContaining(`${id}/work`) });
  expect(await home.ok('sandbox')).toMatch(new RegExp(`^${id} {2}ready, 0 conversations, used .* website\n$`));
  expect(await home.ok('sandbox', 'show', 'website', '--measure')).toMatch(/set-up install done in \d+ ms/);
  expect(await home.ok('sandbox', 'rest', 'website')).toContain('resting');
  expect(await home.run('sandbox', 'rm', 'website')).toMatchObject({
    ...{ code: expect.any(Number), stderr: expect.stringContaining('note.txt is in no git repository') },
  });
  expect(await home.ok('sandbox', 'rm', 'website', '--force')).toBe(`Removed ${id}.\n`);
  await until(() => !existsSync(join(home.path, 'home', 'sandboxes', id)));
  expect((await home.run('sandbox', 'show', 'website')).code).toBe(4);
});

/** As where no package for sandboxes is installed. */
const WITHOUT_PACKAGES = `
import { registerHooks } from 'node:module';
registerHooks({
  resolve(name, context, next) {
    if (!['ssh2', 'e2b', '@vercel/sandbox'].includes(name)) return next(name, context);
    throw Object.assign(new Error('Cannot find package ' + name), { code: 'ERR_MODULE_NOT_FOUND' });
  },
});`;

test.each([
  ['bubblewrap', { network: 'none' }, 'bubblewrap is not installed', 'apt install bubblewrap'],
  ['container', { network: 'none', image: 'localhost/none:1' }, 'podman is not installed', 'apt install podman'],
  [
    'container',
    { network: 'none', image: 'localhost/none:1', engine: 'docker' },
    'docker is not',
    'apt install docker.io',
  ],
  [
    'ssh',
    { host: '127.0.0.1', user: 'nobody', hostKey: 'ssh-ed25519 AAAA' },
    'need the package "ssh2"',
    'npm install ssh2',
  ],
  ['vercel', {}, 'need the package @vercel/sandbox', 'npm install @vercel/sandbox'],
  ['e2b', {}, 'need the package e2b', 'npm install e2b'],
])(
  'the kind %s that is asked for and missing is refused with the line that installs it, and nothing runs instead (%o)',
  async (kind, more, why, install) => {
    const hook = join(home.path, 'without-packages.mjs');
    writeFileSync(hook, WITHOUT_PACKAGES);
    home.configure({ defaultAgent: 'scripted', agents: AGENTS, turns: MANY_SLOTS, sandbox: { kind, ...more } });
    const env = { PATH: '/nowhere', NODE_OPTIONS: `--import ${pathToFileURL(hook)}` };
    const { code, stdout, stderr } = await home.start(['send', 'chat', '/tool write note'], { env }).ended;
    expect([code === 0, stdout]).toEqual([false, '']);
    expect(stderr).toContain(why);
    expect(stderr).toContain(install);
    expect((await home.show('chat')).sessions).toEqual([]);
    // Commands that need no sandbox work without it.
    expect(await home.start(['list'], { env }).ended).toMatchObject({ code: 0, stderr: '' });
    const doctor = await home.start(['doctor'], { env }).ended;
    expect(doctor).toMatchObject({ code: 0, stdout: expect.stringContaining(why), stderr: '' });
  },
);
