import type { Conversation } from '../core/conversation.ts';
import type { Agent } from '../ports/agent.ts';
import type { Child, OpenSandbox, Sandboxes, SpawnOptions } from '../ports/sandbox.ts';

/*
 * A command starts the program of its agent while it stores the prompt. Starting a program takes as long as everything that we do between
 * reading a prompt and opening a session, so both are done at the same time.
 *
 *   begin ──▶ runs, and is told nothing ──▶ taken, when the adapter starts the same program in the same sandbox
 *                     └──▶ ended: the prompt was refused, the sandbox is gone, nobody took it in time, or this process closes
 *
 * Nothing is sent to the program before the prompt is stored, so ending it loses nothing. It has the mark of this process, as every
 * program has: after a crash it is found and ended.
 */

/** If nobody takes the program within this time, another process runs the turn, or something delays it. */
const LONGEST_MS = 5_000;

interface Begun {
  /** Identifies the program and its sandbox. */
  readonly what: string;
  /** Null: it could not be started. The adapter starts it again, and reports why. */
  readonly child: Promise<Child | null>;
  readonly late: NodeJS.Timeout;
}

/** Starts one program, once in the life of an engine. */
export class EarlyStart {
  /** The same sandboxes, whose first `spawn` of that program returns the running one. */
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
        // The program runs in a directory that was deleted: it must not be used.
        if (found === null) await this.end();
        return found;
      },
    };
  }

  /** Resolves when the program was started, at the latest after this turn of the event loop. Never rejects. */
  async begin(agent: Agent, { sandbox: id, cwd }: Pick<Conversation, 'sandbox' | 'cwd'>): Promise<void> {
    if (this.#used || agent.program === undefined || this.#sandboxes.rest !== undefined) return;
    this.#used = true;
    // The adapter gets the same failure when it opens the session, and reports it.
    const started = this.#start(agent, id, cwd).catch(() => {});
    await Promise.race([started, new Promise(setImmediate)]);
  }

  /** Ends the program, unless it was taken. From now on nothing is started. Never rejects. */
  async end(): Promise<void> {
    this.#over = true;
    const child = await this.#take()?.child;
    if (!child) return;
    child.kill('SIGKILL');
    await Promise.all([drained(child.stdout), drained(child.stderr), child.exited]);
  }

  async #start(agent: Agent, id: string, cwd: string | null): Promise<void> {
    // A missing sandbox is made by the turn.
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
