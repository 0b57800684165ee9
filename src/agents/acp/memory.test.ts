import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { capabilitiesOf } from './capabilities.ts';
import { AgentMemory } from './memory.ts';

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
  one.window(1_000);
  one.lied('it repeats nothing');
  expect(memory().learnt).toMatchObject({ version: '1', load: true, window: 1_000, lie: 'it repeats nothing' });
  expect(memory(['another']).learnt).toBeNull();
});

test('another version has not lied', () => {
  memory().saw(saying('1'));
  memory().lied('it repeats nothing');
  const updated = memory();
  updated.saw(saying('1'));
  expect(updated.learnt?.lie).toBe('it repeats nothing');
  updated.saw(saying('2'));
  expect(memory().learnt).toMatchObject({ version: '2', lie: null });
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
