import { ThroughlineError } from '../errors.ts';
import { isCommand } from '../input/schema.ts';

/** A sandbox as it is stored: whose it is, what was set up in it, how large it was. Its files are where `Sandboxes` keeps them. */
export interface Sandbox {
  readonly id: string;
  readonly owner: string;
  /** The name under which conversations of this owner share it; null: it belongs to one conversation, or its name is not known. */
  readonly name: string | null;
  /** The data home that it is tied to. */
  readonly place: string;
  readonly createdAt: number;
  /** When it was first opened; null: not since it was made or removed. */
  readonly openedAt: number | null;
  /** The id of the worker that opened it last; null: nobody. */
  readonly openedBy: string | null;
  /** The last time that it was opened, or that a turn was accepted or ended in it. */
  readonly usedAt: number;
  /** When it was put to rest; null: it was not, or was opened since. */
  readonly restedAt: number | null;
  /** The steps that were run in it, in order. */
  readonly setup: readonly SetupResult[];
  /** Null: not measured yet. */
  readonly disk: DiskUse | null;
  /** How many conversations work in it. */
  readonly conversations: number;
}

/** The last run of a step of the set-up. */
export interface SetupResult {
  readonly name: string;
  /** Of its command. A step with another digest has changed, and runs again. */
  readonly digest: string;
  readonly at: number;
  readonly ms: number;
  /** Null: it was ended, or could not be started. */
  readonly code: number | null;
  /** The end of its output, standard output and errors together. */
  readonly output: string;
}

/** In bytes. */
export interface DiskUse {
  /** In its working directory. */
  readonly work: number;
  /** The agents' own files in it. */
  readonly state: number;
  /** Our copies of the agents' transcripts, of all its conversations. */
  readonly copies: number;
  readonly at: number;
}

/** Who works where, as it is stored: the chain user, sandbox, conversation, session. */
export interface SandboxUse {
  readonly owner: string;
  /** The id of the sandbox. */
  readonly sandbox: string;
  /** The id of the conversation. */
  readonly conversation: string;
  /** The agent's id of the session that was used last; null: there is none yet. */
  readonly session: string | null;
}

/**
 * The result of a command in a sandbox.
 *
 * @example
 * const { code, stdout, stderr } = await tl.sandbox('website').exec(['git', 'status']);
 * if (code !== 0) console.error(stderr);
 */
export interface ExecResult {
  /** Null: a signal ended it. */
  readonly code: number | null;
  /** Null: it ended by itself. */
  readonly signal: string | null;
  /** Whether we ended it, because it had taken ten minutes. */
  readonly timedOut: boolean;
  /** The end of its standard output. */
  readonly stdout: string;
  /** The end of its standard error. */
  readonly stderr: string;
  /** Whether the beginning of one of them is left out. */
  readonly cut: boolean;
  readonly ms: number;
}

/** How long a command of a caller may take in a sandbox, with the set-up that the sandbox needs first. Clients wait longer. */
export const EXEC_MS = 600_000;

/** Throws `invalid`. */
export function checkCommand(command: unknown): asserts command is readonly string[] {
  if (isCommand(command)) return;
  throw new ThroughlineError('invalid', 'The command must be a list of texts: the program, then its arguments.');
}

/** For a caller who would change or remove a sandbox in which somebody works. `why`: in words. */
export function sandboxInUse(why: string): ThroughlineError {
  return new ThroughlineError('conflict', `The sandbox is in use: ${why}.`, {
    hint: 'Try again when its turns, tasks and commands have ended and its sessions are closed ("cancel" ends a turn, "kill" a session).',
  });
}
