// The service behind the doubles of the vendors' packages: its machines are in a folder of this machine, where any process can find them.
import { execFileSync, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import {
  existsSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { request } from 'node:http';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { MachineRequest, MachineStart } from './machine.ts';

const PROGRAM = fileURLToPath(new URL('machine.ts', import.meta.url));
const CHECKOUT = fileURLToPath(new URL('../../..', import.meta.url)).replace(/\/$/, '');

/** Loaded into the programs of a machine: instead of a port, they listen on an abstract socket with a name that only this machine has. */
const PORTS = `const { Server } = require('node:net');
const { listen } = Server.prototype;
Server.prototype.listen = function (port, ...rest) {
  if (typeof port !== 'number') return listen.call(this, port, ...rest);
  return listen.call(this, '\\0' + process.env.DOUBLE_PORTS + ':' + port, ...rest.filter((one) => typeof one === 'function'));
};
`;

export interface MachineFacts {
  readonly id: string;
  /** Where its files are inside of the machine. Only these are kept when it rests. */
  readonly home: string;
  readonly port: number;
  readonly metadata: Readonly<Record<string, string>>;
  readonly startedAt: number;
}

interface MachineState {
  /** The process with which everything in the machine ends. */
  readonly pid: number;
  readonly control: number;
  readonly forwardedPort: number;
}

/** Why the doubles cannot be used here. Null: they can. */
export function whyNoDoubles(): string | null {
  if (process.platform !== 'linux') return 'the doubles of rented machines need Linux';
  try {
    execFileSync('bwrap', ['--version'], { stdio: 'ignore' });
    return null;
  } catch {
    return 'bubblewrap is not installed ("apt-get install bubblewrap"): the doubles of rented machines run in it';
  }
}

export class Service {
  readonly root: string;

  constructor(root: string) {
    if (!existsSync(root)) throw new Error('401: the key is wrong');
    this.root = root;
  }

  /** All machines, awake or not. */
  all(): MachineFacts[] {
    return readdirSync(this.root).flatMap((id) => this.facts(id) ?? []);
  }

  facts(id: string): MachineFacts | null {
    return parsed<MachineFacts>(join(this.root, id, 'facts.json'));
  }

  make(facts: Omit<MachineFacts, 'startedAt'>): boolean {
    const folder = join(this.root, facts.id);
    try {
      mkdirSync(folder);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
      throw error;
    }
    for (const name of ['files', 'run']) mkdirSync(join(folder, name));
    writeFileSync(join(folder, 'run/ports.cjs'), PORTS);
    writeFileSync(join(folder, 'run/port'), String(facts.port));
    const complete: MachineFacts = { ...facts, startedAt: Date.now() };
    writeFileSync(join(folder, 'facts.json'), JSON.stringify(complete));
    return true;
  }

  /** Null: it rests. */
  state(id: string): MachineState | null {
    const run = join(this.root, id, 'run');
    const [pid, state] = [
      parsed<{ 'child-pid': number }>(join(run, 'bwrap.json')),
      parsed<MachineState>(join(run, 'state.json')),
    ];
    if (pid === null || state === null || !isRunning(pid['child-pid'])) return null;
    return { ...state, pid: pid['child-pid'] };
  }

  /** Starts it, unless it is awake. */
  async wake(id: string, awakeMs: number): Promise<MachineState> {
    const facts = this.facts(id);
    if (facts === null) throw new Error(`there is no machine ${id}`);
    const awake = this.state(id);
    if (awake !== null) return awake;
    const run = join(this.root, id, 'run');
    for (const name of ['bwrap.json', 'state.json']) rmSync(join(run, name), { force: true });
    // A new name for each run, because programs of an earlier run must not hold its ports.
    const start: MachineStart = { name: `${id}-${randomUUID()}`, cwd: facts.home, awakeMs };
    const args = [
      ...mounts(join(this.root, id), facts.home),
      '--info-fd',
      '3',
      process.execPath,
      PROGRAM,
      JSON.stringify(start),
    ];
    const stdio = [
      'ignore',
      'ignore',
      openSync(join(run, 'log'), 'a'),
      openSync(join(run, 'bwrap.json'), 'w'),
    ] as const;
    const child = spawn('bwrap', args, { detached: true, stdio: [...stdio] });
    child.unref();
    for (;;) {
      const state = this.state(id);
      if (state !== null) return state;
      if (child.exitCode !== null)
        throw new Error(`the machine does not start: ${readFileSync(join(run, 'log'), 'utf8')}`);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }

  /** Ends everything in the machine at once, as when its time is over or its hardware fails. */
  async stop(id: string): Promise<void> {
    const state = this.state(id);
    if (state === null) return;
    try {
      process.kill(state.pid, 'SIGKILL');
    } catch (error) {
      // It ended by itself at this moment.
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
    while (isRunning(state.pid)) await new Promise((resolve) => setTimeout(resolve, 5));
  }

  async remove(id: string): Promise<void> {
    await this.stop(id);
    rmSync(join(this.root, id), { recursive: true, force: true, maxRetries: 5 });
  }

  /** Stops and removes all of them. */
  async dispose(): Promise<void> {
    for (const { id } of this.all()) await this.remove(id);
    rmSync(this.root, { recursive: true, force: true });
  }

  async ask(id: string, body: MachineRequest): Promise<unknown> {
    const state = this.state(id);
    if (state === null) throw new Error('410: the machine rests');
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    const sent = request({ host: '127.0.0.1', port: state.control, method: 'POST', agent: false }, async (response) => {
      const chunks: Buffer[] = [];
      for await (const chunk of response) chunks.push(chunk);
      resolve(Buffer.concat(chunks).toString());
    });
    sent.on('error', reject).end(JSON.stringify(body));
    const { value, error } = JSON.parse(await promise);
    if (error !== undefined) throw new Error(error);
    return value;
  }
}

/** What is mounted in a machine: the programs of this one, read-only, and its own files. */
function mounts(folder: string, home: string): string[] {
  const system = ['/bin', '/sbin', '/lib', '/lib64'].flatMap((path) => {
    if (!existsSync(path)) return [];
    return lstatSync(path).isSymbolicLink() ? ['--symlink', readlinkSync(path), path] : ['--ro-bind', path, path];
  });
  const readOnly = [CHECKOUT, dirname(process.execPath)].flatMap((path) => ['--ro-bind', path, path]);
  return [
    ...['--unshare-pid', '--unshare-ipc', '--unshare-uts', '--new-session', '--clearenv'],
    ...['--ro-bind', '/usr', '/usr', ...system, '--ro-bind', '/etc', '/etc'],
    ...['--proc', '/proc', '--dev', '/dev', '--tmpfs', '/tmp', ...readOnly],
    ...['--bind', join(folder, 'files'), home, '--bind', join(folder, 'run'), '/run/double', '--chdir', home],
    ...['--setenv', 'PATH', `${dirname(process.execPath)}:/usr/bin:/bin`, '--setenv', 'HOME', home],
  ];
}

function parsed<T>(file: string): T | null {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as T;
  } catch {
    return null; // it does not exist, or is not complete yet
  }
}

function isRunning(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    return !['Z', 'X'].includes(stat.slice(stat.lastIndexOf(')') + 2, stat.lastIndexOf(')') + 3));
  } catch {
    return false;
  }
}
