import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fill, mountSmall, NO_SMALL_DISK, unmount } from '../../faults/full-disk/small-disk.ts';
import { Crowd } from '../harness/crowd.ts';
import type { Outcome, Run, Scenario } from '../harness/figures.ts';
import { OWNERS, World } from '../harness/world.ts';

export const fullDisk: Scenario = {
  name: 'full-disk',
  does: 'the disk of the data home fills up while clients submit and read, and is freed again; the server is killed while it is full',
  onlyLong: true,
  missing() {
    const path = mkdtempSync(join(tmpdir(), 'throughline-disk-'));
    const mounted = mountSmall(path);
    if (mounted) unmount(path);
    rmSync(path, { recursive: true });
    return mounted ? null : NO_SMALL_DISK;
  },
  async run(run) {
    let disk = '';
    const world = await World.start({
      // Agents store their own data elsewhere: only the disk of the data home is full.
      settings: (root) => ({ sandbox: { root: join(root, 'sandboxes') } }),
      async prepare({ home }) {
        disk = join(home.path, 'home');
        mountSmall(disk);
      },
    });
    try {
      return await filled(world, disk, run);
    } finally {
      unmount(disk);
      await world[Symbol.asyncDispose]();
    }
  },
};

async function filled(world: World, disk: string, { seed, random }: Run): Promise<Outcome> {
  const counts = { 'times full': 0, 'checks while full': 0 };
  const faults: string[] = [];
  const crowd = new Crowd(world, { seed, clients: 5 });
  await crowd.begin();
  for (let round = 0; round < 5; round += 1) {
    await pause(random.whole(1_000, 3_000));
    const makeRoom = fill(disk);
    counts['times full'] += 1;
    for (const owner of OWNERS) {
      const looks = ['/conversations/shared/view', '/conversations', '//livez'];
      for (const look of looks) {
        const answer = await world.caller(owner).get(look);
        counts['checks while full'] += 1;
        if (answer.status !== 200) faults.push(`${look} was answered with ${answer.status} while the disk was full`);
      }
    }
    await pause(random.whole(1_000, 3_000));
    const isKilled = round % 2 === 1;
    if (isKilled) await world.kill();
    makeRoom();
    if (isKilled) await world.up();
  }
  await crowd.calm();
  const { figures, violations } = await crowd.outcome();
  return { figures: { ...counts, 'server kills': world.kills, ...figures }, violations: [...faults, ...violations] };
}
