// Sandboxes in containers, for tests; and as a program: a process of ours that starts another one there, and does not look after it.
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { isolationSettings } from '../../../src/core/sandbox/sandbox-settings.ts';
import { processesAt } from '../../../src/host/processes.ts';
import type { Sandboxes } from '../../../src/ports/sandbox.ts';
import { checkContainers } from '../../../src/sandboxes/container/check.ts';
import { containerSandbox } from '../../../src/sandboxes/container/container-sandbox.ts';
import { containerProcesses } from '../../../src/sandboxes/container/processes.ts';
import { directorySandboxes } from '../../../src/sandboxes/directory/directory-sandboxes.ts';

type SandboxSettings = Parameters<typeof isolationSettings>[0];

/** The programs of this machine, and Node with them. */
export const PROGRAMS = ['/usr', dirname(dirname(realpathSync(process.execPath)))].filter(
  (path, at) => at === 0 || !path.startsWith('/usr'),
);

/** A folder to run in without any image: all that it has are links into what is bound. */
export function writeRootfs(folder: string): string {
  for (const name of ['etc', 'proc', 'sys', 'dev', 'tmp', 'run', 'var/tmp', 'usr'])
    mkdirSync(join(folder, name), { recursive: true });
  for (const name of ['bin', 'sbin', 'lib', 'lib64']) symlinkSync(`usr/${name}`, join(folder, name));
  writeFileSync(join(folder, 'etc/passwd'), 'root:x:0:0:root:/root:/bin/sh\n');
  return folder;
}

export const containerSettings = (rootfs: string, settings: Omit<SandboxSettings, 'kind'> = {}): SandboxSettings => ({
  ...settings,
  kind: 'container',
  ...(settings.image === undefined && { rootfs }),
  binds: [...PROGRAMS.map((path) => ({ path })), ...(settings.binds ?? [])],
});

let looked: Promise<string | null> | null = null;

/** Why tests of it are skipped here; null: they are not. A look starts containers, so the files of one process share it. */
export function whyNoPodman(): Promise<string | null> {
  looked ??= look();
  return looked;
}

async function look(): Promise<string | null> {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'throughline-podman-')));
  try {
    const rootfs = writeRootfs(join(folder, 'rootfs'));
    const isolation = isolationSettings(containerSettings(rootfs, { network: 'none' }), (path) => path);
    if (isolation?.by === 'container') await checkContainers(isolation.settings, folder);
    return null;
  } catch (error) {
    return `${(error as Error).message} ("apt-get install podman runc catatonit")`;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Below `base`: the folder that they run in, and the sandboxes. */
export function containerSandboxes(
  base: string,
  settings: Omit<SandboxSettings, 'kind'>,
  fixed: string[] = [],
  root = join(base, 'data-home'),
): Sandboxes {
  const isolation = isolationSettings(containerSettings(join(base, 'rootfs'), settings), (path) => path);
  if (isolation?.by !== 'container') throw new Error('not contained');
  const processes = processesAt('test');
  return directorySandboxes({
    ...{ root, place: 'test', processes },
    isolate: (local) => containerSandbox(local, { settings: isolation.settings, hidden: [root], fixed }),
    started: containerProcesses(processes, 'test', isolation.settings.engine),
  });
}

if (process.argv[1] === import.meta.filename) {
  const [base = '', ...words] = process.argv.slice(2);
  const sandbox = await containerSandboxes(base, { network: 'none' }).open('one', { cwd: null });
  const child = await sandbox.spawn(words, { env: {} });
  console.log(JSON.stringify(child.identity));
  await child.exited;
}
