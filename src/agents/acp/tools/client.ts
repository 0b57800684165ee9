import { RequestError } from '@agentclientprotocol/sdk';
import { readTextFile, writeTextFile } from './files.ts';
import { ClientTerminals, type TerminalSettings } from './terminals.ts';

export interface ClientSettings extends Omit<TerminalSettings, 'directories'> {
  /** Directories in which the agent may act, beside the sandbox's own. */
  readonly directories: readonly string[];
  /** Whether a prompt is in flight. */
  readonly inTurn: () => boolean;
  readonly toolsAllowed: () => boolean;
  /** Resolves when the agent has read enough of what we sent to get more. */
  readonly drained: () => Promise<void>;
}

/** Waits as long as a command runs, so other requests do not wait for it. Its answer is small. */
const WAITS = 'terminal/wait_for_exit';

/** Changes something, so it must belong to a turn. */
const ACTS: readonly string[] = ['fs/write_text_file', 'terminal/create'];

/**
 * Serves the requests of an agent to its client: files and terminals, inside of the sandbox. Requests are served in order, one at a time,
 * and each waits until the agent has read the earlier answers. So we hold at most one answer, however much an agent asks for.
 */
export class SandboxClient {
  readonly #terminals: ClientTerminals;
  readonly #methods: Readonly<Record<string, (params: unknown) => unknown>>;
  readonly #settings: ClientSettings;
  /** Resolves when all requests so far are served; never rejects. */
  #done: Promise<unknown> = Promise.resolve();
  #over = false;

  constructor(settings: ClientSettings) {
    this.#settings = settings;
    const { sandbox } = settings;
    const directories = { sandbox, roots: [sandbox.work, ...settings.directories] };
    const terminals = new ClientTerminals({ ...settings, directories });
    this.#terminals = terminals;
    this.#methods = {
      'fs/read_text_file': (params) => readTextFile(directories, params),
      'fs/write_text_file': (params) => writeTextFile(directories, params),
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
    // These are tools as well.
    if (!this.#settings.toolsAllowed()) throw RequestError.invalidRequest(undefined, 'no tool may run in this session');
    // An agent may read its notes at any time. But it must not continue an interrupted turn: restoring never runs a tool (R6).
    if (ACTS.includes(method) && !this.#settings.inTurn()) {
      throw RequestError.invalidRequest(undefined, 'commands and writes are only allowed during a turn');
    }
    if (method === WAITS) return serve(params);
    const result = this.#done.then(async () => {
      await this.#settings.drained();
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
