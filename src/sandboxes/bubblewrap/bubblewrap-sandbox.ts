import { lstatSync, mkdirSync, readlinkSync, realpathSync, statSync } from 'node:fs';
import { homedir, release } from 'node:os';
import { isAbsolute, join } from 'node:path';
import { identityOfLocal, MARK } from '../../core/process.ts';
import type { IsolationSettings } from '../../core/sandbox/sandbox-settings.ts';
import type { Child, Folder, OpenSandbox, SpawnOptions } from '../../ports/sandbox.ts';
import {
  asSeen,
  bindsOf,
  checkWork,
  isBelow,
  isFile,
  isSeen,
  type Protected,
  realIfThere,
  seenFolder,
  visibleOf,
} from '../shared/isolated/visible.ts';
import { wayOut } from '../shared/isolated/way-out.ts';
import { type LocalSandboxSettings, localSandbox } from '../shared/local-sandbox.ts';
import { remembered } from '../shared/remembered.ts';
import {
  etcPaths,
  isolationArguments,
  type Mounts,
  PROC_FIXED,
  PROC_HIDDEN,
  programPath,
  SYSTEM_FOLDERS,
  systemPaths,
} from './arguments.ts';
import { type ControlGroup, makeControlGroup } from './control-groups.ts';
import { checkBubblewrap } from './probe.ts';
import { isFiltered, seccompFilter } from './seccomp.ts';
import { startInBubblewrap } from './start.ts';

export interface BubblewrapParts extends Protected {
  readonly settings: IsolationSettings;
}

/** Checked once, because the check starts a program. */
const checked = remembered(() => checkBubblewrap());

/**
 * A sandbox whose files are those of the directory sandbox, at the same paths, and whose programs run in bubblewrap: they see nothing
 * else of this machine. Throws `refused` when this machine cannot run bubblewrap.
 */
export async function bubblewrapSandbox(local: LocalSandboxSettings, parts: BubblewrapParts): Promise<OpenSandbox> {
  await checked();
  checkWork(local.work);
  // Synchronous calls are faster here, and every start of an agent waits for them.
  const home = join(realpathSync.native(local.folder), 'home');
  mkdirSync(home, { recursive: true, mode: 0o700 });
  return new Isolated(local, parts, home).open();
}

interface Limited {
  readonly group: ControlGroup | null;
  readonly processes: number | null;
}

class Isolated {
  readonly #local: LocalSandboxSettings;
  readonly #parts: BubblewrapParts;
  readonly #home: string;
  readonly #outside: OpenSandbox;
  readonly #binds: { readonly write: string[]; readonly read: string[] };
  /** The limits of running programs, by their marks. */
  readonly #running = new Map<string, Limited>();

  constructor(local: LocalSandboxSettings, parts: BubblewrapParts, home: string) {
    this.#local = local;
    this.#parts = parts;
    this.#home = home;
    this.#outside = localSandbox(local);
    this.#binds = bindsOf(parts.settings);
  }

  open(): OpenSandbox {
    return {
      ...this.#outside,
      host: 'bubblewrap',
      home: this.#home,
      ownHome: true,
      env: this.#environment(),
      folder: (root) => this.#folder(root),
      spawn: (command, options) => this.#spawn(command, options),
    };
  }

  #environment(): Record<string, string> {
    const { TMPDIR: _, ...env } = this.#outside.env;
    return { ...env, HOME: this.#home };
  }

  async #folder(root: string): Promise<Folder> {
    const mounts = this.#mounts([], false);
    // The agent's own programs are for running, not for reading.
    const visible = { ...mounts, read: this.#binds.read };
    const folder = await this.#outside.folder(root);
    // The packages of a program are bound when it is started. Adapters read them before that, to find the program.
    const isPackage = `${folder.path}/`.includes('/node_modules/');
    if (isPackage && !isSeen(folder.path, visible)) return asSeen(folder, () => 'read');
    return seenFolder(folder, visible, systemPaths(mounts));
  }

  async #spawn(command: readonly string[], { env, cwd = this.#local.work, partOf }: SpawnOptions): Promise<Child> {
    const { settings } = this.#parts;
    const { network, limits } = settings;
    const isPart = partOf !== undefined;
    const mark = partOf && identityOfLocal(partOf)?.mark;
    const limited = this.#shared(mark) ?? this.#limited();
    const mounts = this.#mounts(command, isPart);
    const child = await startInBubblewrap({
      command,
      words: (mark, files) => isolationArguments({ network, env: { [MARK]: mark }, cwd, mounts, files }),
      files: etcPaths(network),
      ...wayOut(settings, { ...this.#environment(), ...env }, isPart),
      filter: filter(),
      ...limited,
      openFiles: limits.openFiles ?? null,
      mark,
      on: this.#local.processes,
    });
    if (!isPart) this.#keep(child, limited);
    return child;
  }

  /** A part shares the limits of the whole. Otherwise each command of an agent would have as much again. */
  #shared(mark: string | undefined): Limited | null {
    const { group = null, processes = null } = this.#running.get(mark ?? '') ?? {};
    return group && { group: { ...group, remove: async () => {} }, processes };
  }

  #keep(child: Child, limited: Limited): void {
    const mark = identityOfLocal(child.identity)?.mark ?? '';
    this.#running.set(mark, limited);
    void child.exited.then(() => this.#running.delete(mark));
  }

  /** Root needs a control group to limit processes: "ulimit" does not count the processes of root. */
  #limited(): Limited {
    const { limits } = this.#parts.settings;
    const { identify } = this.#local.processes;
    const self = identify(process.pid);
    if (self === null) throw new Error('the operating system does not show us our own process');
    try {
      // Two of them are bubblewrap's own.
      const processes = limits.processes === undefined ? undefined : limits.processes + 2;
      return { group: makeControlGroup({ ...limits, processes }, { self, identify }), processes: null };
    } catch (error) {
      if (limits.processes === undefined || limits.memoryMb !== undefined || !countsByNamespace()) throw error;
      return { group: null, processes: limits.processes };
    }
  }

  /** `chosenByAgent`: the command is not ours, so nothing is made visible for it. */
  #mounts(command: readonly string[], chosenByAgent: boolean): Mounts {
    const { hidden, fixed } = this.#parts;
    // Agents cannot change our own program either: it also runs outside of the sandbox.
    const visible = visibleOf(this.#local, this.#home, this.#binds, { hidden, fixed: [...fixed, process.execPath] });
    // An agent can put a link into a folder where it can write, and must not choose what is bound.
    const isOurs = (word: string) =>
      isAbsolute(word) && !visible.write.some((folder) => isBelow(word, folder)) && isFile(word);
    const programs = chosenByAgent ? [] : programAndScript(command).filter(isOurs);
    const found = [process.execPath, ...programs].map((path) => ({ path, to: realpathSync(path) }));
    return {
      ...visible,
      system: SYSTEM_FOLDERS.flatMap(systemFolder),
      proc: [...PROC_FIXED, ...PROC_HIDDEN].flatMap((path) => {
        const found = statSync(path, { throwIfNoEntry: false });
        return found === undefined ? [] : [{ path, isFolder: found.isDirectory() }];
      }),
      read: [...found.map(({ to }) => programPath(to, realIfThere(homedir()))), ...visible.read],
      links: found.filter(({ path, to }) => path !== to),
    };
  }
}

/** Node has options before the path of its script. */
function programAndScript([program = '', ...args]: readonly string[]): string[] {
  const script = program === process.execPath ? args.find((word) => !word.startsWith('-')) : args[0];
  return script === undefined ? [program] : [program, script];
}

function filter(): Buffer {
  const { arch } = process;
  if (!isFiltered(arch)) throw new Error(`no filter for ${arch}`); // was checked when the sandbox was opened
  return seccompFilter(arch);
}

/** Since Linux 5.14 the processes of a user are counted for each user namespace. Those of root are never counted. */
function countsByNamespace(): boolean {
  const [major = 0, minor = 0] = release().split('.').map(Number);
  return process.getuid?.() !== 0 && (major > 5 || (major === 5 && minor >= 14));
}

function systemFolder(path: string): Mounts['system'] {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found === undefined) return [];
  return [{ path, link: found.isSymbolicLink() ? readlinkSync(path) : null }];
}
