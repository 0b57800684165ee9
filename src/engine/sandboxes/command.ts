import type { ExecResult } from '../../core/sandbox/sandbox.ts';
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
