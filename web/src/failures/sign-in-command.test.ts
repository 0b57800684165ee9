import { expect, test } from 'vitest';
import { commandIn } from './sign-in-command.ts';

test.each([
  ['run "/opt/claude auth login", or set ANTHROPIC_API_KEY', '/opt/claude auth login'],
  ['Run "codex login".', 'codex login'],
  ['set ANTHROPIC_API_KEY', null],
])('%s', (hint, command) => {
  expect(commandIn(hint)).toBe(command);
});
