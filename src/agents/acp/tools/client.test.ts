import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  closeSync,
  existsSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { TestSandboxes, until } from '../../../../test/contracts/agent-sandbox.ts';
import { isAlive } from '../../../../test/contracts/liveness.ts';
import { localProcess } from '../../../core/process.ts';
import type { OpenSandbox } from '../../../ports/sandbox.ts';
import { type ClientSettings, SandboxClient } from './client.ts';

let sandboxes: TestSandboxes;
let sandbox: OpenSandbox;
let client: SandboxClient;
let released: [string, string][];
beforeEach(async () => {
  sandboxes = new TestSandboxes();
  sandbox = await sandboxes.sandbox();
  released = [];
  client = clientWith({ onTerminalReleased: (id, text) => released.push([id, text]) });
});
afterEach(async () => {
  await client.end();
  await sandboxes.dispose();
});

const agentWith = (mark: string) => localProcess({ pid: 1, started: '0', boot: 'b', namespace: 'n', mark });

function clientWith(settings: Partial<ClientSettings>): SandboxClient {
  const usual = { sandbox, directories: [], agent: agentWith('a-mark'), onTerminalReleased: () => {} };
  return new SandboxClient({
    ...usual,
    inTurn: () => true,
    toolsAllowed: () => true,
    drained: async () => {},
    ...settings,
  });
}

const at = (name: string) => join(sandbox.work, name);
const read = (path: string, more: object = {}) => client.handle('fs/read_text_file', { path, ...more });
const write = (path: string, content: string) => client.handle('fs/write_text_file', { path, content });
const terminal = async (command: string, more: object = {}) => {
  const params = { command: '/bin/sh', args: ['-c', command], ...more };
  return ((await client.handle('terminal/create', params)) as { terminalId: string }).terminalId;
};
const shown = (terminalId: string) => client.handle('terminal/output', { terminalId });

describe('files', () => {
  test('are written with their folders and read whole or in part', async () => {
    await write(at('a/b/file'), 'one\ntwo\nthree\n');
    expect(await read(at('a/b/file'))).toEqual({ content: 'one\ntwo\nthree\n' });
    expect(await read(at('a/b/file'), { line: 2, limit: 1 })).toEqual({ content: 'two' });
    chmodSync(at('a/b/file'), 0o751);
    await write(at('a/b/file'), 'x');
    expect(readFileSync(at('a/b/file'), 'utf8')).toBe('x');
    expect(statSync(at('a/b/file')).mode & 0o777).toBe(0o751);
    await expect(read(at('none'))).rejects.toMatchObject({ code: -32002 });
  });

  test('have the permissions that files of a project usually have', async () => {
    await write(at('a/file'), 'x');
    mkdirSync(at('b'));
    writeFileSync(at('b/file'), 'x');
    for (const name of ['', '/file']) expect(statSync(at(`a${name}`)).mode).toBe(statSync(at(`b${name}`)).mode);
  });

  test('outside of the sandbox cannot be reached by any path', async () => {
    const outside = join(sandboxes.root, 'outside');
    mkdirSync(outside);
    writeFileSync(join(outside, 'secret'), 'secret');
    symlinkSync(outside, at('folder'));
    symlinkSync(join(outside, 'secret'), at('link'));
    symlinkSync(join(outside, 'new'), at('dangling'));
    const ways = [
      join(outside, 'secret'),
      at('../../outside/secret'),
      at('folder/secret'),
      at('folder/new'),
      at('link'),
      at('dangling'),
      'link',
      `${at('x')}\0`,
    ];
    for (const path of ways) {
      await expect(read(path), path).rejects.toMatchObject({ code: -32602 });
      await expect(write(path, 'x'), path).rejects.toMatchObject({ code: -32602 });
    }
    expect(readFileSync(join(outside, 'secret'), 'utf8')).toBe('secret');
    expect(existsSync(join(outside, 'new'))).toBe(false);
  });

  test('a link that stays inside is followed; only files are read', async () => {
    writeFileSync(at('real'), 'here');
    symlinkSync(at('real'), at('link'));
    expect(await read(at('link'))).toEqual({ content: 'here' });
    await expect(read(sandbox.work)).rejects.toThrow('is a folder');
    await expect(write(sandbox.work, 'x')).rejects.toThrow('is a folder');
    // No process has the other end open, so opening it would block forever.
    execFileSync('mkfifo', [at('pipe')]);
    await expect(read(at('pipe'))).rejects.toThrow('is not a file');
    await expect(write(at('pipe'), 'x')).rejects.toThrow('is not a file');
  });

  test('a folder that is replaced by a link at any moment gives no access outside', async (context) => {
    if (process.platform !== 'linux') context.skip('only Linux can open a file from a folder that is open');
    const outside = join(sandboxes.root, 'outside');
    mkdirSync(outside);
    writeFileSync(join(outside, 'file'), 'secret');
    // In a loop until it is killed: a folder, nothing, a link to the other folder, nothing.
    const swap = spawn(
      process.execPath,
      [
        '-e',
        `const { mkdirSync, rmSync, symlinkSync, writeFileSync } = require('node:fs');
        const tried = (what) => { try { what() } catch {} };
        for (;;) {
          tried(() => { mkdirSync('folder'); writeFileSync('folder/file', 'inside'); });
          tried(() => rmSync('folder', { recursive: true }));
          tried(() => symlinkSync(${JSON.stringify(outside)}, 'folder'));
          tried(() => rmSync('folder'));
        }`,
      ],
      { cwd: sandbox.work, stdio: 'ignore' },
    );
    const seen = new Set<string>();
    try {
      for (let n = 0; n < 500; n += 1) {
        const tried = [
          read(at('folder/file')),
          write(at(`folder/made-${n}`), 'x'),
          write(at(`folder/sub-${n}/made`), 'x'),
        ];
        const [content] = await Promise.allSettled(tried);
        if (content?.status === 'fulfilled') seen.add((content.value as { content: string }).content);
      }
    } finally {
      swap.kill('SIGKILL');
      await once(swap, 'exit');
    }
    expect(seen).not.toContain('secret');
    expect(readdirSync(outside)).toEqual(['file']);
  });

  test('that are too large are not read', async () => {
    const file = openSync(at('large'), 'w');
    ftruncateSync(file, 32 * 2 ** 20 + 1);
    closeSync(file);
    await expect(read(at('large'), { line: 1, limit: 1 })).rejects.toThrow('larger than 33554432 bytes');
  });

  test('in additional directories can be used', async () => {
    const more = join(sandboxes.root, 'more');
    mkdirSync(more);
    const wider = clientWith({ directories: [more] });
    await wider.handle('fs/write_text_file', { path: join(more, 'file'), content: 'x' });
    expect(readFileSync(join(more, 'file'), 'utf8')).toBe('x');
  });
});

describe('terminals', () => {
  test('run in the sandbox, with the requested variables, and report how they ended', async () => {
    mkdirSync(at('sub'));
    const env = [{ name: 'GREETING', value: 'hello' }];
    const id = await terminal('pwd; echo $GREETING; exit 3', { cwd: at('sub'), env });
    const exit = { exitCode: 3, signal: null };
    expect(await client.handle('terminal/wait_for_exit', { terminalId: id })).toEqual(exit);
    expect(await shown(id)).toEqual({ output: `${at('sub')}\nhello\n`, truncated: false, exitStatus: exit });
    await expect(terminal('true', { cwd: sandboxes.root })).rejects.toMatchObject({ code: -32602 });
    await expect(terminal('true', { cwd: at('none') })).rejects.toThrow('no longer exists');
  });

  test('a missing program is reported as a shell reports it', async () => {
    const created = await client.handle('terminal/create', { command: 'no-such-program', args: ['x'] });
    expect(await client.handle('terminal/wait_for_exit', created)).toMatchObject({ exitCode: 127 });
    expect(await client.handle('terminal/output', created)).toMatchObject({
      output: expect.stringContaining('no-such-program'),
    });
  });

  test('a whole command line is given to a shell', async () => {
    const { terminalId } = (await client.handle('terminal/create', { command: 'echo a && echo b' })) as {
      terminalId: string;
    };
    await client.handle('terminal/wait_for_exit', { terminalId });
    expect(await shown(terminalId)).toMatchObject({ output: 'a\nb\n' });
  });

  test('only the end of a long output is kept, cut between two characters', async () => {
    const id = await terminal('i=0; while [ $i -lt 100 ]; do printf "ü"; i=$((i+1)); done; printf x', {
      outputByteLimit: 8,
    });
    await client.handle('terminal/wait_for_exit', { terminalId: id });
    expect(await shown(id)).toMatchObject({ output: 'üüüx', truncated: true });
  });

  test('the kept output is limited, whatever limit the agent asks for', async () => {
    for (const more of [{}, { outputByteLimit: 2 ** 40 }]) {
      const id = await terminal('head -c 3000000 /dev/zero | tr "\\0" x; printf end', more);
      await client.handle('terminal/wait_for_exit', { terminalId: id });
      const { output, truncated } = (await shown(id)) as { output: string; truncated: boolean };
      expect([output.length, output.slice(-4), truncated]).toEqual([2 ** 20, 'xend', true]);
    }
  });

  test('are ended when they are killed or released, and their text is passed on', async () => {
    const pidOf = async (id: string) => {
      await until('it has begun', async () => ((await shown(id)) as { output: string }).output !== '');
      return Number(((await shown(id)) as { output: string }).output);
    };
    const [killed, left, kept] = [
      await terminal('echo $$; sleep 60'),
      await terminal('echo $$; sleep 60'),
      await terminal('echo $$; sleep 60'),
    ];
    const pids = [await pidOf(killed), await pidOf(left), await pidOf(kept)];
    await client.handle('terminal/kill', { terminalId: killed });
    expect(await shown(killed)).toMatchObject({ exitStatus: { signal: 'SIGKILL' } });
    await client.handle('terminal/release', { terminalId: left });
    expect(released).toEqual([[left, `${pids[1]}\n`]]);
    await expect(shown(left)).rejects.toMatchObject({ code: -32002 });
    await client.end();
    for (const pid of pids) expect(isAlive(pid)).toBe(false);
  });

  test('carry the mark of the agent, so that they are found after a crash', async () => {
    const marked = clientWith({ agent: agentWith('the-mark') });
    const created = await marked.handle('terminal/create', { command: 'printenv', args: ['THROUGHLINE_MARK'] });
    await marked.handle('terminal/wait_for_exit', created);
    expect(await marked.handle('terminal/output', created)).toMatchObject({ output: 'the-mark\n' });
    await marked.end();
  });
});

test('between turns nothing is run or written; files and running terminals can be read', async () => {
  let inTurn = true;
  client = clientWith({ inTurn: () => inTurn });
  await write(at('file'), 'text');
  const id = await terminal('sleep 600');
  inTurn = false;
  await expect(write(at('file'), 'other')).rejects.toThrow('only allowed during a turn');
  await expect(terminal('true')).rejects.toThrow('only allowed during a turn');
  expect(await read(at('file'))).toEqual({ content: 'text' });
  expect(await shown(id)).toMatchObject({ output: '' });
  await client.handle('terminal/release', { terminalId: id });
});

test('without tools nothing is done; an unknown method is answered as such', async () => {
  await expect(client.handle('fs/delete_file', {})).rejects.toMatchObject({ code: -32601 });
  client = clientWith({ toolsAllowed: () => false });
  await expect(write(at('file'), 'x')).rejects.toMatchObject({ code: -32600 });
  await expect(terminal('touch file')).rejects.toMatchObject({ code: -32600 });
  expect(existsSync(at('file'))).toBe(false);
  rmSync(at('file'), { force: true });
});

describe('many requests of an agent', () => {
  test('are served in order', async () => {
    const asked = ['one', 'two', 'three'].flatMap((text) => [write(at('file'), text), read(at('file'))]);
    const done = await Promise.all(asked);
    expect(done.filter((_, i) => i % 2 === 1)).toEqual(['one', 'two', 'three'].map((content) => ({ content })));
  });

  test('wait until it has read the earlier answers, and are not served after it has ended', async () => {
    const gate = Promise.withResolvers<void>();
    const slow = clientWith({ drained: () => gate.promise });
    const asked = slow.handle('fs/write_text_file', { path: at('file'), content: 'x' });
    const late = slow.handle('fs/write_text_file', { path: at('late'), content: 'x' });
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(existsSync(at('file'))).toBe(false);
    gate.resolve();
    await asked;
    expect(existsSync(at('file'))).toBe(true);
    await slow.end();
    await late.catch(() => {});
    await expect(slow.handle('fs/write_text_file', { path: at('after'), content: 'x' })).rejects.toThrow('is over');
    expect(existsSync(at('after'))).toBe(false);
  });

  test('a terminal that is created while the agent ends does not outlive it', async () => {
    const gate = Promise.withResolvers<void>();
    const spawn: OpenSandbox['spawn'] = async (...args) => {
      const child = await sandbox.spawn(...args);
      await gate.promise;
      return child;
    };
    const slow = clientWith({ sandbox: { ...sandbox, spawn } });
    const making = slow.handle('terminal/create', { command: 'echo $$ > pid; exec sleep 60' });
    const pid = () => (existsSync(at('pid')) ? Number(readFileSync(at('pid'), 'utf8')) : 0);
    await until('it runs', () => pid() > 0);
    await slow.end();
    gate.resolve();
    await making;
    await until('it has ended', () => !isAlive(pid()));
  });

  test('open a hundred terminals at most', async () => {
    const all = await Promise.all(Array.from({ length: 100 }, () => terminal('true')));
    await expect(terminal('true')).rejects.toThrow('100 terminals are open');
    await client.handle('terminal/release', { terminalId: all[0] });
    await terminal('true');
  });
});
