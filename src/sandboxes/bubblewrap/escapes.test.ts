import { spawn } from 'node:child_process';
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
import { isolatedSandboxes, whyNoBubblewrap } from '../../../test/contracts/sandbox/bubblewrap-given.ts';
import { identityOfLocal } from '../../core/process.ts';
import type { Child, SpawnOptions } from '../../ports/sandbox.ts';

type Given = Parameters<typeof isolatedSandboxes>[1];

const SECRET = 'a-secret-of-the-person';
const why = whyNoBubblewrap();
const isRoot = process.getuid?.() === 0;
const NEEDS_ROOT = 'limits for all processes together need root, or a group that was delegated';

let base: string;
let root: string;
let project: string;
const children: Child[] = [];
beforeAll(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), 'throughline-escapes-')));
  root = join(base, 'data-home');
  project = join(base, 'project');
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

const open = (given: Given = { network: 'none' }, cwd: string | null = project) =>
  isolatedSandboxes(root, given).open('one', { cwd });

async function start(command: string[], given?: Given, options: Partial<SpawnOptions> = {}): Promise<Child> {
  const child = await (await open(given)).spawn(command, { env: {}, ...options });
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

describe.skipIf(why !== null)(`an agent in bubblewrap${why === null ? '' : ` (skipped: ${why})`}`, () => {
  test('reads nothing outside: by path, upwards, by link, of the system, of us or of a neighbour', async () => {
    await isolatedSandboxes(root, { network: 'none' }).open('neighbour', { cwd: null });
    const { out } = await sh(`
      for file in '${base}/elsewhere/secret' ../elsewhere/secret link '${root}/token' /etc/shadow /proc/kcore /proc/1/root/etc/shadow; do
        if cat "$file" >/dev/null 2>&1; then echo "read $file"; fi
      done
      for folder in '${root}/neighbour' '${base}/elsewhere' /etc/ssl/private /root /home /sys /boot /var/lib /var/run /mnt; do
        if ls -A "$folder" 2>/dev/null | grep -q .; then echo "listed $folder"; fi
      done
      for file in /dev/mem /dev/kmsg /dev/sda /dev/vda /dev/fuse; do if [ -e "$file" ]; then echo "has $file"; fi; done
      echo done`);
    expect(out).toBe('done\n');
  });

  test('changes nothing outside, nor the settings that it is started with', async () => {
    const { out } = await sh(`
      for file in /usr/x /etc/x /etc/passwd /bin/x '${process.execPath}' throughline.config.json /proc/sysrq-trigger \\
        /proc/sys/kernel/core_pattern /proc/sys/kernel/hostname; do
        if ( : >> "$file" ) 2>/dev/null; then echo "opened $file"; fi
      done
      rm -f throughline.config.json 2>/dev/null && echo removed
      mv throughline.config.json other 2>/dev/null && echo moved
      echo hidden > '${base}/x'
      echo mine > own && cat own`);
    expect(out).toBe('mine\n');
    expect(readFileSync(join(project, 'throughline.config.json'), 'utf8')).toBe('{}');
    expect(() => readFileSync(join(base, 'x'))).toThrow('ENOENT');
  });

  test('working above the data home, it neither sees nor moves it, nor what was named as fixed, itself or through us', async () => {
    const wide = join(base, 'wide');
    const [data, config] = [join(wide, 'a/b/data'), join(wide, 'c/config.json')];
    for (const folder of [data, join(wide, 'c')]) mkdirSync(folder, { recursive: true });
    writeFileSync(join(data, 'token'), SECRET);
    writeFileSync(config, '{}');
    // The data home is named by a link, as it may be in a person's settings.
    symlinkSync(data, join(base, 'data-link'));
    const sandbox = await isolatedSandboxes(join(base, 'data-link'), { network: 'none' }, [config]).open('one', {
      cwd: wide,
    });
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
    await expect(folder.list('a/b/data')).rejects.toMatchObject({ code: 'refused' });
    for (const write of [folder.replace('c/config.json', 'x'), folder.append('c/config.json', 'x')])
      await expect(write).rejects.toThrow('cannot be changed from the sandbox');
    await folder.replace('c/own', 'ours');
    expect(readFileSync(config, 'utf8')).toBe('{}');
  });

  test('gets nothing by a link in the place of a directory that another conversation works in', async () => {
    symlinkSync(join(base, 'elsewhere'), join(project, 'nested'));
    await expect(open(undefined, join(project, 'nested'))).rejects.toMatchObject({ code: 'refused' });
  });

  test('gets nothing bound for a link in the place of a word that it was started with', async () => {
    const secret = join(base, 'elsewhere/secret');
    const { out } = await run(['/bin/sh', join(project, 'link')]);
    expect(out).toBe('');
    const agent = join(project, 'agent.sh');
    writeFileSync(agent, `cat '${secret}' || echo no`, { mode: 0o700 });
    expect((await run(['/bin/sh', agent])).out).toBe('no\n');
    writeFileSync(agent, `#!/bin/sh\ncat '${secret}' || echo no`, { mode: 0o700 });
    expect((await run([agent, join(project, 'link')])).out).toBe('no\n');
  });

  test('has the environment that it was given, and no other: also not by the processes that it sees', async () => {
    process.env.THROUGHLINE_TEST_SECRET = SECRET;
    try {
      const { out } = await sh(`env; cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr '\\0' '\\n'`, undefined, {
        env: { GIVEN: 'yes' },
      });
      expect(out).toContain('GIVEN=yes');
      expect(out).toContain(`HOME=${root}/one/home`);
      expect(out).not.toContain(SECRET);
      expect(out).not.toContain('TMPDIR');
    } finally {
      delete process.env.THROUGHLINE_TEST_SECRET;
    }
  });

  test('chooses nothing for programs outside, and its keys are in no argument', async () => {
    const env = { LD_PRELOAD: join(project, 'evil.so'), PATH: '/usr/bin:/bin', KEY: SECRET };
    const child = await start(['/bin/sh', '-c', 'read line'], undefined, { env });
    const of = (name: string) => readFileSync(`/proc/${identityOfLocal(child.identity)?.pid}/${name}`, 'latin1');
    expect(of('cmdline')).toContain('bwrap');
    expect(of('cmdline') + of('environ')).not.toMatch(new RegExp(`LD_PRELOAD|${SECRET}`));
  });

  test('sees and signals no process outside', async () => {
    const { out } = await sh(`
      kill -0 ${process.pid} 2>/dev/null && echo "sees ${process.pid}"
      for pid in /proc/[0-9]*; do echo "\${pid##*/}"; done | wc -l
      ${call(101, 117, `16, ${process.pid}, 0, 0`)}; echo
      kill -KILL -1; echo survived`);
    const [count = '', ptrace, ...rest] = out.split('\n');
    expect(Number(count)).toBeLessThan(8);
    expect(ptrace).toBe('No such process');
    expect(rest).not.toContain(`sees ${process.pid}`);
    expect(process.pid).toBeGreaterThan(0); // we are here
  });

  test('has no privileges, and cannot get any', async () => {
    const { out } = await sh(`
      grep -E '^(CapInh|CapPrm|CapEff|CapBnd|CapAmb|NoNewPrivs|Seccomp):' /proc/self/status | tr -d '\\t' | tr '\\n' ' '; echo
      ${call(250, 219, '0, -3, 0')}; echo " keyctl"
      ${call(248, 217, '"user", "a", "b", 1, -3')}; echo " add_key"
      ${call(165, 40, '"none", "/tmp", "tmpfs", 0, 0')}; echo " mount"
      ${call(304, 265, '0, 0, 0')}; echo " open_by_handle_at"
      ${call(467, 467, '-100, "/tmp", 0, 0, 0')}; echo " open_tree_attr"
      ${call(443, 443, '0, 0, 0, 0')}; echo " quotactl_fd"
      ${call(272, 97, '0x10000000')}; echo " user namespace"
      ${call(161, 51, '"/tmp"')}; echo " chroot"
      ${call(16, 29, '0, 0x5412, "x"')}; echo " TIOCSTI"
      mknod /tmp/disk b 8 0 2>/dev/null && echo mknod
      (: < /dev/tty) 2>/dev/null && echo terminal
      exit 0`);
    const none = '0000000000000000';
    const [status = '', ...calls] = out.trim().split('\n');
    expect(status.trim()).toBe(
      `CapInh:${none} CapPrm:${none} CapEff:${none} CapBnd:${none} CapAmb:${none} NoNewPrivs:1 Seccomp:2`,
    );
    const newer = ['open_tree_attr', 'quotactl_fd'];
    const names = ['keyctl', 'add_key', 'mount', 'open_by_handle_at', ...newer, 'user namespace', 'chroot', 'TIOCSTI'];
    for (const [at, name] of names.entries()) {
      expect(calls[at]).toMatch(new RegExp(`^(Operation not permitted|No space left on device) ${name}$`));
    }
    expect(calls).toHaveLength(names.length);
  });

  test('has no file open but its own three, whatever we were started with', async () => {
    const starter = fileURLToPath(new URL('../../../test/contracts/sandbox/bubblewrap-given.ts', import.meta.url));
    const words = [process.execPath, starter, root, '/bin/sh', '-c', 'readlink /proc/self/fd/* > fds; read line < fds'];
    // A folder of ours, open in our process. Node itself closes those with low numbers when it starts a program, and no others.
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

  test('gets nothing bound for a command that it has chosen itself', async () => {
    const agent = await start(['/bin/sh', '-c', 'read line']);
    const secret = join(base, 'elsewhere/secret');
    await expect(run([secret], undefined, { partOf: agent.identity })).rejects.toMatchObject({
      code: 'agent_unavailable',
      message: `The program ${secret} was not found in the sandbox.`,
    });
    expect((await run(['cat', secret], undefined, { partOf: agent.identity })).code).not.toBe(0);
  });

  test('says nothing to bubblewrap or to us by the variables of a command that it has chosen', async () => {
    const agent = await start(['/bin/sh', '-c', 'read line']);
    const given: Given = { network: 'model', allow: ['example.org'] };
    const chosen = (env: Record<string, string>) => sh('env', given, { env, partOf: agent.identity });
    for (const env of [{ A: `a\0--bind\0${base}\0${base}` }, { 'A=1;touch x;B': '' }])
      await expect(chosen(env)).rejects.toMatchObject({ code: 'agent_unavailable' });
    // On the channel to us, this would end our process.
    const evil = join(project, 'evil.js');
    writeFileSync(evil, `try { require('fs').writeSync(3, 'nothing of Node\\n') } catch {}; process.send?.('a word')`);
    const quoted = ` "it's" $(id) \`id\` \\ \n`;
    const { out, code } = await chosen({ NODE_OPTIONS: `--require ${evil}`, QUOTED: quoted, PATH: '/usr/bin' });
    expect(code).toBe(0);
    expect(out).toContain(`QUOTED=${quoted}\n`);
    expect(out).toContain(`NODE_OPTIONS=--require ${evil}\n`);
    expect(out).toContain('PATH=/usr/bin\n');
  });

  test('is told by SIGTERM to end, before it is killed', async () => {
    const child = await start([
      '/bin/sh',
      '-c',
      'trap "echo told; exit 3" TERM; echo ready; while :; do sleep 0.05; done',
    ]);
    const output = child.stdout[Symbol.asyncIterator]();
    // The shell may say that its own program was ended. Unread, that would be waited for.
    void textOf(child.stderr);
    expect(String((await output.next()).value)).toBe('ready\n');
    child.kill('SIGTERM');
    expect(String((await output.next()).value)).toBe('told\n');
    expect((await output.next()).done).toBe(true);
    expect(await child.exited).toEqual({ code: 3, signal: null });
  });

  test('of 500 processes gets as many as it may have; of 4 GB as much memory; files as many', async (context) => {
    if (!isRoot) context.skip(NEEDS_ROOT);
    const limits = { processes: 80, memoryMb: 256, openFiles: 100 };
    const bomb = await sh(
      `ulimit -n; n=0; while [ $n -lt 500 ]; do n=$((n+1)); (sleep 600 &) 2>/dev/null; done; ls -d /proc/[0-9]* | wc -l`,
      { network: 'none', limits },
    );
    expect(bomb.out.split('\n')[0]).toBe('100');
    // The shell gives up at the first process that it cannot have.
    expect(bomb.code === 2 || Number(bomb.out.split('\n')[1]) <= 82).toBe(true);
    expect(bomb.said).toMatch(/fork/i);
    const hog = await node(
      'const all = []; for (let n = 0; n < 64; n++) all.push(Buffer.alloc(64 * 2 ** 20, 1)); console.log("had it")',
      {
        network: 'none',
        limits,
      },
    );
    expect(hog.out).toBe('');
    expect([hog.code, hog.signal]).not.toEqual([0, null]);
  });

  test('has its limits together with the commands that it has us start', async (context) => {
    if (!isRoot) context.skip(NEEDS_ROOT);
    const sandbox = await open({ network: 'none', limits: { processes: 80 } });
    const holding = { env: {} };
    const agent = await sandbox.spawn(['/bin/sh', '-c', 'read line'], holding);
    const command = await sandbox.spawn(['/bin/sh', '-c', 'read line'], { ...holding, partOf: agent.identity });
    const other = await sandbox.spawn(['/bin/sh', '-c', 'read line'], holding);
    children.push(agent, command, other);
    const [of, ofCommand, ofOther] = [agent, command, other].map(({ identity }) =>
      readFileSync(`/proc/${identityOfLocal(identity)?.pid}/cgroup`, 'utf8'),
    );
    expect(of).toContain('throughline-');
    expect(ofCommand).toBe(of);
    expect(ofOther).not.toBe(of);
  });

  describe('and the network', () => {
    /** Connects, and prints what came of it. */
    const reach = (host: string, port: number) =>
      `await new Promise((done) => { const s = require('net').connect({ host: '${host}', port: ${port} }, () => { console.log('reached ${host}'); s.destroy(); done(); }); s.on('error', (e) => { console.log(e.code); done(); }); s.setTimeout(60_000, () => s.destroy(new Error('silent'))); });`;

    test('none: reaches neither us, nor others, nor names, nor abstract sockets', async () => {
      const server = createListener((socket) => socket.destroy());
      const abstract = createListener((socket) => socket.destroy());
      const name = `throughline-escapes-test-${process.pid}`;
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
        expect(out + said).toBe('ECONNREFUSED\nECONNREFUSED\nENETUNREACH\nENETUNREACH\nno name\nECONNREFUSED\nlo\n');
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

    test('model: reaches what is allowed and nothing else, and has the key of the model never', async () => {
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
      })()`;
      try {
        const { out, said } = await node(script, given, { env });
        const [first, second, third, direct, far, variables] = out.split('\n');
        expect([first, second], said).toEqual(['200 answer of the model', '200 answer of the other']);
        expect(third).toMatch(/^403 .*"127\.0\.0\.3:1" to "sandbox\.allow"/);
        expect([direct, far]).toEqual(['ECONNREFUSED', 'ENETUNREACH']);
        expect(heard).toEqual([`GET /base/v1/messages ${SECRET}`]);
        expect(variables).toContain('ANTHROPIC_API_KEY');
        expect(variables).not.toContain('NODE_CHANNEL_FD');
        expect(out + said).not.toContain(SECRET);
      } finally {
        model.close();
        other.close();
      }
    });

    test('model: by a command that it has chosen, it does not choose what the model is', async () => {
      const ours = createServer((_, response) => response.end('a service of this machine'));
      await new Promise<void>((done) => ours.listen(0, '127.0.0.1', done));
      const at = `127.0.0.1:${(ours.address() as AddressInfo).port}`;
      const given: Given = { network: 'model', key: {} };
      const agent = await start(['/bin/sh', '-c', 'read line'], given);
      const env = { ANTHROPIC_BASE_URL: `http://${at}`, ANTHROPIC_API_KEY: 'any' };
      const script = `for (const url of ['http://127.0.0.2:3128/', 'http://127.0.0.1:3128/'])
        require('http').get(url, async (r) => { let text = ''; for await (const c of r) text += c; console.log(r.statusCode, text.trim()); });`;
      try {
        const { out } = await node(script, given, { env, partOf: agent.identity });
        expect(out).toBe('400 This is a proxy: name the whole URL.\n'.repeat(2));
      } finally {
        ours.close();
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
