import { execFileSync, spawn } from 'node:child_process';
import {
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:http';
import { type AddressInfo, createServer as createListener } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { textOf } from '../../../test/contracts/sandbox/around.ts';
import { containerSandboxes, whyNo, writeRootfs } from '../../../test/contracts/sandbox/container-given.ts';
import type { Child, SpawnOptions } from '../../ports/sandbox.ts';
import { type EngineName, labelled } from './engine.ts';
import { identityOfContainer, labelOf } from './processes.ts';

type Given = Parameters<typeof containerSandboxes>[1];

const SECRET = 'a-secret-of-the-person';
const ENGINES = ['podman', 'docker'] as const;
const missing = (await Promise.all(ENGINES.map(whyNo))).map((why, at) => ({ engine: ENGINES[at] as EngineName, why }));
let engine: EngineName = 'podman';

let base: string;
let root: string;
let project: string;
const children: Child[] = [];
beforeAll(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), 'throughline-escapes-')));
  writeRootfs(join(base, 'rootfs'));
  root = join(base, 'data-home');
  project = join(base, 'pro,ject:"a"');
  for (const folder of [root, project, join(base, 'elsewhere')]) mkdirSync(folder);
  for (const file of ['elsewhere/secret', 'data-home/token']) writeFileSync(join(base, file), SECRET, { mode: 0o700 });
  writeFileSync(join(project, 'throughline.config.json'), '{}');
  symlinkSync(join(base, 'elsewhere/secret'), join(project, 'link'));
});
afterEach(async () => {
  for (const child of children.splice(0)) {
    child.kill('SIGKILL');
    await child.exited;
  }
});
afterAll(() => rmSync(base, { recursive: true, force: true }));

async function start(command: string[], given: Given = { network: 'none' }, options: Partial<SpawnOptions> = {}) {
  const sandbox = await containerSandboxes(base, { ...given, engine }).open('one', { cwd: project });
  const child = await sandbox.spawn(command, { env: {}, ...options });
  children.push(child);
  return child;
}

async function run(command: string[], given?: Given, options?: Partial<SpawnOptions>) {
  const child = await start(command, given, options);
  child.stdin.end();
  const [out, said, exit] = await Promise.all([textOf(child.stdout), textOf(child.stderr), child.exited]);
  return { out, said, ...exit };
}

const sh = (script: string, given?: Given, options?: Partial<SpawnOptions>) =>
  run(['/bin/sh', '-c', script], given, options);
const node = (script: string, given?: Given, options?: Partial<SpawnOptions>) =>
  run([process.execPath, '-e', script], given, options);

/** A system call by its number on x64 and on arm64; prints the error. */
const call = (x64: number, arm64: number, args: string) =>
  `perl -e '$! = 0; my @given = (${args}); syscall(${process.arch === 'arm64' ? arm64 : x64}, @given); print "$!"' 2>&1`;

/** Connects, and prints what came of it. */
const reach = (host: string, port: number) =>
  `await new Promise((done) => { const s = require('net').connect({ host: '${host}', port: ${port} }, () => { console.log('reached ${host}'); s.destroy(); done(); }); s.on('error', (e) => { console.log(e.code); done(); }); s.setTimeout(60_000, () => s.destroy(new Error('silent'))); });`;

test.for(missing.filter(({ why }) => why !== null))('an agent in a container of $engine', ({ why }, { skip }) =>
  skip(why ?? ''),
);

const found = missing.filter(({ why }) => why === null);
describe.for(found)('an agent in a container of $engine', ({ engine: tried }) => {
  beforeAll(() => {
    engine = tried;
    rmSync(join(project, 'own'), { force: true });
  });

  test('reads and changes nothing outside, nor the settings that it is started with', async () => {
    await containerSandboxes(base, { network: 'none', engine }).open('neighbour', { cwd: null });
    const { out } = await sh(`
      for file in '${base}/elsewhere/secret' ../elsewhere/secret link '${root}/token' /etc/shadow /proc/kcore /proc/1/root/etc/shadow \\
        '${root}/one/seccomp.json' /proc/keys /proc/timer_list; do
        if grep -q . "$file" 2>/dev/null; then echo "read $file"; fi
      done
      for folder in '${root}/neighbour' '${base}/elsewhere' /etc/ssl/private /root /home /boot /var/lib /mnt /sys/firmware; do
        if ls -A "$folder" 2>/dev/null | grep -q .; then echo "listed $folder"; fi
      done
      for file in /dev/mem /dev/kmsg /dev/sda /dev/vda /dev/fuse /run/podman/podman.sock /var/run/docker.sock /run/secrets; do
        if [ -e "$file" ]; then echo "has $file"; fi
      done
      for file in /usr/x /etc/x /etc/passwd /bin/x '${process.execPath}' throughline.config.json /proc/sysrq-trigger \\
        /proc/sys/kernel/core_pattern /proc/sys/kernel/hostname /sys/kernel/uevent_helper /sys/fs/cgroup/pids/x ${engine === 'podman' ? '/run/podman-init' : '/sbin/docker-init'}; do
        if ( : >> "$file" ) 2>/dev/null; then echo "opened $file"; fi
      done
      rm -f throughline.config.json 2>/dev/null && echo removed
      mv throughline.config.json other 2>/dev/null && echo moved
      ( echo hidden > '${base}/x' ) 2>/dev/null
      echo mine > own && cat own`);
    expect(out).toBe('mine\n');
    expect(readFileSync(join(project, 'own'), 'utf8')).toBe('mine\n');
    expect(readFileSync(join(project, 'throughline.config.json'), 'utf8')).toBe('{}');
    expect(existsSync(join(base, 'x'))).toBe(false);
  });

  test('has the environment that it was given, no privileges, and no process outside', async () => {
    process.env.THROUGHLINE_TEST_SECRET = SECRET;
    process.env.HTTP_PROXY = `http://user:${SECRET}@example.org`;
    try {
      const { out } = await sh(
        `
        grep -E '^(CapInh|CapPrm|CapEff|CapBnd|CapAmb|NoNewPrivs|Seccomp):' /proc/self/status | tr -d '\\t' | tr '\\n' ' '; echo
        ${call(250, 219, '0, -3, 0')}; echo " keyctl"
        ${call(248, 217, '"user", "a", "b", 1, -3')}; echo " add_key"
        ${call(165, 40, '"none", "/tmp", "tmpfs", 0, 0')}; echo " mount"
        ${call(304, 265, '0, 0, 0')}; echo " open_by_handle_at"
        ${call(272, 97, '0x10000000')}; echo " user namespace"
        ${call(56, 220, '0x10000011, 0, 0, 0, 0')}; echo " clone"
        ${call(161, 51, '"/tmp"')}; echo " chroot"
        ${call(101, 117, `16, ${process.pid}, 0, 0`)}; echo " ptrace"
        kill -0 ${process.pid} 2>/dev/null && echo "sees ${process.pid}"
        mknod /tmp/disk b 8 0 2>/dev/null && echo mknod
        (: < /dev/tty) 2>/dev/null && echo terminal
        echo environment; env; cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr '\\0' '\\n'
        kill -KILL -1; echo survived`,
        undefined,
        { env: { GIVEN: 'yes' } },
      );
      const none = '0000000000000000';
      const [status = '', ...calls] = out.slice(0, out.indexOf('environment\n')).trim().split('\n');
      expect(status.trim()).toBe(
        `CapInh:${none} CapPrm:${none} CapEff:${none} CapBnd:${none} CapAmb:${none} NoNewPrivs:1 Seccomp:2`,
      );
      const names = ['keyctl', 'add_key', 'mount', 'open_by_handle_at', 'user namespace', 'clone', 'chroot'];
      // Of clone alone some flags are denied: it has the error of all unknown calls.
      const denied = calls.map((line) =>
        line.replace('Function not implemented clone', 'Operation not permitted clone'),
      );
      expect(denied).toEqual([...names.map((name) => `Operation not permitted ${name}`), 'No such process ptrace']);
      expect(out).toContain('GIVEN=yes');
      expect(out).toContain(`HOME=${root}/one/home`);
      expect(out).not.toContain(SECRET);
      expect(out).not.toMatch(/TMPDIR|http_proxy=h/i);
    } finally {
      delete process.env.THROUGHLINE_TEST_SECRET;
      delete process.env.HTTP_PROXY;
    }
  });

  test('working above the data home, it neither sees nor moves it, nor what was named as fixed, itself or through us', async () => {
    const wide = join(base, 'wide');
    const [data, config] = [join(wide, 'a/b/data'), join(wide, 'c/config.json')];
    for (const folder of [data, join(wide, 'c')]) mkdirSync(folder, { recursive: true });
    writeFileSync(join(data, 'token'), SECRET);
    writeFileSync(config, '{}');
    const given: Given = { network: 'none', engine };
    const sandbox = await containerSandboxes(base, given, [config], data).open('one', { cwd: wide });
    const script =
      'cat a/b/data/token; mv a moved; mv a/b moved; mv c moved; echo x > c/config.json; echo mine > c/own';
    const child = await sandbox.spawn(['/bin/sh', '-c', script], { env: {} });
    children.push(child);
    const [out, , exit] = await Promise.all([textOf(child.stdout), textOf(child.stderr), child.exited]);
    expect([out, exit.code]).toEqual(['', 0]);
    expect([data, config].map((path) => existsSync(path))).toEqual([true, true]);
    expect(readFileSync(join(wide, 'c/own'), 'utf8')).toBe('mine\n');
    const folder = await sandbox.folder(wide);
    await expect(folder.read('a/b/data/token', { most: 100 })).rejects.toMatchObject({ code: 'refused' });
    await expect(folder.append('c/config.json', 'x')).rejects.toThrow('cannot be changed from the sandbox');
    expect(readFileSync(config, 'utf8')).toBe('{}');
  });

  test('chooses nothing for the engine, and its keys are in no argument', async () => {
    const env = { LD_PRELOAD: join(project, 'evil.so'), CONTAINERS_CONF: join(project, 'evil.conf'), KEY: SECRET };
    const quoted = ` "it's" $(id) \`id\` \\ \n\n`;
    const agent = await start(['/bin/sh', '-c', 'read line; echo "$KEY"'], undefined, { env });
    const identity = identityOfContainer(agent.identity) ?? expect.unreachable('it is no container');
    const of = (name: string) => readFileSync(`/proc/${identity.client.pid}/${name}`, 'latin1');
    expect(of('cmdline')).toContain(engine);
    expect(of('cmdline') + of('environ')).not.toMatch(new RegExp(`LD_PRELOAD|evil|${SECRET}`));
    const [container = ''] = await labelled(engine, labelOf(identity));
    expect(execFileSync(engine, ['inspect', container], { encoding: 'utf8' })).not.toContain(SECRET);
    const chosen = (given: Record<string, string>, cwd?: string) =>
      sh('env; pwd', undefined, { env: given, partOf: agent.identity, ...(cwd !== undefined && { cwd }) });
    for (const given of [{ A: `a\0--privileged` }, { 'A=1;touch x;B': '' }])
      await expect(chosen(given)).rejects.toMatchObject({ code: 'agent_unavailable' });
    // Folders that the engine or runc have open, by their numbers.
    await expect(chosen({}, '/proc/self/fd/7')).rejects.toMatchObject({ code: 'agent_unavailable' });
    const { out, code } = await chosen({ QUOTED: quoted, LD_LIBRARY_PATH: '/x' }, '/');
    expect([code, out]).toEqual([0, expect.stringContaining(`QUOTED=${quoted}\n`)]);
    expect(out.endsWith('\n/\n')).toBe(true);
  });

  test('has no file open but its own three, whatever we were started with', async () => {
    const starter = fileURLToPath(new URL('../../../test/contracts/sandbox/container-given.ts', import.meta.url));
    const script = 'readlink /proc/self/fd/* > fds; read line < fds';
    const words = [process.execPath, starter, base, engine, '/bin/sh', '-c', script];
    const folder = openSync(base, 'r');
    const numbers = [...Array(31).fill('ignore'), folder];
    const ours = spawn(words[0] ?? '', words.slice(1), { stdio: ['ignore', 'pipe', 'inherit', ...numbers] });
    closeSync(folder);
    await text(ours.stdout as Readable);
    const open = readFileSync(join(root, 'one', 'work', 'fds'), 'utf8')
      .trim()
      .split('\n');
    expect(open.filter((to) => to.startsWith('/') && to !== '/dev/null' && !/\/fds$|^\/proc\//.test(to))).toEqual([]);
  });

  test('is told by SIGTERM to end, before it is killed', async () => {
    const script = 'trap "echo told; exit 3" TERM; echo ready; while :; do sleep 0.05; done';
    const child = await start(['/bin/sh', '-c', script]);
    const output = child.stdout[Symbol.asyncIterator]();
    void textOf(child.stderr);
    expect(String((await output.next()).value)).toBe('ready\n');
    child.kill('SIGTERM');
    expect(String((await output.next()).value)).toBe('told\n');
    expect((await output.next()).done).toBe(true);
    expect(await child.exited).toEqual({ code: 3, signal: null });
  });

  test('of 500 processes gets as many as it may have; of 4 GB as much memory; files as many', async (context) => {
    const isVersion2 = existsSync('/sys/fs/cgroup/cgroup.controllers');
    if (process.getuid?.() !== 0 && !isVersion2)
      context.skip('without root, control groups of version 1 limit nothing');
    const given: Given = { network: 'none', limits: { processes: 80, memoryMb: 256, openFiles: 100 } };
    const bomb = await sh(
      `ulimit -n; n=0; while [ $n -lt 500 ]; do n=$((n+1)); (sleep 600 &) 2>/dev/null; done; ls -d /proc/[0-9]* | wc -l`,
      given,
    );
    expect(bomb.out.split('\n')[0]).toBe('100');
    // The shell gives up at the first process that it cannot have.
    expect(bomb.code === 2 || Number(bomb.out.split('\n')[1]) <= 81).toBe(true);
    expect(bomb.said).toMatch(/fork/i);
    const hog = await node(
      'const all = []; for (let n = 0; n < 64; n++) all.push(Buffer.alloc(64 * 2 ** 20, 1)); console.log("had it")',
      given,
    );
    expect(hog.out).toBe('');
    expect([hog.code, hog.signal]).not.toEqual([0, null]);
  });

  describe('and the network', () => {
    test('none: reaches neither us, nor others, nor names, nor abstract sockets', async () => {
      const server = createListener((socket) => socket.destroy());
      const abstract = createListener((socket) => socket.destroy());
      const name = `throughline-container-test-${process.pid}`;
      await new Promise<void>((done) => server.listen(0, done));
      await new Promise<void>((done) => abstract.listen(`\0${name}`, done));
      const { port } = server.address() as AddressInfo;
      try {
        const { out, said } = await node(`(async () => {
          ${reach('127.0.0.1', port)} ${reach('::1', port)} ${reach('1.1.1.1', 53)} ${reach('169.254.169.254', 80)}
          await new Promise((done) => require('dns').lookup('example.org', (e) => { console.log(e ? 'no name' : 'resolved'); done(); }));
          await new Promise((done) => { const s = require('net').connect('\\0${name}', () => { console.log('reached abstract'); done(); }); s.on('error', (e) => { console.log(e.code); done(); }); });
          console.log(Object.keys(require('os').networkInterfaces()).join());
        })()`);
        // What the engine itself has to say is no part of it. Docker's loopback has no IPv6.
        expect(out.replace('EADDRNOTAVAIL', 'ECONNREFUSED'), said).toBe(
          'ECONNREFUSED\nECONNREFUSED\nENETUNREACH\nENETUNREACH\nno name\nECONNREFUSED\nlo\n',
        );
      } finally {
        server.close();
        abstract.close();
      }
    });

    test.each(['none', 'all'] as const)(
      '%s: has no sockets that leave every network, as those to the machine below',
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

    test('model: reaches what is allowed and nothing else, never has the key, and does not choose what the model is', async () => {
      const heard: string[] = [];
      const model = createServer((request, response) => {
        heard.push(`${request.method} ${request.url} ${request.headers['x-api-key']}`);
        response.end('answer of the model');
      });
      const other = createServer((_, response) => response.end('answer of the other'));
      await Promise.all([model, other].map((one) => new Promise<void>((done) => one.listen(0, '127.0.0.1', done))));
      const [at, otherAt] = [model, other].map((one) => `127.0.0.1:${(one.address() as AddressInfo).port}`);
      const env = { ANTHROPIC_BASE_URL: `http://${at}/base`, ANTHROPIC_API_KEY: SECRET };
      const given: Given = { network: 'model', key: {}, allow: [otherAt ?? ''] };
      const script = `(async () => {
        const get = async (url) => { try { const r = await fetch(url); console.log(r.status, (await r.text()).trim()); } catch (e) { console.log(e.cause?.code ?? e.message); } };
        await get(process.env.ANTHROPIC_BASE_URL + '/v1/messages');
        await get('http://${otherAt}/');
        await new Promise((done) => require('http').get({ port: 3128, path: 'http://127.0.0.3:1/', headers: { host: 'x' } }, async (r) => { let text = ''; for await (const c of r) text += c; console.log(r.statusCode, text.trim()); done(); }));
        ${reach('127.0.0.1', Number(otherAt?.split(':')[1]))} ${reach('1.1.1.1', 443)}
        console.log(JSON.stringify(process.env));
        process.stdin.resume();
      })()`;
      try {
        const agent = await start([process.execPath, '-e', script], given, { env });
        let out = '';
        for await (const chunk of agent.stdout) {
          out += Buffer.from(chunk);
          if (out.split('\n').length > 6) break;
        }
        const [first, second, third, direct, far, variables] = out.split('\n');
        expect([first, second]).toEqual(['200 answer of the model', '200 answer of the other']);
        expect(third).toMatch(/^403 .*"127\.0\.0\.3:1" to "sandbox\.allow"/);
        expect([direct, far]).toEqual(['ECONNREFUSED', 'ENETUNREACH']);
        expect(heard).toEqual([`GET /base/v1/messages ${SECRET}`]);
        expect(variables).toContain('ANTHROPIC_API_KEY');
        expect(out).not.toContain(SECRET);
        const ask = `require('http').get('http://127.0.0.2:3128/', async (r) => { let text = ''; for await (const c of r) text += c; console.log(r.statusCode, text.trim()); });`;
        const part = await node(ask, given, { env, partOf: agent.identity });
        expect(part.out).toBe('400 This is a proxy: name the whole URL.\n');
      } finally {
        model.close();
        other.close();
      }
    });

    test('all: reaches us', async () => {
      const server = createListener((socket) => socket.destroy());
      await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
      const { port } = server.address() as AddressInfo;
      const { out } = await node(`(async () => { ${reach('127.0.0.1', port)} })()`, { network: 'all' });
      server.close();
      expect(out).toBe('reached 127.0.0.1\n');
    });
  });
});
