// Connections by ssh: the key of the machine, our key, and a machine that does not answer any more.
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { processesAt } from '../../../src/host/processes.ts';
import type { Child, Sandboxes } from '../../../src/ports/sandbox.ts';
import { type SshSandboxSettings, sshSandboxes } from '../../../src/sandboxes/ssh/ssh-sandboxes.ts';
import { until } from '../agent-sandbox.ts';
import { textOf } from './around.ts';
import { keyPair, type Sshd, startSshd, whyNoSshd } from './sshd.ts';

const STARTER = fileURLToPath(new URL('ssh-starter.ts', import.meta.url));
const missing = whyNoSshd();

let sshd: Sshd;
if (missing === null) {
  beforeAll(async () => {
    sshd = await startSshd();
  });
  afterAll(() => sshd[Symbol.asyncDispose]());
}

const sandboxesWith = (changes: Partial<SshSandboxSettings>): Sandboxes =>
  sshSandboxes({ ...sshd.settings, processes: processesAt('test'), ...changes });

/** Why a sandbox cannot be opened. */
async function refusal(changes: Partial<SshSandboxSettings>): Promise<{ message: string; hint: string }> {
  const error = await sandboxesWith(changes)
    .open('one', { cwd: null })
    .then(
      () => expect.unreachable('it was opened'),
      (thrown) => thrown,
    );
  expect(error).toMatchObject({ name: 'ThroughlineError', code: 'agent_unavailable' });
  return error;
}

const file = (name: string, content: string, mode = 0o600) => {
  const path = join(sshd.folder, name);
  writeFileSync(path, content, { mode });
  return path;
};

/** A test of a real sshd. */
const shown = (name: string, run: () => Promise<void>) =>
  test(name, async (context) => {
    if (missing !== null) context.skip(missing);
    await run();
  });

describe('the key of the machine', () => {
  shown('is refused if it is unknown, with the key and what to do', async () => {
    const { message, hint } = await refusal({ hostKey: null });
    expect(message).toMatch(/^The key of .+ is not known: ssh-ed25519 SHA256:/);
    expect(hint).toContain(sshd.settings.hostKey ?? 'none');
  });

  shown('is refused if it has changed', async () => {
    const other = keyPair('ed25519').public;
    expect((await refusal({ hostKey: other })).message).toMatch(/has changed: it is ssh-ed25519 SHA256:/);
    const knownHosts = file('changed', `[127.0.0.1]:${sshd.settings.port} ${other}\n`);
    const { message, hint } = await refusal({ hostKey: null, knownHosts });
    expect(message).toMatch(/has changed/);
    expect(hint).toContain(knownHosts);
  });

  shown('is refused if only another kind of key is known', async () => {
    const hostKey = keyPair('ecdsa').public;
    expect((await refusal({ hostKey })).message).toMatch(/has no key of the known kind/);
  });

  shown('is accepted if it is in the file of known hosts', async () => {
    const line = `[127.0.0.1]:${sshd.settings.port} ${sshd.settings.hostKey}\n`;
    const knownHosts = file('known', `# a comment\n${line}`);
    const sandbox = await sandboxesWith({ hostKey: null, knownHosts }).open('one', { cwd: null });
    expect(sandbox.work).toBe(join(sshd.settings.root, 'one', 'work'));
  });
});

describe('our key', () => {
  shown('is refused if the machine does not accept it, it cannot be used, or others can read it', async () => {
    const identityFile = file('another', keyPair('ed25519').private);
    expect((await refusal({ identityFile })).message).toContain(`does not accept the key ${identityFile}`);
    const { hint } = await refusal({
      identityFile: file('encrypted', keyPair('ed25519', 'a passphrase').private),
    });
    expect(hint).toContain('ssh-add');
    expect((await refusal({ identityFile: file('open', 'x', 0o644) })).hint).toContain('chmod 600');
    expect((await refusal({ identityFile: join(sshd.folder, 'none') })).message).toContain('ENOENT');
  });

  shown('comes from the ssh agent if no file is named', async () => {
    const before = process.env.SSH_AUTH_SOCK;
    onTestFinished(() => {
      if (before === undefined) delete process.env.SSH_AUTH_SOCK;
      else process.env.SSH_AUTH_SOCK = before;
    });
    delete process.env.SSH_AUTH_SOCK;
    expect((await refusal({ identityFile: null })).message).toContain('no ssh agent runs');
    const socket = join(sshd.folder, 'agent');
    const agent = spawn('ssh-agent', ['-D', '-a', socket], { stdio: 'ignore' });
    onTestFinished(() => void agent.kill());
    process.env.SSH_AUTH_SOCK = socket;
    // The status 2 means that it cannot be reached, 1 that it has no key.
    await until('the ssh agent answers', () => spawnSync('ssh-add', ['-l'], { stdio: 'ignore' }).status === 1);
    expect((await refusal({ identityFile: null })).message).toContain('accepts no key of the ssh agent');
    execFileSync('ssh-add', ['-q', sshd.settings.identityFile ?? ''], { stdio: 'ignore' });
    await sandboxesWith({ identityFile: null }).open('one', { cwd: null });
  });

  shown('and the environment of an agent are in no argument of a program there', async () => {
    const secret = `secret-${process.pid}-${Date.now()}`;
    const sandbox = await sandboxesWith({}).open('one', { cwd: null });
    const child = await sandbox.spawn(['/bin/sh', '-c', 'printf %s "$KEY"; read -r go'], { env: { KEY: secret } });
    const seen = readdirSync('/proc').filter((pid) => /^\d+$/.test(pid) && commandLine(pid).includes(secret));
    expect(seen).toEqual([]);
    child.stdin.end();
    expect(await textOf(child.stdout)).toBe(secret);
    await child.exited;
  });
});

describe('a machine', () => {
  shown(
    'that does not listen, or does not exist, is unavailable, and other kinds of processes are unknown',
    async () => {
      const gone = await startSshd();
      await gone[Symbol.asyncDispose]();
      const sandboxes = sandboxesWith({ port: gone.settings.port });
      expect((await refusal({ port: gone.settings.port })).message).toContain('it refuses connections');
      const identity = { kind: 'ssh', id: JSON.stringify({ place: 'test', pid: 1 }), label: '' };
      expect([await sandboxes.status(identity), await sandboxes.end(identity)]).toEqual(['unknown', 'unknown']);
      for (const other of [
        { ...identity, kind: 'local' },
        { ...identity, id: '{"place":"elsewhere","pid":1}' },
      ]) {
        expect(await sandboxesWith({}).end(other)).toBe('unknown');
      }
    },
  );

  shown('gets more connections for more programs, and is connected again when they are lost', async () => {
    const sandboxes = sandboxesWith({});
    const sandbox = await sandboxes.open('one', { cwd: null });
    const children: Child[] = [];
    for (let i = 0; i < 8; i += 1) children.push(await sandbox.spawn(['/bin/cat'], { env: {} }));
    for (const [i, child] of children.entries()) child.stdin.write(`${i}\n`);
    for (const child of children.slice(0, 7)) child.stdin.end();
    expect(await Promise.all(children.slice(0, 7).map(({ stdout }) => textOf(stdout)))).toEqual(
      Array.from({ length: 7 }, (_, i) => `${i}\n`),
    );
    const last = children[7] as Child;
    const output = last.stdout[Symbol.asyncIterator]();
    expect(String((await output.next()).value)).toBe('7\n');
    expect(sshd.signal('SIGKILL')).toBeGreaterThan(1);
    // Its own connection was lost, so it was ended over another one.
    const ended = [
      { value: undefined, done: true },
      { code: null, signal: null },
    ];
    expect(await Promise.all([output.next(), last.exited])).toEqual(ended);
    expect(await sandboxes.status(last.identity)).toBe('dead');
  });

  shown('that gets nothing from us any more ends the programs that we started there, with their children', async () => {
    const settings = { ...sshd.settings, silenceSeconds: 6 };
    const deaf = `trap '' HUP TERM; setsid sh -c 'trap "" HUP TERM; exec sleep 100000' & sleep 100000`;
    const ours = spawn(process.execPath, [STARTER, JSON.stringify(settings), '/bin/sh', '-c', deaf], { stdio: 'pipe' });
    onTestFinished(() => void ours.kill('SIGKILL'));
    let stored = '';
    for await (const line of createInterface(ours.stdout)) {
      stored = line;
      break;
    }
    const { mark } = JSON.parse(JSON.parse(stored).id);
    await until('it runs with its child', () => withMark(mark).length >= 3);
    ours.kill('SIGSTOP');
    await until('nothing of it runs', () => withMark(mark).length === 0);
  });

  shown('that does not answer any more is given up, and its programs are ended', async () => {
    const sandboxes = sandboxesWith({ silenceSeconds: 6 });
    const sandbox = await sandboxes.open('one', { cwd: null });
    const child = await sandbox.spawn(['/bin/sh', '-c', `trap '' HUP TERM; sleep 100000; sleep 100000`], { env: {} });
    const frozen = sshd.signal('SIGSTOP');
    expect(frozen).toBeGreaterThan(0);
    expect(await child.exited).toEqual({ code: null, signal: null });
    expect(await sandboxes.status(child.identity)).toBe('dead');
  });
});

function commandLine(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'latin1');
  } catch {
    return ''; // it has ended
  }
}

function withMark(mark: string): string[] {
  return readdirSync('/proc').filter((pid) => {
    try {
      return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/environ`, 'latin1').includes(mark);
    } catch {
      return false; // it has ended, or belongs to another user
    }
  });
}
