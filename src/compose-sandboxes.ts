import { join, resolve } from 'node:path';
import { bubblewrapSettings } from './core/sandbox/sandbox-settings.ts';
import { placeOf } from './host/place.ts';
import { processesAt } from './host/processes.ts';
import type { Setup } from './host/settings-file.ts';
import type { Sandboxes } from './ports/sandbox.ts';
import { type DirectorySettings, directorySandboxes } from './sandboxes/directory/directory-sandboxes.ts';

/** Settings in, sandboxes out. */
export function composeSandboxes(setup: Setup): Sandboxes {
  const { home } = setup;
  const place = placeOf(home);
  const isolate = isolationOf(setup);
  const common = { root: sandboxRoot(setup), home, place, processes: processesAt(place, home) };
  return directorySandboxes({ ...common, ...(isolate && { isolate }) });
}

function isolationOf(setup: Setup): DirectorySettings['isolate'] | null {
  const { settings, base, home, file } = setup;
  const isolation = bubblewrapSettings(settings.sandbox, (path) => resolve(base, path));
  if (isolation === null) return null;
  return async (local) => {
    const { bubblewrapSandbox } = await import('./sandboxes/bubblewrap/bubblewrap-sandbox.ts');
    const hidden = [home, sandboxRoot(setup)];
    return bubblewrapSandbox(local, { settings: isolation, hidden, fixed: file === null ? [] : [file] });
  };
}

/** Where the sandboxes are. */
export function sandboxRoot({ settings, base, home }: Setup): string {
  return settings.sandbox.root === undefined ? join(home, 'sandboxes') : resolve(base, settings.sandbox.root);
}
