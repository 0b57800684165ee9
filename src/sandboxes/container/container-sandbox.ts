import { randomUUID } from 'node:crypto';
import { statSync } from 'node:fs';
import { mkdir, realpath } from 'node:fs/promises';
import { isAbsolute, join } from 'node:path';
import { ThroughlineError } from '../../core/errors.ts';
import type { ContainerSettings } from '../../core/sandbox/sandbox-settings.ts';
import type { Child, OpenSandbox, SpawnOptions } from '../../ports/sandbox.ts';
import {
  accessTo,
  bindsOf,
  checkWork,
  type Protected,
  seenFolder,
  type Visible,
  visibleOf,
} from '../shared/isolated/visible.ts';
import { wayOut } from '../shared/isolated/way-out.ts';
import { type LocalSandboxSettings, localSandbox } from '../shared/local-sandbox.ts';
import { containerArguments } from './arguments.ts';
import { type Checked, checkContainers } from './check.ts';
import { call, MARK_LABEL, removeLabelled } from './engine.ts';
import { writtenFilter } from './filter.ts';
import { identityOfContainer } from './processes.ts';
import { startInContainer } from './start.ts';

export interface ContainerParts extends Protected {
  readonly settings: ContainerSettings;
}

/** Checks by settings, each done once. A failed one is done again, because a person may have repaired the cause. */
const checked = new Map<string, Promise<Checked>>();
/** Where programs are in an image, by settings and name. */
const found = new Map<string, string>();

/**
 * A sandbox whose files are those of the directory sandbox, at the same paths, and whose programs run in containers, one each. Throws `refused`
 * when this machine cannot run them.
 */
export async function containerSandbox(local: LocalSandboxSettings, parts: ContainerParts): Promise<OpenSandbox> {
  checkWork(local.work);
  const binds = bindsOf(parts.settings);
  for (const path of [...binds.write, ...binds.read]) checkBind(path);
  const folder = await realpath(local.folder);
  const home = join(folder, 'home');
  await mkdir(home, { recursive: true, mode: 0o700 });
  const key = JSON.stringify(parts.settings);
  const check = checked.get(key) ?? checkContainers(parts.settings, folder);
  checked.set(key, check);
  try {
    const known = await check;
    const filter = await writtenFilter(folder, known.filter);
    return new Contained({ ...local, folder }, parts, { home, binds, known, filter }).open();
  } catch (error) {
    checked.delete(key);
    throw error;
  }
}

/** An agent that reaches the socket of the engine can do everything on this machine. */
function checkBind(path: string): void {
  if (!statSync(path).isSocket()) return;
  throw new ThroughlineError(
    'refused',
    `${path} of "sandbox.binds" is a socket: an agent could reach what is behind it.`,
    {
      hint: 'Take it out of the settings.',
    },
  );
}

interface Opened {
  readonly home: string;
  readonly binds: ReturnType<typeof bindsOf>;
  readonly known: Checked;
  /** The file with the filter of system calls. */
  readonly filter: string;
}

class Contained {
  readonly #local: LocalSandboxSettings;
  readonly #parts: ContainerParts;
  readonly #opened: Opened;
  readonly #outside: OpenSandbox;

  constructor(local: LocalSandboxSettings, parts: ContainerParts, opened: Opened) {
    this.#local = local;
    this.#parts = parts;
    this.#opened = opened;
    this.#outside = localSandbox(local);
  }

  open(): OpenSandbox {
    const { engine, root } = this.#parts.settings;
    return {
      ...this.#outside,
      host: `container ${engine} ${'image' in root ? root.image : root.folder}`,
      home: this.#opened.home,
      ownHome: true,
      env: this.#environment(),
      folder: async (path) =>
        seenFolder(await this.#outside.folder(path), { ...this.#visible(), read: this.#opened.binds.read }),
      find: (program) => this.#find(program),
      spawn: (command, options) => this.#spawn(command, options),
    };
  }

  #environment(): Record<string, string> {
    const { TMPDIR: _, SHELL: __, ...env } = this.#outside.env;
    return { ...env, HOME: this.#opened.home, PATH: this.#opened.known.path };
  }

  #visible(): Visible {
    return visibleOf(this.#local, this.#opened.home, this.#opened.binds, this.#parts);
  }

  #contained(mark: string, part: string | null) {
    const { known, filter } = this.#opened;
    return { settings: this.#parts.settings, visible: this.#visible(), mark, part, filter, most: known.most };
  }

  async #spawn(command: readonly string[], { env, cwd = this.#local.work, partOf }: SpawnOptions): Promise<Child> {
    const { settings } = this.#parts;
    const { engine } = settings;
    const partOfMark = partOf && identityOfContainer(partOf)?.mark;
    const part = partOfMark === undefined ? null : { mark: partOfMark, id: randomUUID() };
    const name = join(this.#local.folder, `run-${randomUUID()}`);
    const pidFiles = engine === 'podman' ? { first: `${name}.pid`, conmon: `${name}.conmon` } : null;
    try {
      return await startInContainer({
        ...{ engine, command, cwd, part, pidFiles, on: this.#local.processes },
        words: (mark) => containerArguments({ ...this.#contained(mark, part?.id ?? null), pidFiles }),
        ...wayOut(settings, { ...this.#environment(), ...env }, partOf !== undefined),
      });
    } catch (error) {
      if (error instanceof ThroughlineError) throw error;
      const message = `Cannot start ${command[0]}: ${(error as Error).message}`;
      throw new ThroughlineError('agent_unavailable', message, {
        hint: 'Check the agent\'s "command" and "env".',
        cause: error,
      });
    }
  }

  /** Looks for mounted paths outside, and for all others in a container. */
  async #find(program: string): Promise<string | null> {
    if (program === '' || program.includes('\0') || (/[/\\]/.test(program) && !isAbsolute(program))) return null;
    if (isAbsolute(program) && accessTo(this.#visible())(program) !== null) return this.#outside.find(program);
    const key = JSON.stringify([this.#parts.settings, program]);
    const known = found.get(key);
    if (known !== undefined) return known;
    const { engine } = this.#parts.settings;
    const mark = this.#local.processes.newMark();
    const words = containerArguments({ ...this.#contained(mark, null), pidFiles: null });
    try {
      const path = (await call(engine, [...words, '-c', FIND, 'sh', program])).trimEnd();
      if (path !== '') found.set(key, path);
      return path === '' ? null : path;
    } catch (error) {
      await removeLabelled(engine, `${MARK_LABEL}=${mark}`);
      throw error;
    }
  }
}

const FIND = `
is() { [ -f "$1" ] && [ -x "$1" ] && printf '%s\\n' "$1"; }
case $1 in
/*) is "$1" ;;
*) IFS=:; for folder in $PATH; do case $folder in /*) is "$folder/$1" && break ;; esac; done ;;
esac
exit 0`;
