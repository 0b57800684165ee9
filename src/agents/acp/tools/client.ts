import { RequestError } from '@agentclientprotocol/sdk';
import type { OpenSandbox } from '../../../ports/sandbox.ts';
import { ClientFiles } from './files.ts';
import { ClientTerminals } from './terminals.ts';

/** What we offer to every agent. */
export const CLIENT_CAPABILITIES = { fs: { readTextFile: true, writeTextFile: true }, terminal: true } as const;

export interface ClientSettings {
  readonly sandbox: OpenSandbox;
  /** Beyond the sandbox's own. */
  readonly directories: readonly string[];
  /** Of the agent's process. */
  readonly mark: string | undefined;
  /** Whether a prompt is in flight. */
  readonly inTurn: () => boolean;
  /** Resolves when the agent has taken so much of what it was given that it may have more. */
  readonly taken: () => Promise<void>;
  readonly onTerminalReleased: (id: string, text: string) => void;
}

/** What takes as long as a command does, and answers in a few words. */
const WAITS = 'terminal/wait_for_exit';

/** What changes something, and so belongs to a turn. */
const ACTS: readonly string[] = ['fs/write_text_file', 'terminal/create'];

/**
 * The client's side of the protocol that acts on the machine: files and terminals, inside of the sandbox. What an agent asks for is
 * done in its order, one thing at a time, and not before the agent takes what it was given: however much it asks for, and
 * whether it reads the answers or not, there is no more than one of them here.
 */
export class SandboxClient {
  readonly #terminals: ClientTerminals;
  readonly #methods: Readonly<Record<string, (params: unknown) => unknown>>;
  readonly #inTurn: () => boolean;
  readonly #taken: () => Promise<void>;
  /** Resolves when all that was asked for is done; never rejects. */
  #done: Promise<unknown> = Promise.resolve();
  #over = false;
  /** Nothing is done for the agent while this is set: a session without tools must not have them through us. */
  withoutTools = false;

  constructor({ sandbox, directories, mark, inTurn, taken, onTerminalReleased }: ClientSettings) {
    this.#inTurn = inTurn;
    this.#taken = taken;
    const roots = [sandbox.work, ...directories];
    const files = new ClientFiles(roots);
    const terminals = new ClientTerminals(sandbox, roots, mark, onTerminalReleased);
    this.#terminals = terminals;
    this.#methods = {
      'fs/read_text_file': (params) => files.read(params),
      'fs/write_text_file': (params) => files.write(params),
      'terminal/create': (params) => terminals.create(params),
      'terminal/output': (params) => terminals.output(params),
      'terminal/wait_for_exit': (params) => terminals.waitForExit(params),
      'terminal/kill': (params) => terminals.kill(params),
      'terminal/release': (params) => terminals.release(params),
    };
  }

  async handle(method: string, params: unknown): Promise<unknown> {
    const serve = Object.hasOwn(this.#methods, method) ? this.#methods[method] : undefined;
    if (serve === undefined) throw RequestError.methodNotFound(method);
    if (this.withoutTools) throw RequestError.invalidRequest(undefined, 'no tool may run in this session');
    // Agents read their notes at any time. One that goes on with what was interrupted is not helped: restoring runs no tool.
    if (ACTS.includes(method) && !this.#inTurn()) {
      throw RequestError.invalidRequest(undefined, 'nothing is run or written while no prompt is in flight');
    }
    if (method === WAITS) return serve(params);
    const result = this.#done.then(async () => {
      await this.#taken();
      if (this.#over) throw RequestError.internalError(undefined, 'the session is over');
      return serve(params);
    });
    this.#done = result.catch(() => {});
    return result;
  }

  textOf(terminalId: string): string | null {
    return this.#terminals.textOf(terminalId);
  }

  end(): Promise<void> {
    this.#over = true;
    return this.#terminals.end();
  }
}
