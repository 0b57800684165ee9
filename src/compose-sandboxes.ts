/// <reference path="./sandboxes/vendors/packages.d.ts" />
import { homedir } from 'node:os';
import { extname, join, resolve } from 'node:path';
import { type Isolation, isolationSettings, sshSettings } from './core/sandbox/sandbox-settings.ts';
import { isVendor, type VendorSettings, vendorSettings } from './core/sandbox/vendor-settings.ts';
import { placeOf, sharedPlace } from './host/place.ts';
import { processesAt } from './host/processes.ts';
import type { Setup } from './host/settings-file.ts';
import type { Sandboxes } from './ports/sandbox.ts';
import { containerProcesses } from './sandboxes/container/processes.ts';
import { type DirectorySettings, directorySandboxes } from './sandboxes/directory/directory-sandboxes.ts';
import { remembered } from './sandboxes/shared/remembered.ts';
import type { Vendor, VendorOptions } from './sandboxes/vendors/vendor.ts';

/** Makes the sandboxes that the settings describe. */
export function composeSandboxes(setup: Setup): Sandboxes {
  const { settings, base, home } = setup;
  const elsewhere = sandboxesElsewhere(setup);
  if (elsewhere !== null) return elsewhere;
  const place = placeAt(setup);
  const processes = processesAt(place, home);
  const isolation = isolationSettings(settings.sandbox, (path) => resolve(base, path));
  // Also if the settings name no containers any more: earlier programs may still run in one.
  const started = containerProcesses(
    processes,
    place,
    isolation?.by === 'container' ? isolation.settings.engine : null,
  );
  const common = { root: sandboxRoot(setup), home, place, processes, started };
  const { worktree = false, directories } = settings.sandbox;
  const choosable = directories?.map((path) => resolve(base, path)) ?? [homedir()];
  return directorySandboxes({
    ...common,
    worktree,
    choosable,
    ...(isolation && { isolate: isolateBy(isolation, setup) }),
  });
}

function isolateBy(isolation: Isolation, setup: Setup): NonNullable<DirectorySettings['isolate']> {
  const { home, file } = setup;
  return async (local) => {
    const kept = { hidden: [home, sandboxRoot(setup)], fixed: file === null ? [] : [file] };
    if (isolation.by === 'container') {
      const { containerSandbox } = await import('./sandboxes/container/container-sandbox.ts');
      return containerSandbox(local, { settings: isolation.settings, ...kept });
    }
    const { bubblewrapSandbox } = await import('./sandboxes/bubblewrap/bubblewrap-sandbox.ts');
    return bubblewrapSandbox(local, { settings: isolation.settings, ...kept });
  };
}

/** Sandboxes whose files are on another machine; null: they are on this one. */
function sandboxesElsewhere({ settings, base, home }: Setup): Sandboxes | null {
  const ssh = sshSettings(settings.sandbox, (path) => resolve(base, path));
  const { kind = 'directory', machine = {} } = settings.sandbox;
  if (isVendor(kind)) return rented(vendorSettings(kind, machine, process.env), placeOf(home), home);
  if (ssh === null) return null;
  const { place } = ssh;
  const load = remembered(async () => {
    const { sshSandboxes } = await import('./sandboxes/ssh/ssh-sandboxes.ts');
    const knownHosts = ssh.knownHosts ?? join(homedir(), '.ssh', 'known_hosts');
    return sshSandboxes({ ...ssh, knownHosts, processes: processesAt(place, home) });
  });
  return loadedLater({ place, home: place }, load);
}

function rented(settings: VendorSettings, place: string, home: string): Sandboxes {
  const { kind, image, port, awakeMs } = settings;
  const vendor = (prefix: string) => vendorOf(settings, { prefix, image, port, awakeMs });
  const load = remembered(async () => {
    const { vendorSandboxes } = await import('./sandboxes/vendors/vendor-sandboxes.ts');
    return vendorSandboxes({ kind, place, home, image: image ?? '', port, awakeMs, vendor, program: bridgeProgram });
  });
  return { ...loadedLater({ place, home }, load), rest: async (id) => (await load()).rest?.(id) };
}

async function vendorOf({ kind, account }: VendorSettings, options: VendorOptions): Promise<Vendor> {
  const { installed } = await import('./sandboxes/shared/installed.ts');
  if (kind === 'e2b') {
    const { e2bVendor } = await import('./sandboxes/vendors/e2b.ts');
    return e2bVendor(await installed('e2b', () => import('e2b')), options, account?.key ?? null);
  }
  const { vercelVendor } = await import('./sandboxes/vendors/vercel.ts');
  const credentials = account && { token: account.key, teamId: account.team, projectId: account.project };
  return vercelVendor(await installed('@vercel/sandbox', () => import('@vercel/sandbox')), options, credentials);
}

/** One file in the published package; in a checkout, the file and the sources that it imports. */
async function bridgeProgram() {
  const { programFiles } = await import('./sandboxes/vendors/program-files.ts');
  return programFiles(new URL('.', import.meta.url), `bridge${extname(import.meta.url)}`);
}

/** Loads the sandboxes when they are first used. Without `rest`, which not all of them have. */
function loadedLater(at: Pick<Sandboxes, 'place' | 'home'>, load: () => Promise<Sandboxes>): Sandboxes {
  return {
    ...at,
    open: async (id, options) => (await load()).open(id, options),
    probe: async (options) => (await load()).probe(options),
    status: async (process) => (await load()).status(process),
    end: async (process) => (await load()).end(process),
    orphans: async () => (await load()).orphans(),
    list: async () => (await load()).list(),
    find: async (id) => (await load()).find(id),
    changes: async (id, options) => (await load()).changes(id, options),
    files: async (id, options) => (await load()).files(id, options),
    remove: async (id, options) => (await load()).remove(id, options),
    checkDirectory: async (path, base) => (await load()).checkDirectory(path, base),
  };
}

/** The place of the sandboxes of this machine: that of the data home, or a named one that several data homes share. */
export function placeAt({ settings, home }: Setup): string {
  const { place } = settings.sandbox;
  return place === undefined ? placeOf(home) : sharedPlace(place);
}

/** Whether the sandboxes are on this machine. */
export function areHere({ settings }: Setup): boolean {
  const { kind = 'directory' } = settings.sandbox;
  return kind !== 'ssh' && !isVendor(kind);
}

/** Where the sandboxes of this machine are. */
export function sandboxRoot(setup: Setup): string {
  const { settings, base, home } = setup;
  const { root } = settings.sandbox;
  return root === undefined || !areHere(setup) ? join(home, 'sandboxes') : resolve(base, root);
}
