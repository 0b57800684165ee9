import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { until } from '../../../test/contracts/agent-sandbox.ts';
import { identityOf, isAlive, systemProcesses as processes } from '../../../test/contracts/liveness.ts';
import type { Child, OpenSandbox } from '../../ports/sandbox.ts';
import { directorySandboxes } from './directory-sandboxes.ts';

let base: string;
let root: string;
const children: Child[] = [];
beforeEach(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), 'throughline-sandbox-')));
  root = join(base, 'sandboxes');
});
afterEach(async () => {
  for (const child of children.splice(0)) {
    child.kill('SIGKILL');
    await child.exited;
  }
  rmSync(base, { recursive: true, force: true });
});

const open = (id: string, cwd: string | null = null) =>
  directorySandboxes({ root, place: 'here', processes }).open(id, { cwd });
const refused = (message?: RegExp) =>
  expect.objectContaining({ code: 'refused', message: expect.stringMatching(message ?? /./) });

describe('deleting', () => {
  const sandboxes = () => directorySandboxes({ root, place: 'here', processes });

  test('removes all of one sandbox and nothing of another, and can be repeated', async () => {
    const [one, other] = [await open('one'), await open('other')];
    for (const { work, state } of [one, other])
      for (const path of [work, state]) writeFileSync(join(path, 'file'), 'x');
    expect(await sandboxes().find('one')).toBe(join(root, 'one'));
    await sandboxes().remove('one');
    await sandboxes().remove('one');
    expect(readdirSync(root)).toEqual(['other']);
    expect(readFileSync(join(other.work, 'file'), 'utf8')).toBe('x');
    expect(await sandboxes().find('one')).toBeNull();
    expect(await sandboxes().find('other')).toBe(join(root, 'other'));
  });

  test('removes links but never their targets', async () => {
    const outside = join(base, 'outside');
    mkdirSync(outside);
    writeFileSync(join(outside, 'precious'), 'kept');
    mkdirSync(join(root, 'linked'), { recursive: true });
    symlinkSync(outside, join(root, 'linked', 'work'));
    const { work, state } = await open('inside');
    symlinkSync(outside, join(work, 'folder'));
    symlinkSync(join(outside, 'precious'), join(state, 'file'));
    symlinkSync('/nowhere', join(state, 'broken'));
    symlinkSync(outside, join(root, 'whole'));
    for (const id of ['linked', 'inside', 'whole']) {
      expect(await sandboxes().find(id)).toBe(join(root, id));
      await sandboxes().remove(id);
    }
    expect(readdirSync(root)).toEqual([]);
    expect(readFileSync(join(outside, 'precious'), 'utf8')).toBe('kept');
  });

  test.each(['', '.', '..', '../other', 'a/b', '/etc'])('refuses %j, which is not an id', async (id) => {
    await open('one');
    await expect(sandboxes().remove(id)).rejects.toEqual(refused(/not a valid sandbox id/));
    await expect(sandboxes().find(id)).rejects.toEqual(refused(/not a valid sandbox id/));
    expect(readdirSync(root)).toEqual(['one']);
  });

  test('finds none below a root that does not exist', async () => {
    expect(await sandboxes().find('one')).toBeNull();
    await sandboxes().remove('one');
    expect(existsSync(root)).toBe(false);
  });
});

describe('opening', () => {
  test('creates private directories for the work and the state', async () => {
    const sandbox = await open('one');
    expect(sandbox).toMatchObject({ id: 'one', work: join(root, 'one', 'work'), state: join(root, 'one', 'state') });
    for (const path of [root, join(root, 'one'), sandbox.work, sandbox.state])
      expect(statSync(path).mode & 0o777).toBe(0o700);
  });

  test('repeatedly gives the same directories: no part of a path is added twice', async () => {
    const first = await open('one');
    writeFileSync(join(first.work, 'kept'), 'yes');
    for (let n = 0; n < 5; n += 1) {
      const again = await open('one');
      expect([again.work, again.state]).toEqual([first.work, first.state]);
    }
    expect(existsSync(join(root, 'one', 'one'))).toBe(false);
    expect(existsSync(join(first.work, 'work'))).toBe(false);
    expect(readFileSync(join(first.work, 'kept'), 'utf8')).toBe('yes');
  });

  test('many times at the same moment works', async () => {
    const sandboxes = await Promise.all(Array.from({ length: 20 }, () => open('one')));
    expect(new Set(sandboxes.map((sandbox) => sandbox.work)).size).toBe(1);
  });

  test('completes a sandbox that was created only in part', async () => {
    mkdirSync(join(root, 'one', 'state'), { recursive: true });
    expect(statSync((await open('one')).work).isDirectory()).toBe(true);
  });

  test('keeps a link to a directory, and works in the directory itself', async () => {
    const elsewhere = join(base, 'elsewhere');
    mkdirSync(elsewhere);
    mkdirSync(join(root, 'one'), { recursive: true });
    symlinkSync(elsewhere, join(root, 'one', 'work'));
    expect((await open('one')).work).toBe(elsewhere);
    expect((await open('one')).work).toBe(elsewhere);
  });

  test.each(['work', 'state'])('refuses when a file or a broken link is in the place of %s', async (name) => {
    mkdirSync(join(root, 'one'), { recursive: true });
    mkdirSync(join(root, 'two'), { recursive: true });
    writeFileSync(join(root, 'one', name), 'mine');
    symlinkSync(join(base, 'nowhere'), join(root, 'two', name));
    await expect(open('one')).rejects.toThrow(refused(/something else has its name/));
    await expect(open('two')).rejects.toThrow(refused(/something else has its name/));
    expect(readFileSync(join(root, 'one', name), 'utf8')).toBe('mine');
  });

  test('refuses when the root is a file', async () => {
    writeFileSync(root, 'mine');
    await expect(open('one')).rejects.toThrow(refused(/something else has its name/));
  });

  test.each(['', '.', '..', '../one', 'a/b', '/etc', 'a.b', 'a\0b', 'ä', 'x'.repeat(65), 'agents/agents'])(
    'refuses %j, which could name another path',
    async (id) => {
      await expect(open(id)).rejects.toThrow(refused(/not a valid sandbox id/));
      expect(existsSync(root)).toBe(false);
    },
  );
});

describe('a working directory that the caller named', () => {
  test('is used with its links resolved, and never created', async () => {
    const project = join(base, 'project');
    mkdirSync(project);
    symlinkSync(project, join(base, 'link'));
    const sandbox = await open('one', join(base, 'link'));
    expect(sandbox.work).toBe(project);
    expect(sandbox.state).toBe(join(root, 'one', 'state'));
  });

  test('is refused when it is missing, a file, or relative', async () => {
    writeFileSync(join(base, 'file'), '');
    await expect(open('one', join(base, 'missing'))).rejects.toThrow(refused(/does not exist/));
    await expect(open('one', join(base, 'file'))).rejects.toThrow(refused(/not a directory/));
    await expect(open('one', 'project')).rejects.toThrow(refused(/absolute/));
    expect(existsSync(join(base, 'missing'))).toBe(false);
  });

  test('can be checked before a sandbox is opened', async () => {
    const { checkDirectory } = directorySandboxes({ root, place: 'here', processes });
    symlinkSync(base, join(base, 'link'));
    writeFileSync(join(base, 'file'), '');
    expect(await checkDirectory(join(base, 'link'))).toEqual({ path: join(base, 'link'), real: base, project: base });
    expect((await checkDirectory('.')).real).toBe(realpathSync('.'));
    await expect(checkDirectory(join(base, 'missing'))).rejects.toThrow(refused(/does not exist/));
    await expect(checkDirectory(join(base, 'file'))).rejects.toThrow(refused(/not a directory/));
    expect(existsSync(root)).toBe(false);
  });
});

describe('a program', () => {
  async function start(sandbox: OpenSandbox, script: string, env: Record<string, string> = {}): Promise<Child> {
    const child = await sandbox.spawn([process.execPath, '-e', script], { env });
    children.push(child);
    return child;
  }

  async function textOf(stream: AsyncIterable<Uint8Array>): Promise<string> {
    const chunks: Uint8Array[] = [];
    for await (const chunk of stream) chunks.push(chunk);
    return Buffer.concat(chunks).toString();
  }

  test('runs in the working directory, and its input, outputs and end arrive', async () => {
    const sandbox = await open('one');
    const child = await start(
      sandbox,
      `process.stdin.on('data', (d) => { console.log(process.cwd() + d); console.error('oh'); process.exit(3) })`,
    );
    expect(child.alive).toBe(true);
    child.stdin.write(' hello');
    const [out, err] = await Promise.all([textOf(child.stdout), textOf(child.stderr)]);
    expect([out, err]).toEqual([`${sandbox.work} hello\n`, 'oh\n']);
    expect(await child.exited).toEqual({ code: 3, signal: null });
    expect(child.alive).toBe(false);
    child.stdin.write('into the void');
    child.kill('SIGKILL');
  });

  test('gets the allowed part of our environment and what it was given, and nothing else', async () => {
    process.env.THROUGHLINE_TEST_SECRET = 'secret';
    process.env.LC_TEST = 'locale';
    try {
      const child = await start(await open('one'), 'console.log(JSON.stringify(process.env))', { GIVEN: 'yes' });
      const env = JSON.parse(await textOf(child.stdout));
      expect(env).toMatchObject({ PATH: process.env.PATH, LC_TEST: 'locale', GIVEN: 'yes' });
      const others = Object.keys(env).filter(
        (name) => !/^(PATH|HOME|USER|LOGNAME|SHELL|LANG|LC_.*|TERM|TZ|TMPDIR|GIVEN|THROUGHLINE_MARK)$/.test(name),
      );
      expect(others.filter((name) => !name.startsWith('__CF'))).toEqual([]); // macOS adds one of these itself
    } finally {
      delete process.env.THROUGHLINE_TEST_SECRET;
      delete process.env.LC_TEST;
    }
  });

  test('is never started through a shell', async () => {
    const sandbox = await open('one');
    const child = await sandbox.spawn(
      [process.execPath, '-e', 'console.log(process.argv[1])', '$(touch made); `touch made`'],
      { env: {} },
    );
    children.push(child);
    expect(await textOf(child.stdout)).toBe('$(touch made); `touch made`\n');
    expect(existsSync(join(sandbox.work, 'made'))).toBe(false);
  });

  test('that does not exist, or may not be executed, is not available, and the error says what to do', async () => {
    const sandbox = await open('one');
    writeFileSync(join(sandbox.work, 'plain'), 'no program');
    const unavailable = (message: RegExp) =>
      expect.objectContaining({
        code: 'agent_unavailable',
        message: expect.stringMatching(message),
        hint: expect.any(String),
      });
    await expect(sandbox.spawn(['no-such-program-here'], { env: {} })).rejects.toThrow(
      unavailable(/no-such-program-here was not found/),
    );
    await expect(sandbox.spawn([join(sandbox.work, 'plain')], { env: {} })).rejects.toThrow(
      unavailable(/is not executable/),
    );
    rmSync(sandbox.work, { recursive: true });
    await expect(sandbox.spawn([process.execPath], { env: {} })).rejects.toThrow(
      unavailable(/working directory .* no longer exists/),
    );
  });

  const FAMILY = `
    const child = require('node:child_process').spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'inherit' });
    console.log(child.pid);`;
  const ENDS_WITH_ITS_INPUT = "process.stdin.resume().once('end', () => process.exit(0))";
  async function family(rest: string, program = FAMILY): Promise<{ child: Child; member: number }> {
    const child = await start(await open('one'), program + rest);
    const reader = child.stdout[Symbol.asyncIterator]();
    const { value } = await reader.next();
    void (async () => {
      try {
        while (!(await reader.next()).done);
      } catch {} // the pipe was cut
    })();
    return { child, member: Number(Buffer.from(value).toString()) };
  }

  test.skipIf(process.platform !== 'linux')(
    'that another process has killed is not alive, also before its exit was reported',
    async () => {
      const child = await start(await open('one'), 'setInterval(() => {}, 1000)');
      const { pid } = identityOf(child.identity);
      expect(child.alive).toBe(true);
      process.kill(pid, 'SIGKILL');
      // Without a pause for events: Node cannot report the exit meanwhile.
      const deadline = performance.now() + 5_000;
      while (isAlive(pid) && performance.now() < deadline);
      expect(child.alive).toBe(false);
    },
  );

  test('is killed together with what it has started', async () => {
    const { child, member } = await family('setInterval(() => {}, 1000)');
    expect(isAlive(member)).toBe(true);
    child.kill('SIGKILL');
    expect(await child.exited).toEqual({ code: null, signal: 'SIGKILL' });
    await expect.poll(() => isAlive(member)).toBe(false);
  });

  // As Claude starts a tool: in a session of its own, which no signal to the agent's group reaches.
  const APART = FAMILY.replace("stdio: 'inherit'", "stdio: 'ignore', detached: true");
  test.for([
    ['is killed', 'setInterval(() => {}, 1000)', 'SIGKILL'],
    ['ends by itself', ENDS_WITH_ITS_INPUT, null],
  ] as const)('that %s also ends what it started outside its process group', async ([_, rest, signal], context) => {
    if (process.platform !== 'linux') context.skip('only Linux shows the marks of processes, in /proc');
    const { child, member } = await family(rest, APART);
    expect(isAlive(member)).toBe(true);
    if (signal === null) child.stdin.end();
    else child.kill(signal);
    await child.exited;
    await expect.poll(() => isAlive(member)).toBe(false);
  });

  test('output of an ended program is kept until it was read', async () => {
    const child = await start(await open('one'), `process.stdout.write('x'.repeat(100_000))`);
    const reader = child.stdout[Symbol.asyncIterator]();
    let read = 0;
    for (let next = await reader.next(); !next.done; next = await reader.next()) {
      read += next.value.length;
      if (child.alive) await until('it has ended', () => !child.alive);
      await new Promise((resolve) => setTimeout(resolve, 1_500)); // like a reader that waits for the disk
    }
    expect(read).toBe(100_000);
  });

  test.each([
    ['much', 2 ** 16, 1],
    ['little', 1, 100],
  ])('has its output closed after its end, even if a program left behind writes %s', async (_, length, everyMs) => {
    const talker = `setInterval(() => process.stdout.write('x'.repeat(${length})), ${everyMs})`;
    const script = `
      const { THROUGHLINE_MARK: _, ...env } = process.env;
      const child = require('node:child_process').spawn(process.execPath, ['-e', ${JSON.stringify(talker)}], { stdio: ['ignore', 'inherit', 'ignore'], detached: true, env });
      console.error(child.pid); child.unref(); setTimeout(() => process.exit(0), 100)`;
    const child = await start(await open('one'), script);
    const cutOff = textOf(child.stdout).catch(() => '');
    const [pid] = await Promise.all([textOf(child.stderr), cutOff, child.exited]);
    try {
      process.kill(Number(pid), 'SIGKILL');
    } catch (error) {
      // It ends by itself when it notices that nobody reads its output.
      expect(error).toMatchObject({ code: 'ESRCH' });
    }
  });

  test('that ends by itself leaves nothing behind, and nothing keeps its output open', async () => {
    const { child, member } = await family(ENDS_WITH_ITS_INPUT);
    child.stdin.end();
    expect(await child.exited).toEqual({ code: 0, signal: null });
    await expect.poll(() => isAlive(member)).toBe(false);
  });
});

test('the end of the input reaches a program at once', async () => {
  const { work, spawn } = await open('one');
  const read = join(work, 'read');
  const child = await spawn(['sh', '-c', `cat > ${read}.part && mv ${read}.part ${read}`], { env: {} });
  children.push(child);
  const taken = new Promise<void>((resolve) => void child.stdin.write('a line\n', resolve));
  child.stdin.end();
  // The event loop is blocked here, as while a turn is stored.
  const pause = new Int32Array(new SharedArrayBuffer(4));
  for (let i = 0; i < 500 && !existsSync(read); i += 1) Atomics.wait(pause, 0, 0, 10);
  expect(readFileSync(read, 'utf8')).toBe('a line\n');
  await taken;
});
