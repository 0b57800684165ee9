import { existsSync, lstatSync, readlinkSync, realpathSync, statSync } from 'node:fs';
import { mkdir, realpath } from 'node:fs/promises';
import { homedir, release } from 'node:os';
import { dirname, isAbsolute, join } from 'node:path';
import { ThroughlineError } from '../../core/errors.ts';
import { identityOfLocal, MARK } from '../../core/process.ts';
import { type Destination, parseAllowed } from '../../core/sandbox/allowlist.ts';
import type { BubblewrapSettings } from '../../core/sandbox/sandbox-settings.ts';
import type { Child, Folder, OpenSandbox, SpawnOptions } from '../../ports/sandbox.ts';
import { type LocalSandboxSettings, localSandbox } from '../shared/local-sandbox.ts';
import { AllowlistProxy, type KeptKey } from '../shared/proxy.ts';
import {
  accessTo,
  isBelow,
  isOfSystem,
  isolationArguments,
  type Mounts,
  PROC_FIXED,
  PROC_HIDDEN,
  programPath,
  SYSTEM_FOLDERS,
} from './arguments.ts';
import { type ControlGroup, makeControlGroup } from './control-groups.ts';
import { checkBubblewrap } from './probe.ts';
import { isFiltered, seccompFilter } from './seccomp.ts';
import { PROXY_PORT, startInBubblewrap } from './start.ts';

export interface BubblewrapParts {
  readonly settings: BubblewrapSettings;
  /** Never seen in a sandbox, apart from what is bound below them: the data home. */
  readonly hidden: readonly string[];
  /** Files that decide how agents are started: not changed from within, also where they lie in the working directory. */
  readonly fixed: readonly string[];
}

/** Checked once: it starts a program. A failure is tried again, because a person may have installed it meanwhile. */
let checked: Promise<void> | null = null;

/**
 * A sandbox whose files are those of the directory sandbox, at the same paths, and whose programs run in bubblewrap: they see nothing
 * else of this machine. Throws `refused` when that cannot be had here.
 */
export async function bubblewrapSandbox(local: LocalSandboxSettings, parts: BubblewrapParts): Promise<OpenSandbox> {
  checked ??= checkBubblewrap().catch((error: unknown) => {
    checked = null;
    throw error;
  });
  await checked;
  if (isOfSystem(local.work)) {
    throw new ThroughlineError(
      'refused',
      `An isolated agent cannot work in ${local.work}: it is a part of the system.`,
      {
        hint: 'Name a directory of your own, or leave it out.',
      },
    );
  }
  const home = join(await realpath(local.folder), 'home');
  await mkdir(home, { recursive: true, mode: 0o700 });
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
  /** By their marks. */
  readonly #running = new Map<string, Limited>();

  constructor(local: LocalSandboxSettings, parts: BubblewrapParts, home: string) {
    this.#local = local;
    this.#parts = parts;
    this.#home = home;
    this.#outside = localSandbox(local);
    this.#binds = bindsOf(parts.settings);
  }

  open(): OpenSandbox {
    const { id, work, state, env: _, ...outside } = this.#outside;
    return {
      ...outside,
      id,
      host: 'bubblewrap',
      work,
      state,
      home: this.#home,
      env: this.#environment(),
      folder: (root) => this.#folder(root),
      spawn: (command, options) => this.#spawn(command, options),
    };
  }

  #environment(): Record<string, string> {
    const { TMPDIR: _, ...env } = this.#outside.env;
    return { ...env, HOME: this.#home };
  }

  async #folder(root: string) {
    const folder = await this.#outside.folder(root);
    const visible = [...this.#written(), ...this.#binds.read];
    if (visible.some((one) => isBelow(folder.path, one))) return asSeen(folder, accessTo(this.#mounts([], false)));
    // The packages of a program are bound when it is started. Whoever looks for the program reads them before that.
    if (`${folder.path}/`.includes('/node_modules/')) return asSeen(folder, () => 'read');
    throw new ThroughlineError('refused', `${root} is not in the sandbox.`, {
      hint: 'Add it to "sandbox.binds" of the settings, or let the agent use the home of its sandbox.',
    });
  }

  async #spawn(command: readonly string[], { env, cwd = this.#local.work, partOf }: SpawnOptions): Promise<Child> {
    const { settings } = this.#parts;
    const whole = { ...this.#environment(), ...env };
    const { network, limits } = settings;
    // An agent chooses the variables of its own commands. It must not choose where a model is: the proxy would connect to it.
    const kept = network === 'model' && partOf === undefined ? keptKey(settings, whole) : null;
    const allow = allowed(settings);
    const seen = network === 'model' ? { ...whole, ...proxyVariables(allow, kept?.variables ?? {}) } : whole;
    const mark = partOf && identityOfLocal(partOf)?.mark;
    const limited = this.#shared(mark) ?? this.#limited();
    const proxy = network === 'model' ? new AllowlistProxy({ allow, model: kept?.key ?? null }) : null;
    const mounts = this.#mounts(command, partOf !== undefined);
    const child = await startInBubblewrap({
      command,
      words: (mark) => isolationArguments({ network, env: { [MARK]: mark }, cwd, mounts }),
      env: seen,
      filter: filter(),
      proxy,
      ...limited,
      openFiles: limits.openFiles ?? null,
      mark,
      on: this.#local.processes,
    });
    if (partOf === undefined) this.#keep(child, limited);
    return child;
  }

  /** The limits of a process hold for its parts as well: otherwise each of its commands had as much again. */
  #shared(mark: string | undefined): Limited | null {
    const { group = null, processes = null } = this.#running.get(mark ?? '') ?? {};
    return group && { group: { ...group, remove: async () => {} }, processes };
  }

  #keep(child: Child, limited: Limited): void {
    const mark = identityOfLocal(child.identity)?.mark ?? '';
    this.#running.set(mark, limited);
    void child.exited.then(() => this.#running.delete(mark));
  }

  /** A limit of processes that root sets has to be a control group's: root's own is not counted. */
  #limited(): Limited {
    const { limits } = this.#parts.settings;
    const { identify } = this.#local.processes;
    const self = identify(process.pid);
    if (self === null) throw new Error('the operating system does not show us our own process');
    try {
      // Bubblewrap itself takes two.
      const processes = limits.processes === undefined ? undefined : limits.processes + 2;
      return { group: makeControlGroup({ ...limits, processes }, { self, identify }), processes: null };
    } catch (error) {
      if (limits.processes === undefined || limits.memoryMb !== undefined || !countsByNamespace()) throw error;
      return { group: null, processes: limits.processes };
    }
  }

  #written(): string[] {
    const { work, state, around } = this.#local;
    return [work, state, this.#home, ...(around?.write ?? []), ...this.#binds.write];
  }

  /** `chosenByAgent`: the command is not ours, so nothing is made visible for it. */
  #mounts(command: readonly string[], chosenByAgent: boolean): Mounts {
    const { work, around } = this.#local;
    const write = this.#written();
    // Where an agent can write, it can put a link: what that leads to was named by nobody but the agent.
    const isOurs = (word: string) => isAbsolute(word) && !write.some((folder) => isBelow(word, folder)) && isFile(word);
    const programs = chosenByAgent ? [] : command.slice(0, 2).filter(isOurs);
    const found = [process.execPath, ...programs].map((path) => ({ path, to: realpathSync(path) }));
    const config = join(work, 'throughline.config.json');
    const hidden = this.#parts.hidden.map(realIfThere);
    // Our own program among them: we are started by it outside.
    const named = [...this.#parts.fixed, ...(around?.fixed ?? []), process.execPath].map(realIfThere);
    const fixed = [...new Set([...named, config])].filter(isFile);
    return {
      system: SYSTEM_FOLDERS.flatMap(systemFolder),
      proc: [...PROC_FIXED, ...PROC_HIDDEN].flatMap((path) => {
        const found = statSync(path, { throwIfNoEntry: false });
        return found === undefined ? [] : [{ path, isFolder: found.isDirectory() }];
      }),
      write,
      read: [
        ...found.map(({ to }) => programPath(to, realIfThere(homedir()))),
        ...(around?.read ?? []).filter((path) => existsSync(path)),
        ...this.#binds.read,
      ],
      links: found.filter(({ path, to }) => path !== to),
      hidden,
      fixed,
      held: [...hidden, ...fixed].flatMap(foldersAbove).filter((path) => existsSync(path)),
    };
  }
}

function filter(): Buffer {
  const { arch } = process;
  if (!isFiltered(arch)) throw new Error(`no filter for ${arch}`); // was checked when the sandbox was opened
  return seccompFilter(arch);
}

function bindsOf({ binds }: BubblewrapSettings): { write: string[]; read: string[] } {
  const real = binds.map(({ path, write = false }) => {
    if (existsSync(path)) return { path: realpathSync(path), write };
    throw new ThroughlineError('refused', `${path} of "sandbox.binds" does not exist.`, {
      hint: 'Create it, or take it out of the settings.',
    });
  });
  const of = (isWritten: boolean) => real.filter(({ write }) => write === isWritten).map(({ path }) => path);
  return { write: of(true), read: of(false) };
}

/** Since Linux 5.14 the processes of a user are counted for each user namespace, and root's never. */
function countsByNamespace(): boolean {
  const [major = 0, minor = 0] = release().split('.').map(Number);
  return process.getuid?.() !== 0 && (major > 5 || (major === 5 && minor >= 14));
}

function realIfThere(path: string): string {
  return existsSync(path) ? realpathSync(path) : path;
}

function foldersAbove(path: string): string[] {
  const above = dirname(path);
  return above === path ? [] : [above, ...foldersAbove(above)];
}

/** We read and write for programs of the sandbox from outside, where nothing is hidden or fixed. */
function asSeen(folder: Folder, access: (path: string) => 'write' | 'read' | null): Folder {
  const check = (path: string, isWritten: boolean) => {
    const may = access(join(folder.path, path));
    if (may === 'write' || (may === 'read' && !isWritten)) return path;
    const why = may === null ? 'is not in the sandbox' : 'cannot be changed from the sandbox';
    throw new ThroughlineError('refused', `${join(folder.path, path)} ${why}.`);
  };
  const [read, written] = [(path: string) => check(path, false), (path: string) => check(path, true)];
  return {
    path: folder.path,
    stat: async (path) => folder.stat(read(path)),
    read: async (path, range) => folder.read(read(path), range),
    list: async (path) => folder.list(read(path)),
    room: async (path) => folder.room(read(path)),
    watch: async (path, changed) => folder.watch(read(path), changed),
    put: async (path, content) => folder.put(written(path), content),
    replace: async (path, content, options) => folder.replace(written(path), content, options),
    append: async (path, content) => folder.append(written(path), content),
    remove: async (path) => folder.remove(written(path)),
  };
}

function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() ?? false;
}

function systemFolder(path: string): Mounts['system'] {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found === undefined) return [];
  return [{ path, link: found.isSymbolicLink() ? readlinkSync(path) : null }];
}

function allowed({ allow }: BubblewrapSettings): Destination[] {
  return allow.flatMap((entry) => parseAllowed(entry) ?? []);
}

const PROXY = `http://127.0.0.1:${PROXY_PORT}`;
/** The same by another address of the loopback, which is never reached through the proxy. */
const MODEL_HOST = '127.0.0.2';
/** What the agent has in place of its key. Some agents start only if they have one. */
const PLACEHOLDER = 'kept-outside-of-the-sandbox';

/** Takes the key out of the environment of an agent. Null: it has none, or none is kept. */
function keptKey(
  { key }: BubblewrapSettings,
  env: Readonly<Record<string, string>>,
): { readonly key: KeptKey; readonly variables: Readonly<Record<string, string>> } | null {
  const value = key === null ? undefined : env[key.variable];
  if (key === null || value === undefined || value === '') return null;
  const { header, variable, urlVariable } = key;
  const url = new URL(env[urlVariable] ?? key.url);
  const said = header === 'authorization' ? `Bearer ${value}` : value;
  return {
    key: { url, header, value: said },
    variables: { [variable]: PLACEHOLDER, [urlVariable]: `http://${MODEL_HOST}:${PROXY_PORT}` },
  };
}

/** Programs reach their own loopback directly, unless the list says that the one of this machine is meant. */
function proxyVariables(allow: readonly Destination[], variables: Readonly<Record<string, string>>) {
  const own = ['localhost', '127.0.0.1', '::1'].filter((host) => !allow.some((entry) => entry.host === host));
  const direct = [...own, MODEL_HOST].join(',');
  return {
    ...{ HTTP_PROXY: PROXY, HTTPS_PROXY: PROXY, http_proxy: PROXY, https_proxy: PROXY },
    ...{ NO_PROXY: direct, no_proxy: direct, NODE_USE_ENV_PROXY: '1' },
    ...variables,
  };
}
