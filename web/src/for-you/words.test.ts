import type { Conversation, Permission, Task } from 'throughline/client';
import { expect, test } from 'vitest';
import type { Need } from './sections.ts';
import { fitsInRow, isMarked, newsOf, wordsOf } from './words.ts';

const permission = (title: string, toolCall: object = {}) => ({ title, toolCall }) as Permission;
const run = (command: string) => permission('Bash', { title: 'Bash', kind: 'execute', rawInput: { command } });
const edit = (path: string, title = `Write ${path}`) =>
  permission(title, { title, kind: 'edit', locations: [{ path }] });
const asks = (...permissions: [Permission, ...Permission[]]): Need => ({
  ...{ kind: 'questions', id: 'c', conversation: null },
  permissions,
});

test.each([
  ['a command', [run('npm run docs')], 'asks to run npm run docs'],
  ['a file', [edit('db/schema.sql')], 'asks to change db/schema.sql'],
  ['its own words', [edit('out.log', 'May I delete it?')], 'asks: May I delete it?'],
  ['two things', [edit('a.ts'), run('npm test')], 'asks to change a.ts, and 1 more'],
  ['what deceives', [run('echo \u202e; rm')], 'asks to run echo <U+202E>; rm'],
] as const)('a conversation that asks for %s', (_name, [first, ...more], words) => {
  const said = wordsOf(asks(first, ...more));
  if (words.includes('202E')) expect(said).toMatch(/U\+202E/);
  else expect(said).toBe(words);
});

test.each([
  ['a short command', [run('npm run docs')], true],
  ['a question without more', [permission('May I go on?')], true],
  ['a long command', [run('x'.repeat(81))], false],
  ['a command of two lines', [run('echo 1\nrm -rf ~')], false],
  ['a character that deceives', [run('echo \u202e; rm')], false],
  ['a change that is not shown', [edit('a.ts')], false],
  ['another file beside the question', [edit('a.ts', 'May I?')], false],
  ['a description beside the command', [permission('x', { rawInput: { command: 'ls', why: 'to look' } })], false],
  ['two questions', [run('ls'), run('pwd')], false],
] as const)('whether %s fits into a row: %s', (_name, permissions, fits) => {
  expect(fitsInRow(permissions)).toBe(fits);
});

test('a question with a character that deceives is marked', () => {
  expect([isMarked(run('npm run docs')), isMarked(run('echo \u202e; rm'))]).toEqual([false, true]);
});

test('a conversation has news while something delays it or its task works', () => {
  const row = (more: object) => ({ open: 1, stranded: null, delayed: null, ...more }) as unknown as Conversation;
  const task = { maxIterations: 5, progress: { iteration: 3, lastGate: null } } as Task;
  expect(newsOf(row({}), undefined)).toBeNull();
  expect(newsOf(row({ delayed: { message: 'No slot is free.' } }), task)).toBe('No slot is free.');
  expect(newsOf(row({}), task)).toBe('Task · try 3 of 5');
  expect(newsOf(row({ open: 0 }), task)).toBeNull();
});
