import { expect, test } from 'vitest';
import { refusalOf } from './connection.ts';

test.each([
  ['not_found', 'with code 1: No conversation found with session ID: 1234'],
  ['not_found', 'Error: --resume requires …. Provided value "x" is not a UUID and does not match any session title.'],
  ['in_use', 'Error: Session ID 44444444-4444-4444-8444-444444444444 is already in use.'],
  ['locked', 'Error: session 1234 is locked by another process'],
])('%s: %s', (reason, output) => {
  expect(refusalOf(`(node) a warning\n${output}\nmore`)).toMatchObject({ reason });
});

test('the message is the line with the refusal', () => {
  expect(refusalOf('a warning\nError: Session ID 1 is already in use.')?.message).toBe(
    'Session ID 1 is already in use.',
  );
});

test('other output is not a refusal', () => {
  for (const output of ['', 'Invalid API key', 'SyntaxError: …', 'the port is already in use']) {
    expect(refusalOf(output)).toBeNull();
  }
});
