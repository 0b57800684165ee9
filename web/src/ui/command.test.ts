import { expect, test } from 'vitest';
import { printable, withCommands } from './command.ts';

const HERE = "npx throughline --home '/my data'";

test.each([
  ['throughline link', `${HERE} link`],
  ['throughline', HERE],
  ['npm install -g opencode-ai', 'npm install -g opencode-ai'],
  ['echo throughline', 'echo throughline'],
])('a command is printed as it works here: %s', (line, printed) => {
  expect(printable(line, HERE)).toBe(printed);
});

test('the commands in a text are, too, and nothing else', () => {
  expect(withCommands('Run "throughline agents", or ask throughline.', HERE)).toBe(
    `Run "${HERE} agents", or ask throughline.`,
  );
});
