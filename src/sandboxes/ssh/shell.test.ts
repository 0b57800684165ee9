import { spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { SHELL_COMMAND } from './shell.ts';

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
