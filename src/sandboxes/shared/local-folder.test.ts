import { execFileSync } from 'node:child_process';
import { pbkdf2 } from 'node:crypto';
import { readdirSync, readFileSync, renameSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { readOnlyDisk } from '../../../test/faults/read-only/read-only-disk.ts';
import { temporaryFolder } from '../../../test/temporary-folder.ts';
import { localFolder } from './local-folder.ts';

test('a pipe in the place of a file that we write does not block us', async () => {
  const path = temporaryFolder();
  writeFileSync(join(path, 'file'), 'old');
  execFileSync('mkfifo', [join(path, 'pipe')]);
  // This much is written in many pieces, so there is time to replace the file.
  const replaced = localFolder(path).replace('file', Buffer.alloc(32 * 2 ** 20));
  const caught = expect(replaced).rejects.toMatchObject({ code: 'refused' });
  let temporary: string | undefined;
  while (temporary === undefined) {
    await turn();
    temporary = readdirSync(path).find((name) => name.endsWith('.tmp'));
  }
  renameSync(join(path, 'pipe'), join(path, temporary));
  await caught;
  expect(readdirSync(path)).toEqual(['file']);
});

test('a file on a read-only file system is refused with that reason, and can be read', async (context) => {
  const { path, makeReadOnly } = readOnlyDisk(context);
  writeFileSync(join(path, 'file'), 'old');
  makeReadOnly();
  const why = { code: 'storage_readonly', message: expect.stringContaining('read-only'), hint: 'Mount it writable.' };
  await expect(localFolder(path).replace('file', Buffer.from('new'))).rejects.toMatchObject(why);
  expect(await localFolder(path).read('file', { most: 9 })).toMatchObject({ bytes: Buffer.from('old') });
});

test('a new folder that somebody removes while it is empty is created again', async () => {
  const path = temporaryFolder();
  // The threads that open files are busy, so that the folder is removed before a file is in it.
  const busy = Array.from({ length: 8 }, () => promisify(pbkdf2)('a', 'b', 20_000, 64, 'sha512'));
  const written = localFolder(path).put('projects/work/session', 'text');
  rmdirSync(join(path, 'projects/work'));
  expect(await written).toBe('written');
  expect(readFileSync(join(path, 'projects/work/session'), 'utf8')).toBe('text');
  await Promise.all(busy);
});
