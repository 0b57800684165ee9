import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openAt, temporaryFolder } from '../../../../test/contracts/sqlite-folder.ts';

/** What a restore writes, with one value replaced. */
const planWith = (replaced: object, folders: unknown = ['.restore-a']) =>
  JSON.stringify({ backup: 'b.db', folders, replaced: [{ at: 'boxes', kept: null, by: null, ...replaced }] });

/** Plans beside a database in `outer/home`. `outer` also has a directory, a file, and links in the data home that lead to them. */
const PLANS: [string, (outer: string) => string][] = [
  ['an absolute folder', (outer) => planWith({}, [join(outer, 'victim')])],
  ['a folder above', () => planWith({}, ['../victim'])],
  ['a folder of another name', () => planWith({}, ['boxes'])],
  ['a folder in a folder', () => planWith({}, ['.restore-a/../../victim'])],
  ['a second folder above', () => planWith({}, ['.restore-a', '../victim'])],
  ['a folder that is a link', () => planWith({}, ['.restore-link'])],
  ['an absolute path that is replaced', (outer) => planWith({ at: join(outer, 'secret'), kept: 'aside/secret' })],
  ['a path above that is replaced', () => planWith({ at: '../secret', kept: 'aside/secret' })],
  ['a path that is replaced through a link', () => planWith({ at: 'link/secret', kept: 'aside/secret' })],
  ['a path that was kept', () => planWith({ at: 'aside', kept: 'aside/secret' })],
  ['a path that was prepared', () => planWith({ at: '.restore-a/new', kept: 'aside/new' })],
  ['a path that is kept outside', (outer) => planWith({ kept: join(outer, 'stolen') })],
  ['a path that is kept above', () => planWith({ kept: 'aside/../../stolen' })],
  ['a path that is kept elsewhere', () => planWith({ kept: 'boxes-2' })],
  ['a path that comes from outside', (outer) => planWith({ at: 'new', by: join(outer, 'secret') })],
  ['a path that comes from above', () => planWith({ at: 'new', by: '.restore-a/../../secret' })],
  ['a path that comes from elsewhere', () => planWith({ at: 'new', by: 'boxes' })],
  ['an empty path', () => planWith({ at: '' })],
  ['a path with a null character', () => planWith({ at: 'boxes\0' })],
  ['a path below a file', () => planWith({ at: 'store.db/a/b' })],
  ['no path', () => planWith({ at: 7 })],
  ['no folder', () => planWith({}, [])],
  ['no list of folders', () => planWith({}, '.restore-a')],
  ['no list of what is replaced', () => '{"backup":"b.db","folders":[".restore-a"],"replaced":{}}'],
  ['null in a list', () => '{"backup":"b.db","folders":[".restore-a"],"replaced":[null]}'],
  ['no backup', () => '{"folders":[".restore-a"],"replaced":[]}'],
  ['only folders', () => '{"folders":[]}'],
  ['an empty object', () => '{}'],
  ['an empty list', () => '[]'],
  ['null', () => 'null'],
  ['text', () => 'boxes'],
  ['an empty file', () => ''],
];

/** With entries, links are listed and not followed: here one of them leads to the folder itself. */
const pathsBelow = (folder: string) =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .map((entry) => join(entry.parentPath, entry.name))
    .toSorted();

test.each(PLANS)('a plan of a restore with %s is refused and changes nothing', async (_what, planIn) => {
  const outer = temporaryFolder();
  const home = join(outer, 'home');
  const file = join(home, 'store.db');
  await (await openAt(file)).close();
  for (const path of ['victim', 'home/boxes', 'home/.restore-a']) mkdirSync(join(outer, path));
  for (const path of ['secret', 'victim/file', 'home/boxes/file']) writeFileSync(join(outer, path), path);
  symlinkSync(outer, join(home, 'link'));
  symlinkSync(join(outer, 'victim'), join(home, '.restore-link'));
  writeFileSync(`${file}.restoring`, planIn(outer));
  const before = [pathsBelow(outer), readFileSync(file)];
  const error = await openAt(file).then(
    () => null,
    (thrown) => thrown,
  );
  expect([pathsBelow(outer), readFileSync(file)]).toEqual(before);
  expect(error).toMatchObject({
    code: 'storage_damaged',
    message: expect.stringMatching(/^\S+store\.db\.restoring is not a valid plan of a restore\.$/),
    hint: expect.stringMatching(/^Check this file or delete it, and restore the backup again\./),
  });
});
