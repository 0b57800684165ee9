import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../../../test/temporary-folder.ts';
import type { Update } from '../../core/turn/update.ts';
import { KeptAnnouncements } from './announcements.ts';

const models = (...values: string[]) => {
  const option = { id: 'model', name: 'Model', currentValue: values[0], options: values.map((value) => ({ value })) };
  return { sessionUpdate: 'config_option_update', configOptions: [option] } as Update;
};
const MODE = { sessionUpdate: 'current_mode_update', currentModeId: 'ask', availableModes: [{ id: 'ask' }] } as Update;

test('the last announcement of each kind is kept for the next process, by agent', () => {
  const folder = join(temporaryFolder(), 'learnt');
  const [one, other] = [new KeptAnnouncements(folder, 'claude'), new KeptAnnouncements(folder, '__proto__')];
  expect(one.last()).toEqual([]);
  for (const update of [models('a', 'b'), MODE, models('c')]) one.see(update);
  one.see({ sessionUpdate: 'available_commands_update', availableCommands: [] } as Update);
  other.see(models('d'));
  expect(new KeptAnnouncements(folder, 'claude').last()).toEqual([models('c'), MODE]);
  expect(new KeptAnnouncements(folder, 'codex').last()).toEqual([]);
});

test('a very long announcement is not kept, and a damaged file counts as none', () => {
  const folder = temporaryFolder();
  const announcements = new KeptAnnouncements(folder, 'claude');
  announcements.see(models('a'));
  const before = readFileSync(join(folder, 'announced.json'), 'utf8');
  announcements.see(models('x'.repeat(300_000)));
  expect(readFileSync(join(folder, 'announced.json'), 'utf8')).toBe(before);
  for (const damaged of ['{', '[]', '{"claude":5}', '{"claude":{"config_option_update":{"sessionUpdate":"plan"}}}']) {
    writeFileSync(join(folder, 'announced.json'), damaged);
    expect(announcements.last()).toEqual([]);
  }
  announcements.see(models('b'));
  expect(announcements.last()).toEqual([models('b')]);
});
