// Sandboxes in bubblewrap, for tests. As a program: starts another program in one, and does not end it.
import { execFileSync } from 'node:child_process';
import { isolationSettings } from '../../../src/core/sandbox/sandbox-settings.ts';
import { processesAt } from '../../../src/host/processes.ts';
import type { Sandboxes } from '../../../src/ports/sandbox.ts';
import { bubblewrapSandbox } from '../../../src/sandboxes/bubblewrap/bubblewrap-sandbox.ts';
import { directorySandboxes } from '../../../src/sandboxes/directory/directory-sandboxes.ts';

type SandboxSettings = Parameters<typeof isolationSettings>[0];

/** Why tests of it are skipped here. Null: they are not. */
export function whyNoBubblewrap(): string | null {
  try {
    execFileSync('bwrap', ['--version'], { stdio: 'ignore' });
    return null;
  } catch {
    return 'bubblewrap is not installed ("apt-get install bubblewrap")';
  }
}

export function isolatedSandboxes(
  root: string,
  settings: Omit<SandboxSettings, 'kind'>,
  fixed: string[] = [],
): Sandboxes {
  const isolation = isolationSettings({ ...settings, kind: 'bubblewrap' }, (path) => path)?.settings;
  if (isolation === undefined) throw new Error('not isolated');
  const isolate = (local: Parameters<typeof bubblewrapSandbox>[0]) =>
    bubblewrapSandbox(local, { settings: isolation, hidden: [root], fixed });
  return directorySandboxes({ root, place: 'test', processes: processesAt('test'), isolate });
}

if (process.argv[1] === import.meta.filename) {
  const [root = '', ...words] = process.argv.slice(2);
  const sandbox = await isolatedSandboxes(root, { network: 'none' }).open('one', { cwd: null });
  const child = await sandbox.spawn(words, { env: {} });
  console.log(JSON.stringify(child.identity));
  await child.exited;
}
