import { mkdirSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../../test/contracts/sqlite-folder.ts';
import { PROBE } from '../core/sandbox/sandbox-id.ts';
import type { DoctorParts } from './parts.ts';
import { checkProbes } from './sandbox-checks.ts';

test('the folder of a probe is reported when it is older than a day', async () => {
  const root = temporaryFolder();
  const now = Date.UTC(2026, 0, 31);
  for (const [name, hours] of [
    ['old', 25],
    ['new', 23],
  ] as const) {
    const path = join(root, `${PROBE}${name}`);
    mkdirSync(path);
    utimesSync(path, (now - hours * 3_600_000) / 1_000, (now - hours * 3_600_000) / 1_000);
  }
  const parts = { sandboxes: { root, isOurs: true }, clock: { now: () => now, monotonic: () => 0 } };
  const found = await checkProbes(parts as unknown as DoctorParts);
  expect(found.map(({ subject }) => subject)).toEqual([`directory ${join(root, `${PROBE}old`)}`]);
});
