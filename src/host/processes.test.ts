import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { hostname } from 'node:os';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { formatMark, MARK, type ProcessIdentity, starterOf, whereIs } from '../core/process.ts';
import {
  isKernelThread,
  machineOf,
  type ProcessEntry,
  type ProcessTable,
  parsePs,
  parseStat,
  procfs,
  ps,
} from './process-table.ts';
import { bootId, processesOf, systemProcesses } from './processes.ts';

const { identify } = systemProcesses;

const children: ChildProcess[] = [];
afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
});

async function start(script: string, detached = false): Promise<{ child: ChildProcess; identity: ProcessIdentity }> {
  const child = spawn(process.execPath, ['-e', script], { detached, stdio: ['ignore', 'pipe', 'ignore'] });
  children.push(child);
  const identity = identify(child.pid ?? -1);
  if (identity === null || child.stdout === null) throw new Error('not started');
  await once(child.stdout, 'data');
  return { child, identity };
}

const SLEEPER = `console.log('up'); setInterval(() => {}, 1000)`;

describe('this machine', () => {
  test('our own process is alive, and has the same identity every time', () => {
    const self = systemProcesses.self();
    expect(self.pid).toBe(process.pid);
    expect(systemProcesses.status(self)).toBe('alive');
    expect({ ...identify(process.pid), host: hostname() }).toEqual(self);
    expect(bootId()).toBe(self.boot);
    expect(self.boot).not.toBe('');
  });

  test('a process is alive until it ends', async () => {
    const { child, identity } = await start(SLEEPER);
    expect(systemProcesses.status(identity)).toBe('alive');
    child.kill('SIGKILL');
    await once(child, 'exit');
    expect(systemProcesses.status(identity)).toBe('dead');
  });

  test('a zombie is dead', async () => {
    // A shell that replaces itself by a program which never waits for the child that the shell had.
    const parent = spawn('/bin/sh', ['-c', 'sleep 0.3 & echo $!; exec sleep 60'], {
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    children.push(parent);
    const [line] = (await once(parent.stdout, 'data')) as [Buffer];
    const pid = Number(line.toString());
    await expect.poll(() => (process.platform === 'linux' ? stateOf(pid) : 'Z')).toBe('Z');
    const identity = identify(pid);
    expect(identity).not.toBeNull();
    if (identity) expect(systemProcesses.status(identity)).toBe('dead');
  });

  test.skipIf(process.platform !== 'linux')(
    'a process whose first thread has ended is alive while another thread runs',
    async () => {
      const script = `
import ctypes, threading, time
threading.Thread(target=time.sleep, args=(60,)).start()
print('ready', flush=True)
ctypes.CDLL(None).pthread_exit(None)`;
      const child = spawn('python3', ['-c', script], { stdio: ['ignore', 'pipe', 'inherit'] });
      children.push(child);
      await once(child.stdout, 'data');
      const pid = child.pid ?? 0;
      await expect.poll(() => stateOf(pid)).toBe('Z');
      const identity = identify(pid) as ProcessIdentity;
      expect(systemProcesses.status(identity)).toBe('alive');
      expect(await systemProcesses.end(identity)).toBe('ended');
    },
  );

  test('ending a process ends its group as well', async () => {
    const script = `
      const child = require('node:child_process').spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'ignore' });
      console.log(child.pid); setInterval(() => {}, 1000)`;
    const child = spawn(process.execPath, ['-e', script], { detached: true, stdio: ['ignore', 'pipe', 'ignore'] });
    children.push(child);
    const leader = identify(child.pid ?? -1);
    const [line] = (await once(child.stdout, 'data')) as [Buffer];
    const member = identify(Number(line.toString()));
    if (leader === null || member === null) throw new Error('not started');
    expect(await systemProcesses.end(leader)).toBe('ended');
    expect(systemProcesses.status(leader)).toBe('dead');
    await expect.poll(() => systemProcesses.status(member)).toBe('dead');
  });

  test('ending a process that leads no group ends only that one', async () => {
    const { identity } = await start(SLEEPER);
    expect(await systemProcesses.end(identity)).toBe('ended');
    expect(systemProcesses.status(systemProcesses.self())).toBe('alive');
  });

  test('a later process with the same pid is never touched', async () => {
    const { identity } = await start(SLEEPER, true);
    const earlier = { ...identity, started: `${identity.started}0` };
    expect(systemProcesses.status(earlier)).toBe('dead');
    expect(await systemProcesses.end(earlier)).toBe('ended');
    expect(systemProcesses.status(identity)).toBe('alive');
  });

  test('a process of another machine or pid namespace is unknown, and is not touched', async () => {
    const { identity } = await start(SLEEPER, true);
    const otherMachine = { ...identity, boot: 'another' };
    const otherNamespace = { ...identity, namespace: 'pid:[1]' };
    for (const other of [otherMachine, otherNamespace]) {
      expect(systemProcesses.status(other)).toBe('unknown');
      expect(await systemProcesses.end(other)).toBe('unknown');
    }
    expect(systemProcesses.status(identity)).toBe('alive');
  });

  test('we do not end ourselves', async () => {
    expect(await systemProcesses.end(systemProcesses.self())).toBe('unknown');
  });

  test('an unused pid has no identity', () => {
    expect(identify(2 ** 30)).toBeNull();
  });
});

function stateOf(pid: number): string {
  const { readFileSync } = process.getBuiltinModule('node:fs');
  return readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ').at(-1)?.[0] ?? '';
}

describe('/proc/PID/stat', () => {
  const tail = `S 1 ${'77'} 77 0 -1 4194560 1 0 0 0 1 2 0 0 20 0 1 0 ${'424242'} 1000 200 18446744073709551615`;
  test.each([
    ['node', `4711 (node) ${tail}`],
    ['a name with a space', `4711 (my agent) ${tail}`],
    ['a name with parentheses', `4711 (a) S 1 (b) ${tail}`],
    ['a name with a newline', `4711 (a\nb) ${tail}`],
  ])('is parsed for any program name: %s', (_name, stat) => {
    expect(parseStat(stat)).toEqual({ started: '424242', group: 77, zombie: false });
  });

  test('shows zombies, and is null for anything else', () => {
    expect(parseStat(`4711 (node) ${tail.replace('S', 'Z')}`)?.zombie).toBe(true);
    expect(parseStat(`4711 (node) ${tail.replace('S', 'Z').replace('20 0 1', '20 0 2')}`)?.zombie).toBe(false);
    expect(parseStat('')).toBeNull();
    expect(parseStat('4711 (node) S 1')).toBeNull();
  });

  test('distinguishes a kernel thread from a program with the same name and number', () => {
    const flags = (value: number) => `S 0 0 0 0 -1 ${value} 0 0`;
    expect(isKernelThread(`2 (kthreadd) ${flags(2_129_984)}`)).toBe(true);
    expect(isKernelThread(`2 (kthreadd) ${flags(4_194_560)}`)).toBe(false);
    expect(isKernelThread('')).toBe(false);
  });
});

describe('/proc/PID/environ', () => {
  beforeEach((context) => {
    if (process.platform !== 'linux') context.skip('only Linux has /proc');
  });

  test('a mark is found behind many variables, in an environment of any length', async () => {
    const long = 'x'.repeat(100_000);
    const env = { A: long, B: long, C: long, [MARK]: 'behind', D: long };
    const sleeper = spawn('/bin/sleep', ['60'], { env, stdio: 'ignore' });
    children.push(sleeper);
    await once(sleeper, 'spawn');
    expect([...procfs.marked()]).toContainEqual({ pid: sleeper.pid, mark: 'behind' });
  });

  test('reading all of them again takes no further memory', () => {
    const read = () => [...procfs.marked()].length;
    read();
    const before = process.memoryUsage().arrayBuffers;
    read();
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(2 ** 20);
  });
});

describe('ps', () => {
  test('a line is read as macOS prints it', () => {
    const entry = parsePs('Ss+  4711 Tue Mar  4 05:06:07 2025\n');
    expect(entry).toEqual({ started: 'Tue Mar 4 05:06:07 2025', group: 4711, zombie: false });
    expect(parsePs('Z    4711 Tue Mar  4 05:06:07 2025')?.zombie).toBe(true);
    expect(parsePs('')).toBeNull();
  });

  test('the program itself shows our own process, where there is one', (context) => {
    const entry = ps.look(process.pid);
    if (entry === null) return context.skip('this machine has no ps');
    expect(entry.zombie).toBe(false);
    expect(ps.look(process.pid)).toEqual(entry);
    expect(ps.look(2 ** 30)).toBeNull();
  });
});

test('ending a process also ends those with its mark: after its death too, and those started meanwhile', async () => {
  const found = [[11, 12], [12, 13], [13]].map((pids) => pids.map((pid) => ({ pid, mark: 'm' })));
  const killed: number[] = [];
  const table: ProcessTable = {
    look: () => null,
    marked: () => found.shift() ?? [],
    boot: () => 'b',
    namespace: () => 'n',
  };
  const processes = processesOf(table, {
    isOver: (boot) => boot === 'before',
    kill: (pid, signal) => {
      if (signal === 0) throw Object.assign(new Error('kill'), { code: 'ESRCH' });
      killed.push(pid);
    },
  });
  const dead = { pid: 1, started: '1', boot: 'b', namespace: 'n', mark: 'm' };
  expect(await processes.end(dead)).toBe('ended');
  expect(killed).toEqual([11, 12, 13]);
  // Processes of another boot, machine or namespace are not touched.
  found.push([{ pid: 14, mark: 'm' }], [{ pid: 15, mark: 'm' }], [{ pid: 16, mark: 'm' }]);
  expect(await processes.end({ ...dead, boot: 'before' })).toBe('ended');
  expect(await processes.end({ ...dead, boot: 'elsewhere' })).toBe('unknown');
  expect(await processes.end({ ...dead, namespace: 'other' })).toBe('unknown');
  expect(killed).toHaveLength(3);
});

test('of the processes with a mark, the oldest ends first: the program, and then its tools', async () => {
  const killed: number[] = [];
  const started: Record<number, string> = { 5: '300', 20: '100', 21: '200', 22: '50' };
  const table: ProcessTable = {
    look: (pid) => (killed.includes(pid) ? null : { started: started[pid] ?? '', group: pid, zombie: false }),
    *marked() {
      for (const pid of [5, 20, 21, 22]) if (!killed.includes(pid)) yield { pid, mark: 'm' };
      // Another process got this pid after the look at it.
      started[22] = '400';
    },
    boot: () => 'b',
    namespace: () => 'n',
  };
  const kill = (pid: number, signal: unknown) => void (signal === 'SIGKILL' && killed.push(pid));
  await processesOf(table, { kill }).endMarked('m');
  expect(killed).toEqual([20, 21, 5]);
});

test('a process that the table does not show is dead only when it cannot be signalled either', () => {
  const look = (): ProcessEntry | null => null;
  const blind: ProcessTable = { look, marked: () => [], boot: () => 'b', namespace: () => 'n' };
  const answers: Record<number, string> = { 1: 'EPERM', 2: 'ESRCH' };
  const processes = processesOf(blind, {
    kill: (pid) => {
      if (answers[pid] !== undefined) throw Object.assign(new Error('kill'), { code: answers[pid] });
    },
  });
  const status = (pid: number) => processes.status({ pid, started: '1', boot: 'b', namespace: 'n' });
  expect([status(1), status(2), status(3)]).toEqual(['unknown', 'dead', 'unknown']);
});

test('a program is an orphan when its starter is provably dead, and only for the data home that it was started for', async () => {
  const entry = { group: 1, zombie: false };
  const alive = new Map<number, ProcessEntry>([
    [process.pid, { ...entry, started: 'now' }],
    [20, { ...entry, started: '20', group: 20 }],
    [21, { ...entry, started: '21', group: 20 }],
    // A tool that leads a group of its own, and has a smaller pid because the system started counting again.
    [5, { ...entry, started: '100', group: 5 }],
    [22, { ...entry, started: '22', group: 22 }],
  ]);
  const mark = (id: string, place: string, pid: number, started: string, namespace = 'n') =>
    formatMark(id, { place, process: { pid, started, boot: 'b', namespace } });
  const lost = mark('1', 'here', 9, '9');
  const marks: Record<number, string> = {
    5: lost,
    21: lost,
    20: lost,
    // Its starter lives, belongs to another home, namespace or machine, or is unknown.
    22: mark('2', 'here', process.pid, 'now'),
    23: mark('3', 'elsewhere', 9, '9'),
    24: mark('4', 'here', 9, '9', 'other'),
    25: 'an older mark',
    26: formatMark('5', { place: 'here', process: { pid: 9, started: '9', boot: 'other', namespace: 'n' } }),
  };
  const table: ProcessTable = {
    look: (pid) => alive.get(pid) ?? null,
    marked: () => Object.entries(marks).map(([pid, mark]) => ({ pid: Number(pid), mark })),
    boot: () => 'b',
    namespace: () => 'n',
  };
  const kill = () => {
    throw Object.assign(new Error('kill'), { code: 'ESRCH' });
  };
  const here = processesOf(table, { place: 'here', kill });
  expect(await here.orphans()).toEqual([{ pid: 20, started: '20', boot: 'b', namespace: 'n', mark: lost }]);
  const { host: _, ...self } = here.self();
  expect(starterOf(here.newMark())).toEqual({ place: 'here', process: self });
  expect(here.newMark()).not.toBe(here.newMark());
  expect(await processesOf(table, { place: 'nowhere', kill }).orphans()).toEqual([]);
});

test('when a starter dies during the look, its program is found, and not a tool of the program', async () => {
  const entry = { zombie: false };
  const alive = new Map<number, ProcessEntry>([
    [9, { ...entry, started: '9', group: 9 }],
    [20, { ...entry, started: '20', group: 20 }],
    [30, { ...entry, started: '30', group: 30 }],
  ]);
  const mark = formatMark('1', { place: 'here', process: { pid: 9, started: '9', boot: 'b', namespace: 'n' } });
  const table: ProcessTable = {
    look: (pid) => alive.get(pid) ?? null,
    *marked() {
      yield { pid: 20, mark };
      alive.delete(9);
      yield { pid: 30, mark };
    },
    boot: () => 'b',
    namespace: () => 'n',
  };
  const kill = () => {
    throw Object.assign(new Error('no such process'), { code: 'ESRCH' });
  };
  const { orphans } = processesOf(table, { place: 'here', kill });
  expect(await orphans()).toMatchObject([{ pid: 20 }]);
  // It dies after the look: its program is found next time.
  let isAlive = true;
  const dying = (pid: number) => {
    if (pid !== 9) return alive.get(pid) ?? null;
    const entry = isAlive ? { zombie: false, started: '9', group: 9 } : null;
    isAlive = false;
    return entry;
  };
  expect(await processesOf({ ...table, look: dying }, { place: 'here', kill }).orphans()).toEqual([]);
});

test.each(['', 'x', '1:2:3', '::::::', '1:p:x:s:b:n', '1:p:%:s:b:n', '%E0%A4%A:p:1:s:b:n'])(
  'the mark %j contains no starter',
  (mark) => {
    expect(starterOf(mark)).toBeNull();
  },
);

test('a mark contains its starter, with any characters', () => {
  const starter = {
    place: 'p',
    process: { pid: 7, started: 'Tue Mar 4 05:06:07 2025', boot: 'b', namespace: 'pid:[1]' },
  };
  expect(starterOf(formatMark('id', starter))).toEqual(starter);
});

test.each([
  ['this boot, this namespace', 'now', 'n', 'here'],
  ['this boot, another namespace', 'now', 'other', 'elsewhere'],
  ['an earlier boot of this machine', 'earlier', 'n', 'before'],
  ['an earlier boot of this machine, another namespace', 'earlier', 'other', 'before'],
  ['a boot that nobody here has seen', 'foreign', 'n', 'elsewhere'],
  ['no boot, as the programs behind a server have it', '', 'client c', 'elsewhere'],
])('a process of %s', (_, boot, namespace, where) => {
  const from = { boot: 'now', namespace: 'n', isOver: (one: string) => one === 'earlier' };
  expect(whereIs({ pid: 1, started: '1', boot, namespace }, from)).toBe(where);
});

test.each([
  ['', 'one', 'pid:[4026531836]', false],
  ['uninitialized', 'one', 'pid:[4026531836]', false],
  ['0123456789abcdef0123456789abcdef', 'one', 'pid:[4026531836]', true],
  // A container: the id is that of its image.
  ['0123456789abcdef0123456789abcdef', 'one', 'pid:[4026532001]', false],
])('a machine with the id %j and the name %j in %s can be recognised: %j', (id, hostname, namespace, known) => {
  expect(machineOf({ id, hostname, namespace }) !== null).toBe(known);
});

test('copies of one machine with names of their own are two machines', () => {
  const seen = { id: '0123456789abcdef0123456789abcdef', namespace: 'pid:[4026531836]' };
  expect(machineOf({ ...seen, hostname: 'one' })).not.toBe(machineOf({ ...seen, hostname: 'two' }));
});
