import { execFileSync } from 'node:child_process';
import { readdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../../../test/temporary-folder.ts';
import { localFolder } from './local-folder.ts';

test('a pipe in the place of what we are writing is not waited for', async () => {
  const path = temporaryFolder();
  writeFileSync(join(path, 'file'), 'old');
  execFileSync('mkfifo', [join(path, 'pipe')]);
  // So much is written in many pieces: there is time to take its name away.
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
