import { setTimeout as delay } from 'node:timers/promises';
import { ThroughlineError } from '../../core/errors.ts';
import type { SandboxProcess } from '../../core/process.ts';
import type { Gate } from '../../core/tasks/task.ts';
import type { GateResult } from '../../core/tasks/task-gate.ts';
import type { Child, OpenSandbox } from '../../ports/sandbox.ts';

/** Only the end of the output is kept, because the errors are there. */
const MOST_OUTPUT = 16_000;
/**
 * Waits for a line on stdin before it runs the command. We write it when the process is stored. If this program is killed before, the
 * command never runs: nobody could find its process.
 */
const ONCE_TOLD = 'read -r told && exec /bin/sh -c "$1" </dev/null';
/** How long a gate may take to stop after SIGTERM. */
const GRACE_MS = 2_000;

interface CommandGateRequest {
  readonly gate: Extract<Gate, { kind: 'command' }>;
  readonly sandbox: OpenSandbox;
  /** Aborting it ends the gate and everything it started. */
  readonly signal: AbortSignal;
  /** Called before the command runs: the stored process can be ended if this program is killed. */
  readonly started: (process: SandboxProcess) => Promise<void>;
  readonly monotonic: () => number;
}

/** Runs a command in the agent's sandbox and judges by its exit code. */
export async function runCommandGate(request: CommandGateRequest): Promise<GateResult> {
  const { gate, sandbox, signal, monotonic } = request;
  const begun = monotonic();
  const since = () => Math.round(monotonic() - begun);
  let child: Child;
  try {
    child = await sandbox.spawn(['/bin/sh', '-c', ONCE_TOLD, 'gate', gate.command], { env: {} });
  } catch (error) {
    if (!(error instanceof ThroughlineError)) throw error;
    return { verdict: 'broken', summary: error.message, output: '', cut: 0, ms: since() };
  }
  const tail = new OutputTail();
  const timeout = AbortSignal.timeout(gate.timeoutMs);
  const ending = endOn(child, AbortSignal.any([signal, timeout]));
  const told = request.started(child.identity).then(() => {
    child.stdin.write('\n');
    child.stdin.end();
  });
  try {
    const [exit] = await Promise.all([child.exited, tail.read(child.stdout), tail.read(child.stderr), told]);
    return {
      ...judged(exit, timeout.aborted && !signal.aborted ? gate.timeoutMs : null),
      ...tail.result(),
      ms: since(),
    };
  } catch (error) {
    child.kill('SIGKILL'); // its process could not be stored: nobody could end it later
    await child.exited;
    throw error;
  } finally {
    ending();
  }
}

function judged(
  { code, signal }: { code: number | null; signal: string | null },
  timedOutMs: number | null,
): Pick<GateResult, 'verdict' | 'summary'> {
  if (timedOutMs !== null) return { verdict: 'fail', summary: `timed out after ${timedOutMs / 1_000} s` };
  if (code === 0) return { verdict: 'pass', summary: 'exit code 0' };
  return { verdict: 'fail', summary: code === null ? `ended by ${signal}` : `exit code ${code}` };
}

/** Sends SIGTERM when the signal aborts, and SIGKILL later, until the returned function is called. */
function endOn(child: Child, signal: AbortSignal): () => void {
  const over = new AbortController();
  const end = () => {
    child.kill('SIGTERM');
    delay(GRACE_MS, undefined, { signal: over.signal }).then(
      () => child.kill('SIGKILL'),
      () => {}, // it has ended by itself
    );
  };
  if (signal.aborted) end();
  else signal.addEventListener('abort', end, { once: true });
  return () => {
    over.abort();
    signal.removeEventListener('abort', end);
  };
}

/** Keeps the end of both outputs of a program, in the order in which they arrive. */
class OutputTail {
  #text = '';
  #cut = 0;

  async read(stream: AsyncIterable<Uint8Array>): Promise<void> {
    const decoder = new TextDecoder();
    for await (const bytes of stream) this.#add(decoder.decode(bytes, { stream: true }));
    this.#add(decoder.decode());
  }

  /** The cut may leave an unpaired surrogate, which is replaced. */
  result(): Pick<GateResult, 'output' | 'cut'> {
    this.#shorten();
    return { output: this.#text.toWellFormed().trimEnd(), cut: this.#cut };
  }

  #add(text: string): void {
    this.#text += text;
    if (this.#text.length > 2 * MOST_OUTPUT) this.#shorten();
  }

  #shorten(): void {
    const over = this.#text.length - MOST_OUTPUT;
    if (over <= 0) return;
    this.#text = this.#text.slice(over);
    this.#cut += over;
  }
}
