import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { capabilitiesOf } from '../connection/capabilities.ts';
import { AgentMemory, lieOf } from './memory.ts';

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'throughline-memory-'));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const saying = (version: string) =>
  capabilitiesOf({ agentInfo: { name: 'agent', version }, agentCapabilities: { loadSession: true } });
const memory = (command: readonly string[] = ['agent']) => new AgentMemory(join(root, 'learnt'), command);

test('what one process has learnt, the next one knows', () => {
  const one = memory();
  expect(one.learnt).toBeNull();
  one.saw(saying('1'));
  one.window('agent', 1_000);
  one.lacked('a', 'it repeats nothing');
  expect(memory().learnt).toMatchObject({
    version: '1',
    load: true,
    windows: { agent: 1_000 },
    lacking: [{ session: 'a', detail: 'it repeats nothing' }],
  });
  expect(memory(['another']).learnt).toBeNull();
});

const lie = () => {
  const { learnt } = memory();
  return learnt && lieOf(learnt);
};

test('another version has not lied', () => {
  memory().saw(saying('1'));
  for (const session of ['a', 'b']) memory().lacked(session, 'it repeats nothing');
  memory().saw(saying('1'));
  expect(lie()).toBe('it repeats nothing');
  memory().saw(saying('2'));
  expect(lie()).toBeNull();
});

test('one that was never seen to load a session whole is a liar when two were not', () => {
  memory().saw(saying('1'));
  memory().lacked('a', 'it lacks turn 3');
  expect(lie()).toBeNull();
  memory().lacked('b', 'it lacks turn 4');
  expect(lie()).toBe('it lacks turn 4');
});

test('one that was, when three in a row were not', () => {
  memory().saw(saying('1'));
  memory().loaded();
  for (const n of ['1', '2']) memory().lacked(n, n);
  expect(lie()).toBeNull();
  memory().loaded();
  for (const n of ['1', '2']) memory().lacked(n, n);
  expect(lie()).toBeNull();
  memory().lacked('3', '3');
  expect(lie()).toBe('3');
});

test('one damaged session counts once, however often it is opened', () => {
  memory().saw(saying('1'));
  for (const detail of ['first', 'second', 'third']) memory().lacked('a', detail);
  expect(lie()).toBeNull();
  memory().lacked('b', 'another');
  expect(lie()).toBe('another');
});

test('two processes do not forget for each other', () => {
  const [one, other] = [memory(), memory()];
  one.saw(saying('1'));
  expect(other.learnt?.version).toBe('1');
  one.lacked('a', 'it repeats nothing');
  one.window('large', 2_000);
  other.window('small', 1_000);
  other.lacked('b', 'it repeats nothing');
  other.saw(saying('1'));
  expect(lie()).toBe('it repeats nothing');
  expect(memory().learnt?.windows).toEqual({ large: 2_000, small: 1_000 });
});

test('a program that was replaced is another one', () => {
  const file = join(root, 'program.js');
  writeFileSync(file, 'one');
  writeFileSync(join(root, 'package.json'), '{"version":"1.0.0"}');
  memory([file]).saw(saying('1'));
  expect(memory([file]).learnt).not.toBeNull();
  writeFileSync(join(root, 'package.json'), '{"version":"1.0.1"}');
  expect(memory([file]).learnt).toBeNull();
});

test('a file that is damaged or cannot be written costs nothing but the knowledge', () => {
  memory().saw(saying('1'));
  const [file = ''] = readdirSync(join(root, 'learnt'));
  writeFileSync(join(root, 'learnt', file), '{"ver');
  expect(memory().learnt).toBeNull();
  rmSync(join(root, 'learnt'), { recursive: true });
  writeFileSync(join(root, 'learnt'), 'in the way');
  const alone = memory();
  alone.saw(saying('1'));
  expect(alone.learnt?.version).toBe('1');
  rmSync(join(root, 'learnt'));
  mkdirSync(join(root, 'learnt'));
});
