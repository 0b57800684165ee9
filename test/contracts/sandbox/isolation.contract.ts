// What every kind of sandbox that isolates agents must keep from them. Tests of only one kind are in its escapes.test.ts.
import { spawn } from 'node:child_process';
import {
  closeSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:http';
import { type AddressInfo, createServer as createListener, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { afterAll, afterEach, describe, expect, onTestFinished, test } from 'vitest';
import type { isolationSettings } from '../../../src/core/sandbox/sandbox-settings.ts';
import type { Child, OpenSandbox, Sandboxes, SpawnOptions } from '../../../src/ports/sandbox.ts';
import { textOf } from './around.ts';

export const SECRET = 'a-secret-of-the-person';

export type Isolating = Omit<Parameters<typeof isolationSettings>[0], 'kind'>;

/** The folders of a person: a data home and a project with a link out of it, and secrets in the data home and elsewhere. */
interface Folders {
  readonly base: string;
  readonly root: string;
  readonly project: string;
}

export interface GivenIsolation {
  /** The name of the folder of the project. */
  readonly project: string;
  /** `others`: files that must not be changed, and another data home than that of the folders. */
  sandboxes(
    folders: Folders,
    settings: Isolating,
    others?: { readonly fixed?: string[]; readonly root?: string },
  ): Sandboxes;
  /** A command that starts `words` in the sandbox "one", from another process of ours. */
  starter(folders: Folders, words: readonly string[]): readonly [string, ...string[]];
  /** Why there are no limits for all processes of a sandbox together. Null: there are. */
  whyNoLimits(): string | null;
  /** How many processes in it are not the agent's. */
  readonly ownProcesses: number;
  /** The program that isolates also writes to the agent's stderr. */
  readonly writesToStderr?: boolean;
}

function madeFolders(name: string): Folders {
  const base = realpathSync(mkdtempSync(join(tmpdir(), 'throughline-escapes-')));
  const [root, project] = [join(base, 'data-home'), join(base, name)];
  for (const folder of [root, project, join(base, 'elsewhere')]) mkdirSync(folder);
  for (const file of [join(base, 'elsewhere/secret'), join(root, 'token')])
    writeFileSync(file, SECRET, { mode: 0o700 });
  writeFileSync(join(project, 'throughline.config.json'), '{}');
  symlinkSync(join(base, 'elsewhere/secret'), join(project, 'link'));
  return { base, root, project };
}

/** Starts commands in sandboxes of a kind, and ends them after each test. */
export function startingIn(given: GivenIsolation) {
  const folders = madeFolders(given.project);
  const children: Child[] = [];
  afterEach(async () => {
    for (const child of children.splice(0)) {
      child.kill('SIGKILL');
      await child.exited;
    }
  });
  afterAll(() => rmSync(folders.base, { recursive: true, force: true }));

  const open = (settings: Isolating = { network: 'none' }, cwd = folders.project) =>
    given.sandboxes(folders, settings).open('one', { cwd });

  async function startIn(sandbox: OpenSandbox, command: readonly string[], options: Partial<SpawnOptions> = {}) {
    const child = await sandbox.spawn(command, { env: {}, ...options });
    children.push(child);
    return child;
  }

  const start = async (command: readonly string[], settings?: Isolating, options?: Partial<SpawnOptions>) =>
    startIn(await open(settings), command, options);

  async function run(command: readonly string[], settings?: Isolating, options?: Partial<SpawnOptions>) {
    const child = await start(command, settings, options);
    child.stdin.end();
    const [out, said, exit] = await Promise.all([textOf(child.stdout), textOf(child.stderr), child.exited]);
    return { out, said, ...exit };
  }

  return {
    ...{ given, folders, open, startIn, start, run },
    sh: (script: string, settings?: Isolating, options?: Partial<SpawnOptions>) =>
      run(['/bin/sh', '-c', script], settings, options),
    node: (script: string, settings?: Isolating, options?: Partial<SpawnOptions>) =>
      run([process.execPath, '-e', script], settings, options),
  };
}

type Starting = ReturnType<typeof startingIn>;

/** Makes a system call, by its number on x64 and on arm64, and prints the error. */
export const call = (x64: number, arm64: number, args: string) =>
  `perl -e '$! = 0; my @given = (${args}); syscall(${process.arch === 'arm64' ? arm64 : x64}, @given); print "$!"' 2>&1`;

/** `starting`: made inside of the `describe` of the kind. */
export function isolationContract(starting: Starting): void {
  const { given, folders, startIn, start, sh, node } = starting;

  test('in a directory above the data home, an agent can neither read nor move it, nor change fixed files, itself or through us', async () => {
    const wide = join(folders.base, 'wide');
    const [data, config] = [join(wide, 'a/b/data'), join(wide, 'c/config.json')];
    for (const folder of [data, join(wide, 'c')]) mkdirSync(folder, { recursive: true });
    writeFileSync(join(data, 'token'), SECRET);
    writeFileSync(config, '{}');
    // The data home is named by a link, as it may be in settings.
    const root = join(folders.base, 'data-link');
    symlinkSync(data, root);
    const sandboxes = given.sandboxes(folders, { network: 'none' }, { fixed: [config], root });
    const sandbox = await sandboxes.open('one', { cwd: wide });
    const script =
      'cat a/b/data/token; mv a moved; mv a/b moved; mv c moved; echo x > c/config.json; echo mine > c/own';
    const child = await startIn(sandbox, ['/bin/sh', '-c', script]);
    const [out, , exit] = await Promise.all([textOf(child.stdout), textOf(child.stderr), child.exited]);
    expect([out, exit.code]).toEqual(['', 0]);
    expect([data, config].map((path) => existsSync(path))).toEqual([true, true]);
    expect(readFileSync(join(wide, 'c/own'), 'utf8')).toBe('mine\n');

    const folder = await sandbox.folder(wide);
    await expect(folder.read('a/b/data/token', { most: 100 })).rejects.toMatchObject({ code: 'refused' });
    await expect(folder.list('a/b/data')).rejects.toMatchObject({ code: 'refused' });
    for (const write of [folder.replace('c/config.json', 'x'), folder.append('c/config.json', 'x')])
      await expect(write).rejects.toThrow('cannot be changed from the sandbox');
    await folder.replace('c/own', 'ours');
    expect(readFileSync(config, 'utf8')).toBe('{}');
  });

  test('has only its three standard files open, whatever files we have open', async () => {
    const { base, root } = folders;
    const script = 'readlink /proc/self/fd/* > fds; read line < fds';
    const [program, ...words] = given.starter(folders, ['/bin/sh', '-c', script]);
    // A folder that is open in our process. When Node starts a program, it closes only files with low numbers.
    const folder = openSync(base, 'r');
    const numbers = [...Array(31).fill('ignore'), folder];
    const ours = spawn(program, words, { stdio: ['ignore', 'pipe', 'inherit', ...numbers] });
    closeSync(folder);
    await text(ours.stdout as Readable);
    const open = readFileSync(join(root, 'one', 'work', 'fds'), 'utf8')
      .trim()
      .split('\n');
    expect(open.filter((to) => to.startsWith('/') && to !== '/dev/null' && !/\/fds$|^\/proc\//.test(to))).toEqual([]);
  });

  test('gets SIGTERM before it is killed', async () => {
    const script = 'trap "echo told; exit 3" TERM; echo ready; while :; do sleep 0.05; done';
    const child = await start(['/bin/sh', '-c', script]);
    const output = child.stdout[Symbol.asyncIterator]();
    // The shell may report on stderr that its own program was ended. If nobody read that, the exit would wait.
    void textOf(child.stderr);
    expect(String((await output.next()).value)).toBe('ready\n');
    child.kill('SIGTERM');
    expect(String((await output.next()).value)).toBe('told\n');
    expect((await output.next()).done).toBe(true);
    expect(await child.exited).toEqual({ code: 3, signal: null });
  });

  test('gets no more processes, memory and open files than its limits', async (context) => {
    const why = given.whyNoLimits();
    if (why !== null) context.skip(why);
    const settings: Isolating = { network: 'none', limits: { processes: 80, memoryMb: 256, openFiles: 100 } };
    const bomb = await sh(
      `ulimit -n; n=0; while [ $n -lt 500 ]; do n=$((n+1)); (sleep 600 &) 2>/dev/null; done; ls -d /proc/[0-9]* | wc -l`,
      settings,
    );
    expect(bomb.out.split('\n')[0]).toBe('100');
    // The shell ends when it cannot start a process.
    expect(bomb.code === 2 || Number(bomb.out.split('\n')[1]) <= 80 + given.ownProcesses).toBe(true);
    expect(bomb.said).toMatch(/fork/i);
    const hog = await node(
      'const all = []; for (let n = 0; n < 64; n++) all.push(Buffer.alloc(64 * 2 ** 20, 1)); console.log("had it")',
      settings,
    );
    expect(hog.out).toBe('');
    expect([hog.code, hog.signal]).not.toEqual([0, null]);
  });

  test('leaves no setuid or setgid program, no capabilities of a file and no device in its directory', async () => {
    const directory = join(folders.project, 'programs');
    mkdirSync(directory);
    writeFileSync(join(directory, 'chmod-of-32-bits'), chmodOf32Bits(), { mode: 0o755 });
    const { out } = await sh(`
      cd programs; umask 0
      for name in ${FILES_TO_CHMOD.join(' ')}; do cp /bin/sh $name; done
      ./chmod-of-32-bits 2>/dev/null
      ${Object.entries(PRIVILEGED)
        .flatMap(([name, given]) => `${call(...given)}; echo " ${name}"`)
        .join('\n')}`);
    const bits = readdirSync(directory).map((name) => ({ name, mode: lstatSync(join(directory, name)).mode }));
    expect(bits.filter(({ mode }) => (mode & 0o6000) !== 0)).toEqual([]);
    expect(bits.filter(({ name }) => /disk/.test(name))).toEqual([]);
    const results = out.trim().split('\n');
    for (const [at, name] of Object.keys(PRIVILEGED).entries())
      expect(results[at]).toMatch(new RegExp(`^(Operation not permitted|Function not implemented) ${name}$`));
  });

  test('sets all other bits of a mode, and opens files whatever mode it names', async () => {
    const directory = join(folders.project, 'modes');
    mkdirSync(directory);
    const { out, said } = await sh(`
      cd modes; umask 0
      mkdir sticky && chmod 1777 sticky && cp /bin/sh all && chmod 0777 all && cp -p all copy && cp /usr/bin/su plain
      ${call(257, 56, '-100, "all", 0, 06755')}; echo " open without creating"
      ${call(257, 56, '-100, "made", 0102, 0751')}; echo " open"
      ${call(257, 56, '-100, ".", 020200002, 0640')}; echo " open without a name"`);
    expect(out, said).toBe(' open without creating\n open\n open without a name\n');
    const modes = readdirSync(directory).map((name) => [name, lstatSync(join(directory, name)).mode & 0o7777]);
    expect(Object.fromEntries(modes)).toMatchObject({
      sticky: 0o1777,
      all: 0o777,
      copy: 0o777,
      made: 0o751,
      plain: 0o755,
    });
  });

  describe('and the network', () => networkContract(starting));
}

const FILES_TO_CHMOD = ['s', 'chmod', 'setuid', 'setgid', 'fchmod', 'fchmodat', 'fchmodat2', 'of-32-bits', 'capable'];
const NONE = -1; // not on arm64

/** Calls that would give other users the privileges of ours, or a device: as in `call`. */
const PRIVILEGED: Readonly<Record<string, readonly [number, number, string]>> = {
  chmod: [90, NONE, '"chmod", 06755'],
  'chmod with setuid': [90, NONE, '"setuid", 04755'],
  'chmod with setgid': [90, NONE, '"setgid", 02755'],
  fchmod: [91, 52, '(open($file, "<", "fchmod"), fileno($file))[1], 06755'],
  fchmodat: [268, 53, '-100, "fchmodat", 06755'],
  fchmodat2: [452, 452, '-100, "fchmodat2", 06755, 0'],
  creat: [85, NONE, '"creat", 06755'],
  open: [2, NONE, '"open", 0101, 06755'],
  openat: [257, 56, '-100, "openat", 0101, 06755'],
  'openat with setgid': [257, 56, '-100, "openat-setgid", 0101, 02755'],
  'openat without a name': [257, 56, '-100, ".", 020200001, 04755'],
  openat2: [437, 437, '-100, "openat2", pack("Q3", 0101, 06755, 0), 24'],
  mknod: [133, NONE, '"mknod", 0106755, 0'],
  mknodat: [259, 33, '-100, "mknodat", 0106755, 0'],
  'mknod of a disk': [259, 33, '-100, "disk", 060666, 0x800'],
  io_uring_setup: [425, 425, '1, "x" x 256'],
  setxattr: [188, 5, '"capable", "security.capability", pack("V5", 0x2000001, 0x80, 0, 0, 0), 20, 0'],
};

/** A program for x86 with 32 bits: `chmod("of-32-bits", 06755)` and `exit`. Elsewhere it does not start. */
function chmodOf32Bits(): Buffer {
  const code = 'b80f000000 bb6e800408 b9ed0d0000 cd80 31db b801000000 cd80';
  const program = Buffer.from(code.replaceAll(' ', ''), 'hex');
  const [at, headers] = [0x8048000, 52 + 32];
  const all = Buffer.concat([Buffer.alloc(headers), program, Buffer.from('of-32-bits\0')]);
  all.write('7f454c46010101', 0, 'hex');
  // ELF: an executable for the 386 of version 1, its start, and one segment whose description follows.
  for (const [where, value] of [
    [16, 2],
    [18, 3],
    [40, 52],
    [42, 32],
    [44, 1],
  ] as const)
    all.writeUInt16LE(value, where);
  for (const [where, value] of [
    [20, 1],
    [24, at + headers],
    [28, 52],
  ] as const)
    all.writeUInt32LE(value, where);
  // The segment: loaded from 0, to the same address, all of it, readable and executable.
  for (const [n, value] of [1, 0, at, at, all.length, all.length, 5, 0x1000].entries())
    all.writeUInt32LE(value, 52 + 4 * n);
  return all;
}

/** Tries to connect, and prints the result. */
const reach = (host: string, port: number) =>
  `await new Promise((done) => { const s = require('net').connect({ host: '${host}', port: ${port} }, () => { console.log('reached ${host}'); s.destroy(); done(); }); s.on('error', (e) => { console.log(e.code); done(); }); s.setTimeout(60_000, () => s.destroy(new Error('silent'))); });`;

/** Listens on this machine until the test has ended. */
async function listening(server: Server, ...at: [string] | [number, string?]): Promise<number> {
  onTestFinished(() => void server.close());
  await new Promise<void>((done) => server.listen(...(at as [number]), done));
  return (server.address() as AddressInfo).port;
}

function networkContract({ given, start, sh, node }: Starting): void {
  test('none: reaches neither us, nor others, nor names, nor abstract sockets', async () => {
    const name = `throughline-escapes-test-${process.pid}`;
    const port = await listening(
      createListener((socket) => socket.destroy()),
      0,
    );
    await listening(
      createListener((socket) => socket.destroy()),
      `\0${name}`,
    );
    const { out, said } = await node(`(async () => {
      ${reach('127.0.0.1', port)} ${reach('::1', port)} ${reach('1.1.1.1', 53)} ${reach('169.254.169.254', 80)}
      await new Promise((done) => require('dns').lookup('example.org', (e) => { console.log(e ? 'no name' : 'resolved'); done(); }));
      await new Promise((done) => { const s = require('net').connect('\\0${name}', () => { console.log('reached abstract'); done(); }); s.on('error', (e) => { console.log(e.code); done(); }); });
      console.log(Object.keys(require('os').networkInterfaces()).join());
    })()`);
    const heard = given.writesToStderr ? out : out + said;
    // Docker's loopback has no IPv6.
    expect(heard.replace('EADDRNOTAVAIL', 'ECONNREFUSED'), said).toBe(
      'ECONNREFUSED\nECONNREFUSED\nENETUNREACH\nENETUNREACH\nno name\nECONNREFUSED\nlo\n',
    );
  });

  test.each(['none', 'all'] as const)(
    '%s: cannot open sockets that bypass the network, such as vsock',
    async (network) => {
      // By family: unix, IPv4, IPv6, netlink; then packet, tipc, bluetooth, alg, vsock, xdp.
      const opens = (family: number, kind: number) =>
        `perl -e 'exit(syscall(${process.arch === 'arm64' ? 198 : 41}, ${family}, ${kind}, 0) < 0)' && printf '${family} '`;
      const streams = [1, 2, 10, 30, 31, 40].map((family) => opens(family, 1));
      const others = [16, 17, 38, 44].flatMap((family) => [opens(family, 3), opens(family, 5)]);
      const { out } = await sh([...streams, ...others, ':'].join('\n'), { network });
      expect([...new Set(out.trim().split(' '))]).toEqual(['1', '2', '10', '16']);
    },
  );

  test('model: reaches only what is allowed, and never gets the key of the model', async () => {
    const asked: string[] = [];
    const model = createServer((request, response) => {
      asked.push(`${request.method} ${request.url} ${request.headers['x-api-key']}`);
      response.end('answer of the model');
    });
    const other = createServer((_, response) => response.end('answer of the other'));
    const [port, otherPort] = [await listening(model, 0, '127.0.0.1'), await listening(other, 0, '127.0.0.1')];
    const env = { ANTHROPIC_BASE_URL: `http://127.0.0.1:${port}/base`, ANTHROPIC_API_KEY: SECRET };
    const settings: Isolating = { network: 'model', key: {}, allow: [`127.0.0.1:${otherPort}`] };
    const script = `(async () => {
      const get = async (url) => { try { const r = await fetch(url); console.log(r.status, (await r.text()).trim()); } catch (e) { console.log(e.cause?.code ?? e.message); } };
      await get(process.env.ANTHROPIC_BASE_URL + '/v1/messages');
      await get('http://127.0.0.1:${otherPort}/');
      await new Promise((done) => require('http').get({ port: 3128, path: 'http://127.0.0.3:1/', headers: { host: 'x' } }, async (r) => { let text = ''; for await (const c of r) text += c; console.log(r.statusCode, text.trim()); done(); }));
      ${reach('127.0.0.1', otherPort)} ${reach('1.1.1.1', 443)}
      console.log(JSON.stringify(process.env));
    })()`;
    const { out, said } = await node(script, settings, { env });
    const [first, second, third, direct, far, variables] = out.split('\n');
    expect([first, second], said).toEqual(['200 answer of the model', '200 answer of the other']);
    expect(third).toMatch(/^403 .*"127\.0\.0\.3:1" to "sandbox\.allow"/);
    expect([direct, far]).toEqual(['ECONNREFUSED', 'ENETUNREACH']);
    expect(asked).toEqual([`GET /base/v1/messages ${SECRET}`]);
    expect(variables).toContain('ANTHROPIC_API_KEY');
    expect(variables).not.toContain('NODE_CHANNEL_FD');
    expect(out + said).not.toContain(SECRET);
  });

  test('model: a command that the agent starts cannot change the address of the model', async () => {
    const ours = createServer((_, response) => response.end('a service of this machine'));
    const port = await listening(ours, 0, '127.0.0.1');
    const settings: Isolating = { network: 'model', key: {} };
    const agent = await start(['/bin/sh', '-c', 'read line'], settings);
    const env = { ANTHROPIC_BASE_URL: `http://127.0.0.1:${port}`, ANTHROPIC_API_KEY: 'any' };
    const script = `for (const url of ['http://127.0.0.2:3128/', 'http://127.0.0.1:3128/'])
      require('http').get(url, async (r) => { let text = ''; for await (const c of r) text += c; console.log(r.statusCode, text.trim()); });`;
    const { out } = await node(script, settings, { env, partOf: agent.identity });
    expect(out).toBe('400 This is a proxy: name the whole URL.\n'.repeat(2));
  });

  test('all: reaches us', async () => {
    const server = createListener((socket) => socket.destroy());
    const port = await listening(server, 0, '127.0.0.1');
    const { out } = await node(`(async () => { ${reach('127.0.0.1', port)} })()`, { network: 'all' });
    expect(out).toBe('reached 127.0.0.1\n');
  });
}
