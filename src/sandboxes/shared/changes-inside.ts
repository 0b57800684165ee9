import { posix } from 'node:path';
import type { Changes } from '../../core/changes.ts';
import { ThroughlineError } from '../../core/errors.ts';
import type { OpenSandbox } from '../../ports/sandbox.ts';
import {
  compare,
  formatFor,
  type Git,
  GitFailed,
  inTime,
  noRepository,
  outputLimit,
  type Printed,
  type Repository,
  repositoryBy,
  SAFE_ENV,
  SAFE_OPTIONS,
} from './compare.ts';

/** Programs take a while to start in some sandboxes. */
const TIME_MS = 60_000;

/**
 * What differs in the working directory of a sandbox from the last commit. Git runs in the sandbox: whatever the agent has written into
 * the repository, git reads only what the agent can read itself. `within`: repositories that begin above the directory do not count.
 * Throws as `Sandboxes.changes`.
 */
export async function changesInside(sandbox: OpenSandbox, { within }: { within: boolean }): Promise<Changes> {
  const { work } = sandbox;
  const folder = await sandbox.folder(work);
  const above = within ? { GIT_CEILING_DIRECTORIES: posix.dirname(work) } : {};
  return comparedInside(sandbox, work, (program, signal) => {
    const plain: Git = (...args) =>
      run(sandbox, [program, ...SAFE_OPTIONS, ...args], { env: above, cwd: work, signal });
    return repositoryBy(plain, work).catch(async (error: unknown) => {
      const isThere = error instanceof GitFailed && (await folder.stat('.git')) !== null;
      throw error instanceof GitFailed && !isThere && !signal.aborted ? noRepository() : error;
    });
  });
}

/** The same for a known directory and repository. Both have to be visible in the sandbox. */
export async function comparedInside(
  sandbox: OpenSandbox,
  directory: string,
  find: (git: string, signal: AbortSignal) => Promise<Repository>,
): Promise<Changes> {
  const program = await sandbox.find('git');
  if (program === null) {
    throw new ThroughlineError('refused', 'There is no git in the sandbox, so its changes cannot be shown.', {
      hint: 'Install git there: in the image, or on the machine.',
    });
  }
  const folder = await sandbox.folder(directory);
  return inTime(TIME_MS, async (signal) => {
    const repository = await find(program, signal);
    const git = ownGit(sandbox, [program, ...SAFE_OPTIONS], repository, { cwd: directory, signal });
    return compare(git, repository.head, folder, signal);
  });
}

/** A git directory of our own, for one call: programs of a sandbox share no folder for temporary files. */
const OWN = `ours=$(mktemp -d "\${TMPDIR:-/tmp}/throughline-changes-XXXXXX") || exit 1
trap 'rm -rf "$ours"' EXIT; trap 'exit 1' TERM
mkdir "$ours/objects" "$ours/refs" "$ours/info" || exit 1
printf %s "$FORMAT" > "$ours/config"; echo 'ref: refs/heads/none' > "$ours/HEAD"
copy() { [ ! -e "$1" ] || { [ -f "$1" ] && cp -p "$1" "$2"; } || { echo "$1 is not a file." >&2; exit 1; }; }
copy "$INDEX" "$ours/index"; copy "$EXCLUDE" "$ours/info/exclude"
GIT_DIR=$ours; export GIT_DIR
"$@"`;

function ownGit(
  sandbox: OpenSandbox,
  program: readonly string[],
  { top, objects, index, exclude, head }: Repository,
  where: Omit<RunOptions, 'env'>,
): Git {
  const env = {
    ...{ GIT_WORK_TREE: top, GIT_OBJECT_DIRECTORY: objects },
    ...{ INDEX: index, EXCLUDE: exclude, FORMAT: formatFor(head) },
  };
  return (...args) => run(sandbox, ['/bin/sh', '-c', OWN, 'sh', ...program, ...args], { env, ...where });
}

interface RunOptions {
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  readonly signal: AbortSignal;
}

/** Throws `GitFailed`. */
async function run(sandbox: OpenSandbox, command: readonly string[], options: RunOptions): Promise<Printed> {
  const { env, cwd, signal } = options;
  const child = await sandbox.spawn(command, { env: { ...SAFE_ENV, ...env }, cwd });
  const end = () => child.kill('SIGKILL');
  if (signal.aborted) end();
  else signal.addEventListener('abort', end, { once: true });
  try {
    child.stdin.end();
    const [out, said, { code }] = await Promise.all([
      upTo(outputLimit(command), child.stdout, () => child.kill('SIGTERM')),
      upTo(MOST_SAID, child.stderr),
      child.exited,
    ]);
    if (code === 0 || !out.isWhole) return out;
    throw new GitFailed(said.text.trim() || `git ended with ${code}`, out.text);
  } finally {
    signal.removeEventListener('abort', end);
  }
}

export const MOST_SAID = 2_000;

/** Reads all of the output, and keeps its beginning. `beyond` is called when there is more. */
export async function upTo(most: number, output: AsyncIterable<Uint8Array>, beyond = () => {}): Promise<Printed> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of output) {
    if (bytes < most) chunks.push(chunk);
    bytes += chunk.length;
    if (bytes >= most) beyond();
  }
  return { text: Buffer.concat(chunks).toString('utf8'), isWhole: bytes < most };
}
