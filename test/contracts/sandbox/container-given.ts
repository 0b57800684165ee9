// Sandboxes in containers, for tests. As a program: starts another program in one, and does not end it.
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { isolationSettings } from '../../../src/core/sandbox/sandbox-settings.ts';
import { processesAt } from '../../../src/host/processes.ts';
import type { Sandboxes } from '../../../src/ports/sandbox.ts';
import { checkContainers } from '../../../src/sandboxes/container/check.ts';
import { containerSandbox } from '../../../src/sandboxes/container/container-sandbox.ts';
import { call, type EngineName, failureText } from '../../../src/sandboxes/container/engine.ts';
import { containerProcesses } from '../../../src/sandboxes/container/processes.ts';
import { directorySandboxes } from '../../../src/sandboxes/directory/directory-sandboxes.ts';

type SandboxSettings = Parameters<typeof isolationSettings>[0];

/** The programs of this machine, and Node with them. */
export const PROGRAMS = ['/usr', dirname(dirname(realpathSync(process.execPath)))].filter(
  (path, at) => at === 0 || !path.startsWith('/usr'),
);

/** A root folder without an image. It has only links into what is bound. Docker puts its init into /sbin, so that is a folder there. */
export function writeRootfs(folder: string, engine: EngineName = 'podman'): string {
  const [own, links] = engine === 'docker' ? [['sbin'], []] : [[], ['sbin']];
  for (const name of ['etc', 'proc', 'sys', 'dev', 'tmp', 'run', 'var/tmp', 'usr', ...own])
    mkdirSync(join(folder, name), { recursive: true });
  for (const name of ['bin', 'lib', 'lib64', ...links]) symlinkSync(`usr/${name}`, join(folder, name));
  writeFileSync(join(folder, 'etc/passwd'), 'root:x:0:0:root:/root:/bin/sh\n');
  return folder;
}

/** The same folder as an image for docker, which cannot run a folder. It has no programs, and stays for the next run. */
const IMAGE = 'throughline-test:1';

/** `rootfs`: a root folder without programs. Settings that name another one are complete. */
export const containerSettings = (rootfs: string, settings: Omit<SandboxSettings, 'kind'> = {}): SandboxSettings => ({
  ...settings,
  kind: 'container',
  ...(settings.rootfs === undefined && {
    ...(settings.image === undefined && (settings.engine === 'docker' ? { image: IMAGE } : { rootfs })),
    binds: [...PROGRAMS.map((path) => ({ path })), ...(settings.binds ?? [])],
  }),
});

const looked = new Map<EngineName, Promise<string | null>>();
const INSTALL = { podman: 'apt-get install podman runc catatonit', docker: 'apt-get install docker.io' };

/** Why tests of it are skipped here. Null: they are not. The check starts containers, so all files of one process share it. */
export function whyNo(engine: EngineName): Promise<string | null> {
  const look = looked.get(engine) ?? lookFor(engine);
  looked.set(engine, look);
  return look;
}

export const whyNoPodman = () => whyNo('podman');

async function lookFor(engine: EngineName): Promise<string | null> {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), `throughline-${engine}-`)));
  try {
    const rootfs = writeRootfs(join(folder, 'rootfs'), engine);
    await call(engine, ['info']);
    if (engine === 'docker') await call(engine, ['image', 'inspect', IMAGE]).catch(() => importInto(engine, rootfs));
    const isolation = isolationSettings(containerSettings(rootfs, { network: 'none', engine }), (path) => path);
    if (isolation?.by === 'container') await checkContainers(isolation.settings, folder);
    return null;
  } catch (error) {
    return `${failureText(error)} ("${INSTALL[engine]}")`;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function importInto(engine: EngineName, rootfs: string): void {
  const script = 'tar -C "$2" -c . | "$1" import - "$3"';
  execFileSync('/bin/sh', ['-c', script, 'sh', engine, rootfs, IMAGE], { stdio: 'ignore' });
}

/** `base`: the folder with the root folder and the sandboxes. */
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
  const [base = '', engine, ...words] = process.argv.slice(2);
  const given = { network: 'none', engine: engine as EngineName } as const;
  const sandbox = await containerSandboxes(base, given).open('one', { cwd: null });
  const child = await sandbox.spawn(words, { env: {} });
  console.log(JSON.stringify(child.identity));
  await child.exited;
}
