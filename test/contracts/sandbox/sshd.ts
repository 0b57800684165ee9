// A real sshd on the loopback, with its own keys, settings and home. We start one process for each connection.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  accessSync,
  constants,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import type { SshSandboxSettings } from '../../../src/sandboxes/ssh/ssh-sandboxes.ts';

const PROGRAM = '/usr/sbin/sshd';

/** Why tests of it are skipped here. Null: they are not. */
export function whyNoSshd(): string | null {
  try {
    accessSync(PROGRAM, constants.X_OK);
    return null;
  } catch {
    return 'sshd is not installed ("apt-get install openssh-server")';
  }
}

/** A new pair of keys, in the format of key files. Not made by ssh2, because about one in 250 of its Ed25519 keys cannot be read. */
export function keyPair(
  type: 'ed25519' | 'ecdsa',
  passphrase = '',
): { readonly private: string; readonly public: string } {
  const folder = mkdtempSync(join(tmpdir(), 'throughline-keys-'));
  try {
    const file = join(folder, 'key');
    execFileSync('ssh-keygen', ['-q', '-t', type, '-N', passphrase, '-C', '', '-f', file]);
    return { private: readFileSync(file, 'utf8'), public: readFileSync(`${file}.pub`, 'utf8').trim() };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

export interface Sshd {
  readonly settings: Omit<SshSandboxSettings, 'processes'>;
  /** The same, as in a settings file. */
  readonly sandbox: { readonly root: string; readonly hostKey: string } & Record<string, unknown>;
  readonly folder: string;
  /** The home of the user there. */
  readonly home: string;
  /** The processes of all open connections. */
  connections(): number[];
  /** Signals the processes of every connection, but not the user's programs. */
  signal(signal: 'SIGKILL' | 'SIGSTOP' | 'SIGCONT'): number;
  [Symbol.asyncDispose](): Promise<void>;
}

export async function startSshd(): Promise<Sshd> {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'throughline-sshd-')));
  const home = join(folder, 'home');
  mkdirSync(home);
  if (process.getuid?.() === 0) mkdirSync('/run/sshd', { recursive: true });
  const [host, user] = [keyPair('ed25519'), keyPair('ed25519')];
  const file = (name: string, content: string) => {
    writeFileSync(join(folder, name), content, { mode: 0o600 });
    return join(folder, name);
  };
  const config = file(
    'config',
    `HostKey ${file('host', host.private)}
AuthorizedKeysFile ${file('authorized', user.public)}
SetEnv HOME=${home}
StrictModes no
UsePAM no
PidFile none
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin yes
`,
  );
  const children = new Set<ChildProcess>();
  const server = createServer({ pauseOnConnect: true }, (socket) => {
    const child = spawn(PROGRAM, ['-i', '-e', '-f', config], { stdio: [socket, socket, 'ignore'] });
    children.add(child);
    child.once('exit', () => children.delete(child));
    socket.destroy();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const connections = () => [...children].flatMap(({ pid }) => (pid === undefined ? [] : withSshdBelow(pid)));
  const signal: Sshd['signal'] = (name) => {
    const pids = connections();
    for (const pid of pids) kill(pid, name);
    return pids.length;
  };
  const settings = {
    ...{ host: '127.0.0.1', port: (server.address() as AddressInfo).port, user: userInfo().username },
    ...{ hostKey: host.public, knownHosts: join(folder, 'none'), identityFile: file('identity', user.private) },
    root: join(folder, 'sandboxes'),
  };
  return {
    folder,
    home,
    connections,
    signal,
    settings: { ...settings, place: 'test' },
    sandbox: { kind: 'ssh', ...settings },
    async [Symbol.asyncDispose]() {
      server.close();
      const gone = [...children].map((child) => once(child, 'exit'));
      signal('SIGKILL');
      await Promise.all(gone);
      rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 });
    },
  };
}

/** Ignores a process that has just ended. */
function kill(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/** A process of sshd, and its child processes that are also sshd. */
function withSshdBelow(pid: number): number[] {
  const below = readdirSync('/proc').filter((name) => /^\d+$/.test(name) && parentOf(name) === pid);
  return [pid, ...below.map(Number).flatMap(withSshdBelow)];
}

/** Null: it has ended, or is not a process of sshd. */
function parentOf(pid: string): number | null {
  try {
    const [, name, rest = ''] = /^\d+ \((.*)\) (.*)$/s.exec(readFileSync(`/proc/${pid}/stat`, 'utf8')) ?? [];
    return name?.startsWith('sshd') ? Number(rest.split(' ')[1]) : null;
  } catch {
    return null;
  }
}
