import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { test } from 'vitest';
import type { GivenSandboxes } from './around.ts';
import { isolatedSandboxes, whyNoBubblewrap } from './bubblewrap-given.ts';
import { sandboxContract } from './sandbox.contract.ts';

const STARTER = fileURLToPath(new URL('bubblewrap-given.ts', import.meta.url));

async function isolated(): Promise<GivenSandboxes> {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'throughline-sandboxes-')));
  return {
    ownHomes: true,
    isolated: true,
    sandboxes: () => isolatedSandboxes(root, { network: 'none' }),
    starter: (words) => [process.execPath, STARTER, root, ...words],
    dispose: async () => rmSync(root, { recursive: true, force: true }),
  };
}

const why = whyNoBubblewrap();
if (why === null) sandboxContract('bubblewrap', isolated);
else test('the contract of sandboxes in bubblewrap', (context) => context.skip(why));
