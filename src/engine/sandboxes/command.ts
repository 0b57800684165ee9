import { posix } from 'node:path';
import type { DiskUse, ExecResult } from '../../core/sandbox/sandbox.ts';
import type { OpenSandbox } from '../../ports/sandbox.ts';

export interface RunOptions {
  readonly signal: AbortSignal;
  readonly timeoutMs: number;
  readonly monotonic: () => number;
  readonly cwd?: string;
  /** Called when it writes something. */
  readonly heard?: () => void;
}

const MOST_OUTPUT = 16_000;

/** Runs a command in a sandbox to its end, and ends it with everything it started when the signal aborts or its time is over. */
export async function runIn(
  sandbox: OpenSandbox,
  command: readonly string[],
  options: RunOptions,
): Promise<ExecResult> {
  const { signal, timeoutMs, monotonic, cwd, heard = () => {} } = options;
  const begun = monotonic();
  const child = await sandbox.spawn(command, { env: {}, ...(cwd !== undefined && { cwd }) });
  const stop = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
  const end = () => child.kill('SIGKILL');
  if (stop.aborted) end();
  else stop.addEventListener('abort', end, { once: true });
  child.stdin.end();
  let output = '';
  const read = async (stream: AsyncIterable<Uint8Array>) => {
    const decoder = new TextDecoder();
    for await (const bytes of stream) {
      output = (output + decoder.decode(bytes, { stream: true })).slice(-MOST_OUTPUT);
      heard();
    }
  };
  try {
    const [{ code }] = await Promise.all([child.exited, read(child.stdout), read(child.stderr)]);
    return { code, output: output.toWellFormed().trimEnd(), ms: Math.round(monotonic() - begun) };
  } finally {
    stop.removeEventListener('abort', end);
  }
}

const MEASURE_MS = 60_000;

/** What is in its folders, in bytes. Another program counts, so that this process goes on. Null: it could not be counted. */
export async function measuredIn(
  sandbox: OpenSandbox,
  monotonic: () => number,
): Promise<Pick<DiskUse, 'work' | 'state'> | null> {
  const du = await sandbox.find('du');
  if (du === null) return null;
  const { work, state, home } = sandbox;
  // A home of its own is beside the state; the person's is not counted.
  const owned = posix.dirname(home) === posix.dirname(state) ? [state, home] : [state];
  const options = { signal: AbortSignal.timeout(MEASURE_MS), timeoutMs: MEASURE_MS, monotonic };
  const { output } = await runIn(sandbox, [du, '-sk', work, ...owned], options);
  const kib = new Map([...output.matchAll(/^(\d+)\s+(.*)$/gm)].map(([, size, path]) => [path, Number(size)]));
  const sizes = [work, ...owned].map((path) => kib.get(path));
  const [inWork, ...others] = sizes.map((size) => (size ?? 0) * 1024);
  if (inWork === undefined || sizes.includes(undefined)) return null;
  return { work: inWork, state: others.reduce((sum, size) => sum + size, 0) };
}
