import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { temporaryFolder } from '../../../test/temporary-folder.ts';
import { LearntWindows } from './windows.ts';

let folder: string;
beforeEach(() => {
  folder = join(temporaryFolder(), 'learnt');
});
const windows = (agent = 'claude') => new LearntWindows(folder, agent);

test('the next process knows the windows of all models that an agent has used', () => {
  const now = windows();
  expect(now.of(null)).toBeNull();
  now.learn(null, 1_000_000);
  now.learn('haiku', 200_000);
  now.learn('haiku', 500_000);
  for (const one of [now, windows()]) expect([one.of(null), one.of('haiku')]).toEqual([1_000_000, 500_000]);
  // Another agent may reach other models under the same names.
  expect(windows('other').of('haiku')).toBeNull();
  expect(now.of('__proto__')).toBeNull();
});

test('two processes, and two agents, do not overwrite what the other has stored', () => {
  const [one, two, other] = [windows(), windows(), windows('other')];
  for (const each of [one, two, other]) expect(each.of('opus')).toBeNull();
  one.learn('opus', 1);
  two.learn('sonnet', 2);
  other.learn('opus', 3);
  expect([windows().of('opus'), windows().of('sonnet'), windows('other').of('opus')]).toEqual([1, 2, 3]);
});

test('a damaged or unwritable file is not an error: only this process knows what it has learnt', () => {
  windows().learn('opus', 1);
  const [file = ''] = readdirSync(folder);
  writeFileSync(join(folder, file), '{"claude": {"opus": "x"');
  expect(windows().of('opus')).toBeNull();
  writeFileSync(join(folder, file), '{"claude": {"opus": "x"}}');
  expect(windows().of('opus')).toBeNull();
  folder = join(folder, file); // a file where the folder should be
  const alone = windows();
  alone.learn('opus', 2);
  expect(alone.of('opus')).toBe(2);
});
