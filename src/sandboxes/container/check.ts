import { randomUUID } from 'node:crypto';
import { existsSync, lstatSync, readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ThroughlineError } from '../../core/errors.ts';
import type { ContainerSettings } from '../../core/sandbox/sandbox-settings.ts';
import { SETGID, SETUID } from '../shared/isolated/modes.ts';
import { bindsOf } from '../shared/isolated/visible.ts';
import { containerArguments } from './arguments.ts';
import { call, type EngineName, failureText, MARK_LABEL, removeLabelled } from './engine.ts';
import { filterFrom, writtenFilter } from './filter.ts';

/*
 * Starts one container with the options of every program, and checks from inside that they are in effect: engines ignore limits that they
 * cannot enforce, and an engine on another machine has other files.
 */

/** What the check has found out about containers of these settings. */
export interface Checked {
  /** The PATH of programs in them. */
  readonly path: string;
  /** The filter of system calls. */
  readonly filter: string;
  readonly most: { readonly openFiles: number; readonly processes: number };
}

const INSTALL: Readonly<Record<EngineName, string>> = {
  podman:
    'Install it: "apt install podman runc catatonit", "dnf install podman" or "pacman -S podman". Or set "sandbox.kind" to "directory", which does not isolate.',
  docker:
    'Install it, and podman\'s filter of system calls: "apt install docker.io golang-github-containers-common", or see docs.docker.com/engine/install and docs/sandboxes.md. Or set "sandbox.kind" to "directory", which does not isolate.',
};

const refuse = (engine: EngineName, why: string, hint: string, cause?: unknown) =>
  new ThroughlineError('refused', `The sandbox "container" cannot be used here: ${why}.`, {
    hint: hint || `Try it: "${engine} run --rm hello-world".`,
    cause,
  });

const LOOK = `
printf '%s\\n' "$PATH"
cat "$1/given"
echo written > "$1/written"
chmod 6755 "$1/written" 2>/dev/null
cd /sys/fs/cgroup
cat pids/pids.max 2>/dev/null || cat pids.max 2>/dev/null || echo unknown
cat memory/memory.limit_in_bytes 2>/dev/null || cat memory.max 2>/dev/null || echo unknown
ulimit -n
grep -c '^CapBnd:[[:space:]]*0*$' /proc/self/status
grep -c '^Seccomp:[[:space:]]*2$' /proc/self/status
command -v head >/dev/null && echo head`;

const MOST_PROCESSES = 16_384;

/** Throws `refused` with the reason and what to do about it. `folder`: for temporary files. */
export async function checkContainers(settings: ContainerSettings, folder: string): Promise<Checked> {
  const { engine, root, network } = settings;
  if (process.platform !== 'linux') {
    throw refuse(engine, 'it needs Linux', 'Set "sandbox.kind" to "directory", which does not isolate.');
  }
  if (network === 'model' && engine === 'docker' && process.getuid?.() !== 0) {
    throw refuse(engine, 'the network "model" with docker needs root', 'Use podman, or the network "none" or "all".');
  }
  if ('folder' in root) checkFolder(engine, root.folder);
  const filter = await filterOf(engine);
  const tried = await mkdtemp(join(folder, 'check-'));
  try {
    return await lookInside(settings, tried, filter);
  } finally {
    await rm(tried, { recursive: true, force: true });
  }
}

function checkFolder(engine: EngineName, folder: string): void {
  const hint = 'Correct "sandbox.rootfs" of the settings.';
  if (/[:\0\n]/.test(folder)) throw refuse(engine, `podman cannot take the path ${JSON.stringify(folder)}`, hint);
  if (folder === '/') throw refuse(engine, 'with "/" as its root, an agent would see all of this machine', hint);
  if (!lstatSync(folder, { throwIfNoEntry: false })?.isDirectory())
    throw refuse(engine, `${folder} is not a folder`, hint);
}

/** Where podman installs its filter. Docker gets it as well: its own allows setuid programs, and docker does not show it. */
const PROFILE = '/usr/share/containers/seccomp.json';

async function filterOf(engine: EngineName): Promise<string> {
  const format =
    engine === 'podman'
      ? '{{.Host.Security.SECCOMPEnabled}} {{.Host.Security.SECCOMPProfilePath}}'
      : '{{.ServerVersion}}';
  const info = await call(engine, ['info', '--format', format]).catch((cause: NodeJS.ErrnoException) => {
    if (cause.code === 'ENOENT') throw refuse(engine, `${engine} is not installed`, INSTALL[engine], cause);
    throw refuse(engine, `"${engine} info" fails (${failureText(cause)})`, '', cause);
  });
  if (engine === 'docker' && !existsSync(PROFILE)) {
    throw refuse(
      engine,
      "docker's own filter of system calls allows setuid programs, which other users could run as you",
      `Install podman's filter, ${PROFILE} ("apt install golang-github-containers-common", "dnf install containers-common"), or use podman.`,
    );
  }
  const hint = 'Install podman with its profile: "containers-common" has it.';
  const [enabled, ...path] = engine === 'docker' ? ['true', PROFILE] : info.trim().split(' ');
  if (enabled !== 'true') throw refuse(engine, 'it cannot filter system calls', hint);
  try {
    const filter = filterFrom(readFileSync(path.join(' '), 'utf8'));
    if (filter !== null) return filter;
  } catch (cause) {
    const why = (cause as Error).message;
    throw refuse(engine, `podman's filter of system calls cannot be read (${why})`, hint, cause);
  }
  throw refuse(engine, "podman's filter of system calls is of an unknown kind", hint);
}

async function lookInside(settings: ContainerSettings, tried: string, filter: string): Promise<Checked> {
  const { engine, root, limits } = settings;
  const [given, mark, most] = [randomUUID(), randomUUID(), ownLimits()];
  await writeFile(join(tried, 'given'), `${given}\n`);
  const file = await writtenFilter(tried, filter);
  const { write, read } = bindsOf(settings);
  const visible = { write: [tried], read: [...write, ...read], hidden: [], fixed: [], held: [] };
  const contained = { settings, visible, mark, part: null, filter: file, most, pidFiles: null };
  const words = containerArguments({ ...contained, settings: { ...settings, network: 'none' } });
  const out = await call(engine, [...words, '-c', LOOK, 'sh', tried]).catch(async (cause: unknown) => {
    await removeLabelled(engine, `${MARK_LABEL}=${mark}`).catch(() => {});
    const name = 'image' in root ? root.image : root.folder;
    const hint = `Check that "${engine} run --rm ${'image' in root ? '' : '--rootfs '}${name} true" works. An image has to be pulled before.`;
    throw refuse(engine, `${engine} cannot start a container of ${name} (${failureText(cause)})`, hint, cause);
  });
  const [path = '', seen, pids, memory, openFiles, noCapabilities, filtered, head] = out.split('\n');
  const written = lstatSync(join(tried, 'written'), { throwIfNoEntry: false });
  const isWrong = (why: string, hint = '') => refuse(engine, why, hint);
  if (seen !== given || written === undefined || written.uid !== process.getuid?.()) {
    throw isWrong(
      'containers do not see the files of this machine as ours',
      'The engine has to run on this machine, for this user.',
    );
  }
  if (noCapabilities !== '1' || filtered !== '1' || (written.mode & (SETUID | SETGID)) !== 0)
    throw isWrong('containers keep privileges that they should not have');
  if (head !== 'head') throw isWrong('the image lacks "head"', 'Use an image with the usual programs of a system.');
  const isHeld = {
    processes: limits.processes === undefined || Number(pids) === limits.processes + 1,
    memoryMb: limits.memoryMb === undefined || Number(memory) === limits.memoryMb * 2 ** 20,
    openFiles: limits.openFiles === undefined || Number(openFiles) === limits.openFiles,
  };
  for (const [name, holds] of Object.entries(isHeld)) {
    if (holds) continue;
    throw new ThroughlineError('refused', `Cannot enforce "sandbox.limits.${name}" here: ${engine} does not.`, {
      hint: 'Run as root, or on a system with control groups of version 2, or leave the limit out.',
    });
  }
  return { path, filter, most };
}

function ownLimits(): Checked['most'] {
  const limits = readFileSync('/proc/self/limits', 'latin1');
  const of = (name: string) => {
    const [, most = ''] = new RegExp(`^${name}\\s+\\S+\\s+(\\S+)`, 'm').exec(limits) ?? [];
    return most === 'unlimited' || most === '' ? 1_048_576 : Number(most);
  };
  // Podman can only lower its own limits.
  return { openFiles: of('Max open files'), processes: Math.min(of('Max processes'), MOST_PROCESSES) };
}
