// What every kind of sandbox promises. Its agents are shell commands, because they run everywhere.
import { afterEach, beforeEach, describe } from 'vitest';
import type { Child } from '../../../src/ports/sandbox.ts';
import { type Around, aroundOf, type GivenSandboxes } from './around.ts';
import { changesContract } from './changes.ts';
import { credentialsContract } from './credentials.ts';
import { filesContract } from './files.ts';
import { linksContract, racesContract } from './links.ts';
import { processesContract } from './processes.ts';

/** A caller can choose some of the parts. */
const PARTS = {
  ...{ files: filesContract, links: linksContract, races: racesContract, processes: processesContract },
  ...{ credentials: credentialsContract, changes: changesContract },
};

export function sandboxContract(
  name: string,
  given: () => Promise<GivenSandboxes>,
  parts = Object.keys(PARTS) as readonly (keyof typeof PARTS)[],
): void {
  describe(`sandboxes: ${name}`, () => {
    let around: Around;
    const started: Child[] = [];
    beforeEach(async () => {
      around = await aroundOf(await given(), started);
    });
    afterEach(async () => {
      for (const child of started.splice(0)) {
        child.kill('SIGKILL');
        await child.exited;
      }
      await around.given.dispose();
    });
    for (const part of parts) PARTS[part](() => around);
  });
}
