import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { ThroughlineError } from '../../core/errors.ts';
import { isolationArguments } from './arguments.ts';
import { isFiltered } from './seccomp.ts';

/** The first version with --disable-userns. */
const LEAST = [0, 8] as const;
const PROBE_MS = 20_000;

const INSTALL =
  'Install it: "apt install bubblewrap", "dnf install bubblewrap", "pacman -S bubblewrap" or "apk add bubblewrap". Or set "sandbox.kind" to "directory", which does not isolate.';
const NAMESPACES =
  'Allow user namespaces: "sysctl kernel.unprivileged_userns_clone=1", on Ubuntu "sysctl kernel.apparmor_restrict_unprivileged_userns=0", in a container ' +
  'the option "--security-opt seccomp=unconfined" or "--privileged". Or set "sandbox.kind" to "directory", which does not isolate.';

export interface Machine {
  readonly platform: string;
  readonly arch: string;
  /** Runs a program; rejects with `code` and `stderr`. */
  run(program: string, args: readonly string[]): Promise<string>;
}

const run = promisify(execFile);

const thisMachine: Machine = {
  platform: process.platform,
  arch: process.arch,
  async run(program, args) {
    const env = { PATH: process.env.PATH ?? '', LC_ALL: 'C' };
    const { stdout } = await run(program, [...args], { env, cwd: '/', timeout: PROBE_MS });
    return stdout;
  },
};

/** Tries the options that every program is started with. Throws `refused` with the reason and what to do about it. */
export async function checkBubblewrap({ platform, arch, run }: Machine = thisMachine): Promise<void> {
  const refuse = (why: string, hint: string, cause?: unknown) =>
    new ThroughlineError('refused', `The sandbox "bubblewrap" cannot be used here: ${why}.`, { hint, cause });
  if (platform !== 'linux')
    throw refuse('it needs Linux', 'Set "sandbox.kind" to "directory", which does not isolate.');
  if (!isFiltered(arch)) throw refuse(`system calls are not filtered on ${arch}`, 'Use a machine with x64 or arm64.');
  const version = await run('bwrap', ['--version']).catch((cause: NodeJS.ErrnoException) => {
    if (cause.code === 'ENOENT') throw refuse('bubblewrap is not installed', INSTALL, cause);
    throw refuse(`"bwrap --version" fails (${cause.message})`, INSTALL, cause);
  });
  const [major = 0, minor = 0] = (/(\d+)\.(\d+)/.exec(version) ?? []).slice(1).map(Number);
  if (major < LEAST[0] || (major === LEAST[0] && minor < LEAST[1])) {
    throw refuse(`bubblewrap ${major}.${minor} is too old`, `Install bubblewrap ${LEAST.join('.')} or newer.`);
  }
  const mounts = { system: [], proc: [], write: [], read: [], links: [], hidden: [], fixed: [], held: [] };
  const words = isolationArguments({ network: 'none', env: {}, cwd: '/', mounts, files: [] });
  const at = words.indexOf('--ro-bind-try');
  // Only the namespaces: what is bound differs from sandbox to sandbox.
  const namespaces = [...words.slice(0, at), '--ro-bind', '/', '/', '--proc', '/proc', '--dev', '/dev'];
  await run('bwrap', [...namespaces, '--', '/bin/sh', '-c', ':']).catch(
    (cause: { stderr?: string; message: string }) => {
      const why = (cause.stderr ?? cause.message).trim();
      throw refuse(`the kernel does not allow it (${why})`, NAMESPACES, cause);
    },
  );
}
