import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { bubblewrapSettings, sshSettings } from './core/sandbox/sandbox-settings.ts';
import { placeOf } from './host/place.ts';
import { processesAt } from './host/processes.ts';
import type { Setup } from './host/settings-file.ts';
import type { Sandboxes } from './ports/sandbox.ts';
import { type DirectorySettings, directorySandboxes } from './sandboxes/directory/directory-sandboxes.ts';

/** Settings in, sandboxes out. */
export function composeSandboxes(setup: Setup): Sandboxes {
  const { home } = setup;
  const elsewhere = sandboxesElsewhere(setup);
  if (elsewhere !== null) return elsewhere;
  const place = placeOf(home);
  const isolate = isolationOf(setup);
  const common = { root: sandboxRoot(setup), home, place, processes: processesAt(place, home) };
  const { worktree = false } = setup.settings.sandbox;
  return directorySandboxes({ ...common, worktree, ...(isolate && { isolate }) });
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

/** Sandboxes whose files are on another machine; null: they are on this one. */
function sandboxesElsewhere({ settings, base, home }: Setup): Sandboxes | null {
  const ssh = sshSettings(settings.sandbox, (path) => resolve(base, path));
  if (ssh === null) return null;
  const { place } = ssh;
  return loadedLater(place, async () => {
    const { sshSandboxes } = await import('./sandboxes/ssh/ssh-sandboxes.ts');
    const knownHosts = ssh.knownHosts ?? join(homedir(), '.ssh', 'known_hosts');
    return sshSandboxes({ ...ssh, knownHosts, processes: processesAt(place, home) });
  });
}

/** Whoever does not use them does not load them. `place` is their address as well. */
function loadedLater(place: string, load: () => Promise<Sandboxes>): Sandboxes {
  let loaded: Promise<Sandboxes> | null = null;
  const there = () => (loaded ??= load());
  return {
    place,
    home: place,
    open: async (id, options) => (await there()).open(id, options),
    probe: async (options) => (await there()).probe(options),
    status: async (process) => (await there()).status(process),
    end: async (process) => (await there()).end(process),
    orphans: async () => (await there()).orphans(),
    count: async () => (await there()).count(),
    find: async (id) => (await there()).find(id),
    changes: async (id, options) => (await there()).changes(id, options),
    files: async (id, options) => (await there()).files(id, options),
    remove: async (id) => (await there()).remove(id),
    checkDirectory: async (path) => (await there()).checkDirectory(path),
  };
}

/** Whether the sandboxes are on this machine. */
export function areHere({ settings }: Setup): boolean {
  return settings.sandbox.kind !== 'ssh';
}

/** Where the sandboxes of this machine are. */
export function sandboxRoot(setup: Setup): string {
  const { settings, base, home } = setup;
  const { root } = settings.sandbox;
  return root === undefined || !areHere(setup) ? join(home, 'sandboxes') : resolve(base, root);
}
