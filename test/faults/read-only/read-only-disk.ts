import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished, type TestContext } from 'vitest';

/** A new file system that can be made read-only. Skips the test where that is not allowed. */
export function readOnlyDisk(context: TestContext): { path: string; makeReadOnly(): void; makeWritable(): void } {
  const path = mkdtempSync(join(tmpdir(), 'throughline-disk-'));
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=32m', 'tmpfs', path], { stdio: 'pipe' });
  } catch {
    rmSync(path, { recursive: true });
    return context.skip('a disk cannot be mounted here: that needs root on Linux');
  }
  onTestFinished(() => {
    execFileSync('umount', ['-l', path]);
    rmSync(path, { recursive: true, force: true });
  });
  const remount = (how: string) => () => void execFileSync('mount', ['-o', `remount,${how}`, path], { stdio: 'pipe' });
  return { path, makeReadOnly: remount('ro'), makeWritable: remount('rw') };
}
