import type { ByteSink } from '../../../ports/sandbox.ts';

/*
 * A machine whose files and programs are not those of the machine that we run on. What a sandbox needs of it is small: it runs scripts of
 * POSIX sh. `RemoteSandboxes` are sandboxes of any such machine; its folders, programs and their ends are scripts.
 */

export interface RemoteMachine {
  /** For people: where it is. */
  readonly name: string;
  /**
   * Runs a short script to its end. Its input is `input`, else empty. The script may hold secrets, so it never becomes an argument of a
   * program there. Throws `agent_unavailable` when the machine cannot be reached or takes too long; then it may have run or not.
   */
  run(script: string, options?: { readonly input?: Uint8Array }): Promise<Ran>;
  /**
   * Starts a script that reads from us and writes to us as long as it runs. It finds in `$BEAT` the path of a file whose time changes
   * every few seconds as long as we are heard there, and which is gone when the connection is. The script ends itself when that stops.
   * Throws as `run`.
   */
  start(script: string): Promise<RemoteProgram>;
  /** How long `$BEAT` may stay the same before a script must end everything that it has started. */
  readonly silenceSeconds: number;
}

export interface Ran {
  readonly code: number;
  readonly stdout: Buffer;
  readonly stderr: string;
}

export interface RemoteProgram {
  readonly stdin: ByteSink;
  readonly stdout: AsyncIterable<Uint8Array>;
  readonly stderr: AsyncIterable<Uint8Array>;
  /** Resolves once, when it has ended and both outputs were read, or a moment later. `null`: the connection was lost, nobody knows. */
  readonly ended: Promise<number | null>;
}

/** One word of a script, whatever is in it. */
export function word(text: string | number): string {
  return `'${String(text).replaceAll("'", "'\\''")}'`;
}

export function words(texts: readonly (string | number)[]): string {
  return texts.map(word).join(' ');
}
