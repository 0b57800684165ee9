import { execFileSync } from 'node:child_process';
import { appendFileSync, mkdirSync, mkdtempSync, rmSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished, type TestContext } from 'vitest';

export const NO_SMALL_DISK = 'a small file system cannot be mounted here: that needs root on Linux';

/** A new file system of 8 MB. Skips the test where that is not allowed. */
export function smallDisk(context: TestContext): string {
  const disk = mkdtempSync(join(tmpdir(), 'throughline-disk-'));
  if (!mountSmall(disk)) {
    rmSync(disk, { recursive: true });
    return context.skip(NO_SMALL_DISK);
  }
  onTestFinished(() => {
    unmount(disk);
    rmSync(disk, { recursive: true, force: true });
  });
  return disk;
}

/** Mounts a file system of that size. False: that is not allowed here. */
export function mountSmall(path: string, megabytes = 8): boolean {
  mkdirSync(path, { recursive: true });
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m`, 'tmpfs', path], { stdio: 'pipe' });
    return true;
  } catch {
    return false;
  }
}

export function unmount(path: string): void {
  execFileSync('umount', ['-l', path]);
}

/** Fills the disk, also while others write. The returned function frees the space again. */
export function fill(disk: string): () => void {
  const filler = join(disk, 'filler');
  try {
    for (;;) appendFileSync(filler, Buffer.alloc(statfsSync(disk).bsize));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
  }
  return () => rmSync(filler);
}
