import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import { PROGRAM } from '../../program.ts';
import { CliHome } from './process.ts';

const home = new CliHome();
afterAll(() => home.remove());

/** Runs the executable in a shell, with this redirection of its output. */
function runRedirected(redirection: string, ...args: string[]) {
  const argv = ['-c', `"$0" "$@" ${redirection}`, process.execPath, PROGRAM, ...args];
  const { status, stderr } = spawnSync('/bin/sh', argv, { env: home.environment(), encoding: 'utf8' });
  return { status, stderr };
}

describe('a full disk behind stdout', () => {
  beforeEach((context) => {
    if (!existsSync('/dev/full')) context.skip('needs /dev/full');
  });

  test('is an error, so that a part of an export is not taken for the whole', async () => {
    await home.ok('send', 'chat', 'hello');
    expect(runRedirected('> /dev/full', 'export', 'chat', '--quiet')).toEqual({
      status: 1,
      stderr:
        'throughline: Cannot write everything to stdout (ENOSPC). Free some space there, and run the command again.\n',
    });
    const { stderr } = runRedirected('> /dev/full', 'list', '--json');
    expect(JSON.parse(stderr)).toMatchObject({ error: { code: 'storage_full' } });
  });

  test.each(['--help', '--version'])('is one line without a stack with %s', (option) => {
    const { status, stderr } = runRedirected('> /dev/full', option);
    expect({ status, lines: stderr.trim().split('\n').length }).toEqual({ status: 1, lines: 1 });
  });
});

test('a reader that closes the pipe of --help causes no error', () => {
  expect(runRedirected('| true', '--help')).toEqual({ status: 0, stderr: '' });
});
