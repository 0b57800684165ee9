import { spawn, spawnSync } from 'node:child_process';
import { Duplex, PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { setImmediate } from 'node:timers/promises';
import type { ClientChannel } from 'ssh2';
import { expect, test } from 'vitest';
import { SHELL_COMMAND, Shell } from './shell.ts';

/** The user's own shell starts ours, and may be any of these. */
test.for(['sh', 'bash', 'zsh', 'fish'])('%s starts a shell that runs one script after another', (shell, context) => {
  const input = `run 3 END
echo "it's"; cat; echo said >&2; exit 3
END
abcrun 0 END
echo "$HOME|$SECRET"; cat
END
start 0 END
read -r line; echo "got $line"; exit 4
END
more
`;
  const env = { PATH: process.env.PATH, HOME: '/tmp', SECRET: 'of the connection' };
  const { error, stdout, stderr, status } = spawnSync(shell, ['-c', SHELL_COMMAND], { input, env, encoding: 'utf8' });
  if ((error as NodeJS.ErrnoException | undefined)?.code === 'ENOENT') context.skip(`${shell} is not installed`);
  expect(stdout).toBe("it's\nabc\nEND 3\n/tmp|\n\nEND 0\ngot more\n");
  expect(stderr).toBe('said\nEND\nEND\n');
  expect(status).toBe(4);
});

test('output that arrives while our process is suspended is kept, also if the program has ended', async () => {
  // Only the timing of a channel matters here. Its output is that of a process, which is read like that of a connection.
  const source = spawn('/bin/sh', ['-c', 'read -r go; echo rest'], { stdio: ['pipe', 'pipe', 'inherit'] });
  const duplex = new Duplex({ emitClose: false, read() {}, write: (_, __, done) => done() });
  const channel = Object.assign(duplex, { stderr: new PassThrough(), close() {} });
  source.stdout.on('data', (chunk) => channel.push(chunk));
  const program = new Shell(channel as unknown as ClientChannel, 'there').start('');
  const said = text(program.stdout as PassThrough);
  channel.emit('exit', 0);
  await setImmediate();
  source.stdin.write('\n');
  // Longer than the time for which output may stay open after the program has ended.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2_200);
  expect(await said).toBe('rest\n');
  expect(await program.ended).toBe(0);
});
