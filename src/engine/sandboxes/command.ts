import type { OpenSandbox } from '../../ports/sandbox.ts';

export interface RunOptions {
  readonly signal: AbortSignal;
  readonly timeoutMs: number;
  readonly monotonic: () => number;
  readonly cwd?: string;
  /** Called when it writes something. */
  readonly heard?: () => void;
}

/** Of a command that has ended, or was ended. */
export interface Ran {
  /** Null: it was ended by a signal, or its machine was lost. */
  readonly code: number | null;
  readonly signal: string | null;
  /** The end of its output, standard output and errors together. */
  readonly output: string;
  readonly stdout: Tail;
  readonly stderr: Tail;
  readonly ms: number;
}

const MOST_OUTPUT = 16_000;

/** The end of a text that arrives in pieces. */
class Tail {
  text = '';
  /** Whether its beginning was left out. */
  isCut = false;

  add(piece: string): void {
    const all = this.text + piece;
    this.text = all.slice(-MOST_OUTPUT);
    this.isCut ||= all.length > MOST_OUTPUT;
  }
}

/** Runs a command in a sandbox to its end, and ends it with everything it started when the signal aborts or its time is over. */
export async function runIn(sandbox: OpenSandbox, command: readonly string[], options: RunOptions): Promise<Ran> {
  const { signal, timeoutMs, monotonic, cwd, heard = () => {} } = options;
  const begun = monotonic();
  const child = await sandbox.spawn(command, { env: {}, ...(cwd !== undefined && { cwd }) });
  const stop = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
  const end = () => child.kill('SIGKILL');
  if (stop.aborted) end();
  else stop.addEventListener('abort', end, { once: true });
  child.stdin.end();
  const [both, stdout, stderr] = [new Tail(), new Tail(), new Tail()];
  const read = async (stream: AsyncIterable<Uint8Array>, tail: Tail) => {
    const decoder = new TextDecoder();
    for await (const bytes of stream) {
      const piece = decoder.decode(bytes, { stream: true });
      both.add(piece);
      tail.add(piece);
      heard();
    }
  };
  try {
    const [ended] = await Promise.all([child.exited, read(child.stdout, stdout), read(child.stderr, stderr)]);
    const output = both.text.toWellFormed().trimEnd();
    return { ...ended, output, stdout, stderr, ms: Math.round(monotonic() - begun) };
  } finally {
    stop.removeEventListener('abort', end);
  }
}
