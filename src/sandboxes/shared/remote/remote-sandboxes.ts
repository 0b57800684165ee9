import { randomUUID } from 'node:crypto';
import { posix } from 'node:path';
import { ThroughlineError } from '../../../core/errors.ts';
import { checkedId, PROBE } from '../../../core/sandbox/sandbox-id.ts';
import type { Folder, NamedDirectory, OpenSandbox, Sandboxes } from '../../../ports/sandbox.ts';
import { changesInside } from '../changes-inside.ts';
import { noWorkYet } from '../compare.ts';
import { directoryMissing, filesIn } from '../files.ts';
import { remembered } from '../remembered.ts';
import { INHERITED, type RemoteMachine, word, words } from './machine.ts';
import { findScript } from './program-scripts.ts';
import { RemoteFolder } from './remote-folder.ts';
import { type ProgramSettings, RemotePrograms } from './remote-programs.ts';

export interface RemoteSettings extends ProgramSettings {
  /** Where they are, for people: an address. */
  readonly home: string;
  /** The directory of all sandboxes there. A relative one begins at the home of the user there. */
  readonly root: string;
}

interface Inspected {
  /** The real path of the directory of all sandboxes. */
  readonly root: string;
  readonly env: Readonly<Record<string, string>>;
}

/**
 * Sandboxes on another machine: directories `root/<id>/{work,state}` there. They are separate, but not isolated: a program in one can do
 * what the user there can.
 */
export class RemoteSandboxes extends RemotePrograms implements Sandboxes {
  readonly place: string;
  readonly home: string;
  readonly #settings: RemoteSettings;
  readonly #inspected: () => Promise<Inspected>;

  constructor(settings: RemoteSettings) {
    super(settings);
    this.place = settings.place;
    this.home = settings.home;
    this.#settings = settings;
    this.#inspected = remembered(() => inspect(settings.machine, settings.root));
  }

  async open(id: string, { cwd }: { cwd: string | null }): Promise<OpenSandbox> {
    const { root } = await this.#inspected();
    return this.#openAt(id, `${root}/${checkedId(id)}`, cwd);
  }

  async probe({ cwd }: { cwd: string | null } = { cwd: null }): Promise<OpenSandbox & AsyncDisposable> {
    const { root } = await this.#inspected();
    const folder = `${root}/${PROBE}${randomUUID()}`;
    const remove = () => this.#remove(folder);
    try {
      return { ...(await this.#openAt('probe', folder, cwd)), [Symbol.asyncDispose]: remove };
    } catch (error) {
      await remove();
      throw error;
    }
  }

  async list(): Promise<{ root: string; ids: string[] }> {
    const { root } = await this.#inspected();
    const entries = (await this.#folder(root).list('')) ?? [];
    return { root, ids: entries.map(({ name }) => name).filter((name) => !name.startsWith(PROBE)) };
  }

  async find(id: string): Promise<string | null> {
    const { root } = await this.#inspected();
    // This runs before every turn, so it starts no program there.
    const script = `cd -- ${word(root)} 2>/dev/null || exit 2; [ -e ${word(checkedId(id))} ] || [ -L ${word(id)} ]`;
    const { code } = await this.#settings.machine.run(script);
    const isThere = code === 0 || (code !== 1 && (await this.#folder(root).stat(id)) !== null);
    return isThere ? `${root}/${id}` : null;
  }

  async changes(id: string, { cwd }: { cwd: string | null }) {
    if (cwd === null && (await this.find(id)) === null) throw noWorkYet();
    return changesInside(await this.open(id, { cwd }), { within: cwd === null });
  }

  async files(id: string, { cwd, match }: { cwd: string | null; match: string }) {
    const { root } = await this.#inspected();
    const work = `${root}/${checkedId(id)}/work`;
    const directory = await this.checkDirectory(cwd ?? work).catch((cause) => {
      if (cwd === null) return null;
      throw directoryMissing(cwd, cause);
    });
    return directory === null ? { paths: [], more: false } : filesIn(this.#folder(directory.real), match);
  }

  async remove(id: string): Promise<void> {
    const { root } = await this.#inspected();
    await this.#remove(`${root}/${checkedId(id)}`);
  }

  #folder(root: string): Folder {
    return new RemoteFolder(this.#settings.machine, root);
  }

  async #openAt(id: string, folder: string, cwd: string | null): Promise<OpenSandbox> {
    const { machine, place } = this.#settings;
    const { env } = await this.#inspected();
    const [state = '', own = ''] = await this.#directories(
      `${folder}/state`,
      ...(cwd === null ? [`${folder}/work`] : []),
    );
    const work = cwd === null ? own : (await this.checkDirectory(cwd)).real;
    const realPath = (path: string) => realPathOn(machine, path);
    return {
      id,
      host: place,
      work,
      state,
      home: env.HOME ?? '/',
      env,
      realPath,
      folder: async (root) => {
        if (!posix.isAbsolute(root)) throw new ThroughlineError('refused', `${root} is not an absolute path.`);
        return this.#folder(await realPath(root));
      },
      find: async (program) => (await machine.run(findScript(program, env.PATH ?? ''))).stdout.toString() || null,
      spawn: (command, { cwd: directory = work, env: added, partOf }) =>
        this.start({ command, cwd: directory, env: { ...env, ...added } }, partOf),
    };
  }

  /** Creates directories, or keeps existing ones and links to directories. Returns their real paths. */
  async #directories(...paths: string[]): Promise<string[]> {
    const { machine } = this.#settings;
    const script = `umask 077; for d in ${words(paths)}; do mkdir -p -- "$d" && cd -- "$d" && env pwd -P || exit 1; done`;
    const { code, stdout, stderr } = await machine.run(script);
    if (code === 0) return stdout.toString().split('\n');
    throw unusable(paths[0] ?? '', machine.name, stderr);
  }

  /** The directory that the caller named: used as it is, never created. */
  async checkDirectory(path: string): Promise<NamedDirectory> {
    const { machine } = this.#settings;
    const refuse = (why: string, hint: string) =>
      new ThroughlineError('refused', `The working directory ${path} ${why}.`, { hint });
    if (!posix.isAbsolute(path)) throw refuse('is not an absolute path', `Give the whole path on ${machine.name}.`);
    const script = `d=${word(path)}; [ -e "$d" ] || exit 10; [ -d "$d" ] || exit 11; cd -- "$d" && env pwd -P`;
    const { code, stdout, stderr } = await machine.run(script);
    if (code === 0) {
      const real = stdout.toString().slice(0, -1);
      return { path, real, project: real };
    }
    if (code === 10) {
      const hint = 'Create it there first, or leave it out to work in a directory of its own.';
      throw refuse(`does not exist on ${machine.name}`, hint);
    }
    if (code === 11) throw refuse(`is not a directory on ${machine.name}`, 'Name a directory.');
    throw refuse(`cannot be used (${stderr.trim()})`, 'Check its permissions, or name another directory.');
  }

  async #remove(folder: string): Promise<void> {
    const { machine } = this.#settings;
    const { code, stderr } = await machine.run(`rm -rf -- ${word(folder)}`);
    if (code === 0) return;
    throw new ThroughlineError('refused', `Cannot delete all of ${folder} on ${machine.name} (${stderr.trim()}).`, {
      hint: 'Delete the rest by hand.',
    });
  }
}

/** Checks that a machine has what we need, and creates the directory of all sandboxes. Throws `agent_unavailable` when it lacks something. */
async function inspect(machine: RemoteMachine, root: string): Promise<Inspected> {
  const script = `umask 077
[ -r /proc/self/environ ] && [ -r /proc/sys/kernel/random/boot_id ] || { echo /proc; exit 10; }
for p in setsid stat link grep env readlink; do command -v $p >/dev/null || { echo "$p"; exit 10; }; done
T=throughline-look env grep -qsF T=throughline-look /proc/self/environ || { echo "a grep that finds something in /proc"; exit 10; }
case ${word(root)} in /*) r=${word(root)} ;; *) r=$HOME/${word(root)} ;; esac
mkdir -p -- "$r" && cd -- "$r" && env pwd -P || exit 11
env -0 2>/dev/null || env | tr '\\n' '\\0'`;
  const { code, stdout, stderr } = await machine.run(script);
  if (code === 10) {
    throw new ThroughlineError('agent_unavailable', `${machine.name} lacks ${stdout.toString().trim()}.`, {
      hint: 'Sandboxes need Linux there, with /proc, util-linux, and coreutils and grep of GNU (BusyBox has others).',
    });
  }
  if (code !== 0) throw unusable(root, machine.name, stderr);
  const end = stdout.indexOf('\n');
  const variables = stdout.toString('utf8', end + 1).split('\0');
  const env = Object.fromEntries(
    variables.map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
  );
  const inherited = INHERITED.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]] as const]));
  return { root: stdout.toString('utf8', 0, end), env: Object.fromEntries(inherited) };
}

/** Resolves links as far as the path exists, so that it has the same name before an agent creates it and afterwards. */
async function realPathOn(machine: RemoteMachine, path: string): Promise<string> {
  const script = `p=${word(posix.normalize(path))}; rest=
while [ ! -e "$p" ] && [ "$p" != / ] && [ -n "$p" ]; do rest=/\${p##*/}$rest; p=\${p%/*}; done
readlink -f -- "\${p:-/}"; printf %s "$rest"`;
  const { stdout } = await machine.run(script);
  const [real = '', rest = ''] = stdout.toString().split('\n');
  return posix.join(real, rest);
}

function unusable(path: string, machine: string, stderr: string): ThroughlineError {
  const cannot = `Cannot create the sandbox directory ${path} on ${machine}`;
  if (/no space left|quota exceeded/i.test(stderr))
    return new ThroughlineError('storage_full', `${cannot}: the disk is full.`);
  if (/permission denied|not permitted|read-only/i.test(stderr)) {
    return new ThroughlineError('storage_readonly', `${cannot}: permission denied.`);
  }
  return new ThroughlineError('refused', `${cannot} (${stderr.trim()}).`, {
    hint: 'Move the file or broken link that has its name, or the name of a directory above it.',
  });
}
