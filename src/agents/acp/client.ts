import { RequestError } from '@agentclientprotocol/sdk';
import type { Room } from '../../ports/sandbox.ts';
import { ClientFiles } from './files.ts';
import { ClientTerminals } from './terminals.ts';

/** What we offer to every agent. */
export const CLIENT_CAPABILITIES = { fs: { readTextFile: true, writeTextFile: true }, terminal: true } as const;

export interface ClientSettings {
  readonly room: Room;
  /** Beyond the room's own. */
  readonly directories: readonly string[];
  /** Of the agent's process. */
  readonly mark: string | undefined;
  readonly onTerminalReleased: (id: string, text: string) => void;
}

/** The client's side of the protocol that acts on the machine: files and terminals, inside of the sandbox. */
export class SandboxClient {
  readonly #terminals: ClientTerminals;
  readonly #methods: Readonly<Record<string, (params: unknown) => unknown>>;
  /** Nothing is done for the agent while this is set: a session without tools must not have them through us. */
  withoutTools = false;

  constructor({ room, directories, mark, onTerminalReleased }: ClientSettings) {
    const roots = [room.work, ...directories];
    const files = new ClientFiles(roots);
    const terminals = new ClientTerminals(room, roots, mark, onTerminalReleased);
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
    return serve(params);
  }

  textOf(terminalId: string): string | null {
    return this.#terminals.textOf(terminalId);
  }

  end(): Promise<void> {
    return this.#terminals.end();
  }
}
