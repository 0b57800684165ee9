import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';

/** A new folder, by its real path. It goes away when the test has finished. */
export function temporaryFolder(): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'throughline-test-')));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true, maxRetries: 20 }));
  return folder;
}

/** Where temporary folders go that isolated programs use: what is in memory (scripts/test-folder.js) is in `/dev`, which they do not see. */
export const disk = (): string => process.env.THROUGHLINE_TEST_DISK ?? tmpdir();
