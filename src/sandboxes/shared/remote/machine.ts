import type { ByteSink } from '../../../ports/sandbox.ts';

/*
 * Another machine that runs scripts of POSIX sh. `RemoteSandboxes` needs nothing else of it: it reads files, starts programs and ends
 * them by scripts.
 */

export interface RemoteMachine {
  /** For people: where it is. */
  readonly name: string;
  /**
   * Runs a short script to its end. Its input is `input`, else empty. The script may hold secrets, so it never becomes an argument of a
   * program there. Throws `agent_unavailable` when the machine cannot be reached or takes too long; then it may have run or not.
   */
  run(script: string, options?: { readonly input?: Uint8Array }): Promise<ScriptResult>;
  /**
   * Starts a script whose input and output are connected with us while it runs. `$BEAT` is the path of a file there. Our heartbeats change
   * its time every few seconds, and it is removed when the connection ends. The script ends itself when the heartbeats stop. Throws as
   * `run`.
   */
  start(script: string): Promise<RemoteProgram>;
  /** How long `$BEAT` may stay the same before a script must end everything that it has started. */
  readonly silenceSeconds: number;
}

export interface ScriptResult {
  readonly code: number;
  readonly stdout: Buffer;
  readonly stderr: string;
}

export interface RemoteProgram {
  readonly stdin: ByteSink;
  readonly stdout: AsyncIterable<Uint8Array>;
  readonly stderr: AsyncIterable<Uint8Array>;
  /** Its exit code. Resolves once, when it has ended and both outputs were read, or a moment later. Null: the connection was lost. */
  readonly ended: Promise<number | null>;
}

/** The variables of the user there that programs get. */
export const INHERITED = 'PATH HOME USER LOGNAME SHELL LANG LC_ALL LC_CTYPE TERM TZ TMPDIR'.split(' ');

/** Quotes any text as one word of a shell script. */
export function word(text: string | number): string {
  return `'${String(text).replaceAll("'", "'\\''")}'`;
}

export function words(texts: readonly (string | number)[]): string {
  return texts.map(word).join(' ');
}
