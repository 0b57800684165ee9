import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { sandboxAt } from '../../../../test/contracts/agent-sandbox.ts';
import { temporaryFolder } from '../../../../test/temporary-folder.ts';
import { capabilitiesOf } from '../connection/capabilities.ts';
import { AgentMemory, fingerprintOf, whyNotReopened } from './memory.ts';

let root: string;
beforeEach(() => {
  root = temporaryFolder();
});

const saying = (version: string) =>
  capabilitiesOf({ agentInfo: { name: 'agent', version }, agentCapabilities: { loadSession: true } });
const memory = (fingerprint = 'agent') => new AgentMemory(join(root, 'learnt'), fingerprint);

test('the next process reads what an earlier process has stored about an agent', () => {
  const one = memory();
  expect(one.learnt).toBeNull();
  one.saw(saying('1'));
  one.window('agent', 1_000);
  one.loadedIncomplete('a', 'it repeats nothing');
  expect(memory().learnt).toMatchObject({
    version: '1',
    load: true,
    windows: { agent: 1_000 },
    incomplete: [{ session: 'a', detail: 'it repeats nothing' }],
  });
  expect(memory('another').learnt).toBeNull();
});

const distrust = () => {
  const { learnt } = memory();
  return learnt && whyNotReopened(learnt);
};

test('another version is trusted', () => {
  memory().saw(saying('1'));
  for (const session of ['a', 'b']) memory().loadedIncomplete(session, 'it repeats nothing');
  memory().saw(saying('1'));
  expect(distrust()).toBe('it repeats nothing');
  memory().saw(saying('2'));
  expect(distrust()).toBeNull();
});

test('an agent that never loaded a session whole is not asked again after two incomplete ones', () => {
  memory().saw(saying('1'));
  memory().loadedIncomplete('a', 'it lacks turn 3');
  expect(distrust()).toBeNull();
  memory().loadedIncomplete('b', 'it lacks turn 4');
  expect(distrust()).toBe('it lacks turn 4');
});

test('an agent that has loaded a session whole is not asked again after three incomplete ones in a row', () => {
  memory().saw(saying('1'));
  memory().loadedWhole();
  for (const n of ['1', '2']) memory().loadedIncomplete(n, n);
  expect(distrust()).toBeNull();
  memory().loadedWhole();
  for (const n of ['1', '2']) memory().loadedIncomplete(n, n);
  expect(distrust()).toBeNull();
  memory().loadedIncomplete('3', '3');
  expect(distrust()).toBe('3');
});

test('one damaged session counts once, however often it is opened', () => {
  memory().saw(saying('1'));
  for (const detail of ['first', 'second', 'third']) memory().loadedIncomplete('a', detail);
  expect(distrust()).toBeNull();
  memory().loadedIncomplete('b', 'another');
  expect(distrust()).toBe('another');
});

test('two processes do not overwrite what the other one has stored', () => {
  const [one, other] = [memory(), memory()];
  one.saw(saying('1'));
  expect(other.learnt?.version).toBe('1');
  one.loadedIncomplete('a', 'it repeats nothing');
  one.window('large', 2_000);
  other.window('small', 1_000);
  other.loadedIncomplete('b', 'it repeats nothing');
  other.saw(saying('1'));
  expect(distrust()).toBe('it repeats nothing');
  expect(memory().learnt?.windows).toEqual({ large: 2_000, small: 1_000 });
});

test('a replaced program is learnt again, and so is one of another machine', async () => {
  const file = join(root, 'program.js');
  writeFileSync(file, 'one');
  writeFileSync(join(root, 'package.json'), '{"version":"1.0.0"}');
  const here = sandboxAt(root);
  const memoryOf = async (sandbox = here) => memory(await fingerprintOf(['node', file], sandbox));
  (await memoryOf()).saw(saying('1'));
  expect((await memoryOf()).learnt).not.toBeNull();
  expect((await memoryOf({ ...here, host: 'another' })).learnt).toBeNull();
  writeFileSync(join(root, 'package.json'), '{"version":"1.0.1"}');
  expect((await memoryOf()).learnt).toBeNull();
});

test('a damaged or unwritable file is not an error: everything is learnt again', () => {
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
