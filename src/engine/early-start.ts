import type { Conversation } from '../core/conversation.ts';
import type { Agent } from '../ports/agent.ts';
import type { Child, OpenSandbox, Sandboxes, SpawnOptions } from '../ports/sandbox.ts';

/*
 * A command starts the program of its agent while it stores the prompt. A program takes as long to start as all that we do between
 * reading a prompt and opening a session, so the two go on at the same time.
 *
 *   begin ──▶ runs, and is told nothing ──▶ taken, when the adapter starts the same program in the same sandbox
 *                     └──▶ ended: the prompt was refused, the sandbox is gone, nobody took it in time, or this process closes
 *
 * No agent is asked for anything before its prompt is stored: a program that was told of no session has nothing to lose, and decides
 * nothing. Like any other it has the mark of its starter, so a crash leaves nothing behind that cannot be found.
 */

/** After this time another process runs the turn, or something else is in the way. */
const LONGEST_MS = 5_000;

interface Begun {
  /** Which program, and where. */
  readonly what: string;
  /** Null: it could not be started. Whoever then starts it learns why. */
  readonly child: Promise<Child | null>;
  readonly late: NodeJS.Timeout;
}

/** One program, once in the life of an engine. */
export class EarlyStart {
  /** For everybody else: the program that was begun counts as started by the first who wants to start it. */
  readonly sandboxes: Sandboxes;
  readonly #sandboxes: Sandboxes;
  #begun: Begun | null = null;
  #used = false;
  #over = false;

  constructor(sandboxes: Sandboxes) {
    this.#sandboxes = sandboxes;
    this.sandboxes = {
      ...sandboxes,
      open: async (id, options) => this.#sharing(await sandboxes.open(id, options)),
      find: async (id) => {
        const found = await sandboxes.find(id);
        // What runs in a directory that was deleted must not be used.
        if (found === null) await this.end();
        return found;
      },
    };
  }

  /** Resolves when the program was started, at the latest after this turn of the event loop. Never rejects. */
  async begin(agent: Agent, { sandbox: id, cwd }: Pick<Conversation, 'sandbox' | 'cwd'>): Promise<void> {
    if (this.#used || agent.program === undefined || this.#sandboxes.rest !== undefined) return;
    this.#used = true;
    // Whoever opens the session meets the same failure, and reports it.
    const started = this.#start(agent, id, cwd).catch(() => {});
    await Promise.race([started, new Promise(setImmediate)]);
  }

  /** Ends the program, unless it was taken, and starts none any more. Never rejects. */
  async end(): Promise<void> {
    this.#over = true;
    const child = await this.#take()?.child;
    if (!child) return;
    child.kill('SIGKILL');
    await Promise.all([drained(child.stdout), drained(child.stderr), child.exited]);
  }

  async #start(agent: Agent, id: string, cwd: string | null): Promise<void> {
    // What has to be made first is made by the turn.
    if ((await this.#sandboxes.find(id)) === null) return;
    const sandbox = await this.#sandboxes.open(id, { cwd });
    const program = await agent.program?.(sandbox);
    if (!program || this.#over) return;
    const { command, env } = program;
    this.#begun = {
      what: whatIs(sandbox, command, { env }),
      child: sandbox.spawn(command, { env }).catch(() => null),
      late: setTimeout(() => void this.end(), LONGEST_MS).unref(),
    };
  }

  #sharing(sandbox: OpenSandbox): OpenSandbox {
    return {
      ...sandbox,
      spawn: async (command, options) => {
        const begun = this.#begun?.what === whatIs(sandbox, command, options) ? this.#take() : null;
        const child = await begun?.child;
        return child?.alive ? child : sandbox.spawn(command, options);
      },
    };
  }

  #take(): Begun | null {
    const begun = this.#begun;
    this.#begun = null;
    clearTimeout(begun?.late);
    return begun;
  }
}

function whatIs({ id, work }: OpenSandbox, command: readonly string[], options: SpawnOptions): string {
  return JSON.stringify([id, work, command, options]);
}

async function drained(output: AsyncIterable<Uint8Array>): Promise<void> {
  try {
    for await (const _ of output);
  } catch {
    // The pipe broke: there is nothing more to read.
  }
}
