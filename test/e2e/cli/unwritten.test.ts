import { spawnSync } from 'node:child_process';
import { afterAll, describe, expect, test } from 'vitest';
import { PROGRAM } from '../../program.ts';
import { CliHome } from './process.ts';

const home = new CliHome();
afterAll(() => home.remove());

/** Runs the executable with what a shell does to its output. */
function withOutput(shell: string, ...args: string[]) {
  const argv = ['-c', `"$0" "$@" ${shell}`, process.execPath, PROGRAM, ...args];
  const { status, stderr } = spawnSync('/bin/sh', argv, { env: home.environment(), encoding: 'utf8' });
  return { status, stderr };
}

describe.runIf(process.platform === 'linux')('a disk that is full where stdout goes', () => {
  test('is an error: half of an export does not pass for whole', async () => {
    await home.ok('send', 'chat', 'hello');
    expect(withOutput('> /dev/full', 'export', 'chat', '--quiet')).toEqual({
      status: 1,
      stderr:
        'throughline: Cannot write everything to stdout (ENOSPC). Free some space there, and run the command again.\n',
    });
    const { stderr } = withOutput('> /dev/full', 'list', '--json');
    expect(JSON.parse(stderr)).toMatchObject({ error: { code: 'storage_full' } });
  });

  test.each(['--help', '--version'])('%s: a sentence, and no stack', (option) => {
    const { status, stderr } = withOutput('> /dev/full', option);
    expect({ status, lines: stderr.trim().split('\n').length }).toEqual({ status: 1, lines: 1 });
  });
});

test('help that nobody reads is no fault', () => {
  expect(withOutput('| true', '--help')).toEqual({ status: 0, stderr: '' });
});
