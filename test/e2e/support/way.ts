import { afterAll, beforeAll } from 'vitest';

/** How tests reach the engine of a home: directly in this process, or through a real server. */
export type Way = 'embedded' | 'socket' | 'tcp';

let way: Way = 'embedded';

export const chosenWay = (): Way => way;

/** Chooses the way for every home that is opened from now on. A file that calls it sets `embedded` again (test/shared-process.ts). */
export function reachBy(chosen: Way): void {
  way = chosen;
}

/** Adds the tests of other files of `test/e2e` to the calling file. There they reach the engine in the way that is named. */
export async function testsBy(chosen: Way, files: readonly string[]): Promise<void> {
  beforeAll(() => reachBy(chosen));
  afterAll(() => reachBy('embedded'));
  for (const file of files) {
    // A module runs once in a process, and this one may have run there before. With another address it runs again.
    await import(/* @vite-ignore */ `../${file}.test.ts?by=${chosen}`);
  }
}
