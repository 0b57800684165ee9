import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';

/** The real path of a new folder, which is removed when the test has finished. */
export function temporaryFolder(): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'throughline-test-')));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true, maxRetries: 20 }));
  return folder;
}

/** For the temporary folders of isolated programs. Those in memory (scripts/test-folder.js) are in `/dev`, which such programs cannot see. */
export const disk = (): string => process.env.THROUGHLINE_TEST_DISK ?? tmpdir();
