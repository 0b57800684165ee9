import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { processesAt } from '../../../src/host/processes.ts';
import { directorySandboxes } from '../../../src/sandboxes/directory/directory-sandboxes.ts';
import { localFolder } from '../../../src/sandboxes/shared/local-folder.ts';
import type { GivenSandboxes } from './around.ts';
import { sandboxContract } from './sandbox.contract.ts';

const STARTER = fileURLToPath(new URL('directory-starter.ts', import.meta.url));

async function directories(): Promise<GivenSandboxes> {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'throughline-sandboxes-')));
  return {
    sandboxes: () => directorySandboxes({ root, place: 'test', processes: processesAt('test') }),
    starter: (words) => [process.execPath, STARTER, root, ...words],
    dispose: async () => rmSync(root, { recursive: true, force: true }),
  };
}

/** As on a system without /proc, where an agent could win a race. */
async function withoutProc(): Promise<GivenSandboxes> {
  const given = await directories();
  return {
    ...given,
    sandboxes() {
      const sandboxes = given.sandboxes();
      const open: typeof sandboxes.open = async (id, options) => {
        const sandbox = await sandboxes.open(id, options);
        return { ...sandbox, folder: async (root) => localFolder(await sandbox.realPath(root), false) };
      };
      return { ...sandboxes, open };
    },
  };
}

sandboxContract('directory', directories);
sandboxContract('directory, on a system without /proc', withoutProc, ['files', 'links']);
