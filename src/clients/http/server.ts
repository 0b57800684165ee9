import type { PublicFinding } from '../../ports/doctor.ts';
import type { Me, Server, ServerHealth } from '../../ports/server.ts';
import type { Caller } from './caller.ts';

/** The state of a server, and who the caller is to it, over HTTP. */
export class HttpServer implements Server {
  readonly #caller: Caller;

  constructor(caller: Caller) {
    this.#caller = caller;
  }

  as(owner: string): Server {
    return new HttpServer(this.#caller.as(owner));
  }

  async whoAmI(): Promise<Me> {
    return this.#caller.ask('whoAmI', { within: 'firstAnswerMs' });
  }

  async health(): Promise<ServerHealth> {
    return this.#caller.ask('getHealth', { query: { details: true } });
  }

  async examine(): Promise<readonly PublicFinding[]> {
    return (await this.#caller.ask('examine', { within: 'longMs' })).findings;
  }
}
