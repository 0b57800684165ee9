import { expect, test } from 'vitest';
import { accessTo, isOfSystem } from '../shared/isolated/visible.ts';
import { isolationArguments, type Mounts, PROC_FIXED, PROC_HIDDEN, programPath } from './arguments.ts';
import { seccompFilter } from './seccomp.ts';

const NOTHING: Mounts = { system: [], proc: [], write: [], read: [], links: [], hidden: [], fixed: [], held: [] };
const words = (mounts: Partial<Mounts>, network: 'none' | 'model' | 'all' = 'none', env = {}) =>
  isolationArguments({ network, env, cwd: '/w', mounts: { ...NOTHING, ...mounts }, files: ['/etc/passwd'] });

/** The mounts after those of the system. */
function bound(mounts: Partial<Mounts>): string[] {
  const all = words(mounts).join(' ');
  const own = all.slice(all.indexOf('--tmpfs /run') + '--tmpfs /run'.length, all.indexOf('--remount-ro'));
  return own
    .trim()
    .split(/ (?=--)/)
    .filter(Boolean);
}

test('every namespace is new, and nothing of our environment is inherited', () => {
  const all = words({}, 'none', { A: '1', B: 'two words' });
  for (const flag of ['user', 'pid', 'net', 'ipc', 'uts', 'cgroup-try']) expect(all).toContain(`--unshare-${flag}`);
  for (const flag of ['--die-with-parent', '--new-session', '--disable-userns', '--clearenv'])
    expect(all).toContain(flag);
  expect(all.join(' ')).toContain('--cap-drop ALL');
  expect(all.join('|')).toContain('--clearenv|--unshare-net|--setenv|A|1|--setenv|B|two words');
  // As root, we could read what is below these.
  for (const path of ['/etc', '/etc/shadow', '/etc/ssl', '/etc/ssl/private', '/etc/pki', '/etc/pki/tls'])
    expect(all).not.toContain(path);
});

test('only "all" has the network of this machine, and its name servers', () => {
  for (const network of ['none', 'model'] as const) {
    expect(words({}, network)).toContain('--unshare-net');
    expect(words({}, network)).not.toContain('/etc/resolv.conf');
  }
  expect(words({}, 'all')).not.toContain('--unshare-net');
  expect(words({}, 'all')).toContain('/etc/resolv.conf');
});

test('files of /etc that are open are copied, and the others bound', () => {
  expect(words({}).join(' ')).toContain('--perms 0444 --file 9 /etc/passwd --ro-bind-try /etc/alternatives ');
  expect(words({}).filter((word) => word === '/etc/passwd')).toHaveLength(1);
});

test('outer paths come first, and visible paths are not bound again', () => {
  expect(
    bound({
      system: [{ path: '/usr', link: null }],
      write: ['/w/deep/state', '/w'],
      read: ['/w/tools', '/usr/bin/x', '/opt/agent', '/opt'],
    }),
  ).toEqual(['--bind /w /w', '--ro-bind /opt /opt']);
});

test('a hidden folder is empty where a folder above it is bound, apart from what is bound below it', () => {
  expect(
    bound({
      write: ['/h', '/h/data/s/work'],
      read: ['/h/data/agents'],
      hidden: ['/h/data'],
      fixed: ['/h/config', '/z'],
    }),
  ).toEqual([
    '--bind /h /h',
    '--tmpfs /h/data',
    '--ro-bind /h/config /h/config',
    '--ro-bind /h/data/agents /h/data/agents',
    '--bind /h/data/s/work /h/data/s/work',
  ]);
  expect(bound({ write: ['/w'], hidden: ['/h/data'] })).toEqual(['--bind /w /w']);
});

test('folders above a hidden folder or a fixed file are mounted, so that they cannot be moved', () => {
  const mounts = {
    write: ['/h'],
    hidden: ['/h/a/b/data'],
    fixed: ['/h/a/config'],
    held: ['/', '/h', '/h/a', '/h/a/b'],
  };
  expect(bound(mounts)).toEqual([
    '--bind /h /h',
    '--bind /h/a /h/a',
    '--ro-bind /h/a/config /h/a/config',
    '--bind /h/a/b /h/a/b',
    '--tmpfs /h/a/b/data',
  ]);
  const access = accessTo({ ...NOTHING, ...mounts, read: ['/r', '/h/a/b/data/agents'] });
  const paths = ['/h/x', '/h/a/x', '/h/a/config', '/h/a/b/data/token', '/h/a/b/data/agents/x', '/r/x', '/x'];
  expect(paths.map(access)).toEqual(['write', 'write', 'read', null, 'read', 'read', null]);
});

test('a program is found by the link that names it; the link is created unless it is bound already', () => {
  const links = [
    { path: '/home/me/bin/agent', to: '/opt/agent/agent' },
    { path: '/usr/bin/agent', to: '/opt/agent/agent' },
  ];
  const system = [{ path: '/usr', link: null }];
  expect(bound({ system, read: ['/opt/agent'], links })).toEqual([
    '--ro-bind /opt/agent /opt/agent',
    '--symlink /opt/agent/agent /home/me/bin/agent',
  ]);
});

test('files in /proc that root could write or read are covered', () => {
  const proc = [...PROC_FIXED, ...PROC_HIDDEN].map((path) => ({ path, isFolder: path === '/proc/acpi' }));
  const all = words({ proc }).join(' ');
  expect(all).toContain('--ro-bind /proc/sys /proc/sys');
  expect(all).toContain('--ro-bind /proc/sysrq-trigger /proc/sysrq-trigger');
  expect(all).toContain('--ro-bind /dev/null /proc/kcore');
  expect(all).toContain('--tmpfs /proc/acpi');
});

test.each([
  ['/p/node_modules/a/node_modules/b/x.js', '/p/node_modules'],
  ['/opt/agent/bin/agent', '/opt/agent/bin'],
  ['/home/me/agent', '/home/me/agent'],
  ['/home/agent', '/home/agent'],
  ['/tmp/agent', '/tmp/agent'],
  ['/etc/agent', '/etc/agent'],
  ['/opt/agent', '/opt/agent'],
  ['/home/me/.local/bin/agent', '/home/me/.local/bin'],
])('to run %s, %s is bound', (program, path) => {
  expect(programPath(program, '/home/me')).toBe(path);
});

test.each([
  [['/', '/usr', '/etc', '/tmp', '/var', '/proc', '/proc/1', '/sys/fs', '/dev/shm'], true],
  [['/home', '/home/me', '/srv/x', '/var/www', '/tmp/x', '/usr/src/x', '/process'], false],
])('paths of the system are recognised: %j is %s', (paths, expected) => {
  expect(paths.map(isOfSystem)).toEqual(paths.map(() => expected));
});

test.each(['x64', 'arm64'] as const)(
  'the filter of %s jumps only forward and within itself, and ends by allowing',
  (arch) => {
    const filter = seccompFilter(arch);
    const lines = Array.from({ length: filter.length / 8 }, (_, at) => filter.subarray(8 * at, 8 * at + 8));
    for (const [at, line] of lines.entries())
      expect(at + 1 + Math.max(line[2] ?? 0, line[3] ?? 0)).toBeLessThanOrEqual(lines.length);
    expect(lines.at(-1)?.readUInt32LE(4)).toBe(0x7fff0000);
    expect(new Set(lines.filter((line) => line[0] === 0x06).map((line) => line.readUInt32LE(4)))).toEqual(
      new Set([0x7fff0000, 0x00050001, 0x00050026, 0x00050061]),
    );
  },
);
