import { setTimeout as pause } from 'node:timers/promises';
import { open, type Throughline, ThroughlineError } from '../../../src/index.ts';
import { parseLines } from '../../e2e/cli/process.ts';
import type { Request } from '../../faults/storm/prompts.ts';
import type { Acknowledged } from './checks.ts';
import type { World } from './world.ts';

/** `command`: uses the server if one answers, otherwise the data home. `embedded`: a command that never uses the server. */
export type Way = 'http' | 'library' | 'command' | 'embedded';

/** Temporary errors: the client repeats the same request. */
const TEMPORARY = ['unreachable', 'closed', 'storage_busy', 'storage_full', 'too_many'];

/**
 * A client that repeats a request, under the same id, until it is acknowledged, however often the server is killed. Throws at an
 * unexpected answer.
 */
export class Client {
  readonly owner: string;
  readonly way: Way;
  /** How often a request had to be repeated because there was no answer. */
  repeats = 0;
  readonly #world: World;
  #library: Promise<Throughline> | null = null;

  constructor(world: World, owner: string, way: Way) {
    this.#world = world;
    this.owner = owner;
    this.way = way;
  }

  async submit(request: Request): Promise<Acknowledged> {
    for (;;) {
      const acknowledged = await this.#try(request);
      if (acknowledged !== null) return acknowledged;
      this.repeats += 1;
      await pause(50);
    }
  }

  /** Null: not acknowledged because of a temporary error. */
  #try(request: Request): Promise<Acknowledged | null> {
    if (this.way === 'http') return this.#byHttp(request);
    return this.way === 'library' ? this.#byLibrary(request) : this.#byCommand(request);
  }

  async #byHttp({ name, key, prompt, options }: Request): Promise<Acknowledged | null> {
    const caller = this.#world.caller(this.owner);
    const asked = await lostOr(caller.post(`/conversations/${key}/turns`, { prompt, ...options }));
    if (asked === null || TEMPORARY.includes(asked.body.code)) return null;
    if (asked.status !== 202) throw new Error(`${name}: ${asked.status} ${JSON.stringify(asked.body)}`);
    return { name, turn: asked.body.turn.id, n: asked.body.turn.n };
  }

  async #byLibrary({ name, key, prompt, options }: Request): Promise<Acknowledged | null> {
    try {
      const { engine } = await this.library();
      const { turn } = await engine.submit(key, prompt, options);
      return { name, turn: turn.id, n: turn.n };
    } catch (error) {
      if (error instanceof ThroughlineError && TEMPORARY.includes(error.code)) return null;
      throw error;
    }
  }

  /** The command runs until the end of its turn. The request was acknowledged if the command printed the turn. */
  async #byCommand({ name, key, prompt, options }: Request): Promise<Acknowledged | null> {
    const agent = options.agent === undefined ? [] : ['--agent', options.agent];
    const args = ['send', key, prompt, '--request-id', name, ...agent, '--permissions', 'deny', '--json'];
    const how = this.way === 'embedded' ? ['--embedded'] : [];
    const { code, stdout, stderr } = await this.#world.command(this.owner, ...how, ...args).ended;
    this.#world.log += stderr;
    for (const line of parseLines(stdout)) {
      if (line.kind === 'result') return { name, turn: line.turn.id, n: line.turn.n };
      if (line.kind !== 'turn.queued' || line.payload.requestId !== name) continue;
      return { name, turn: line.turnId, n: line.payload.n };
    }
    if (TEMPORARY.some((code) => stderr.includes(`"code":"${code}"`))) return null;
    throw new Error(`${name}: the command ended with ${code}: ${stderr}`);
  }

  async library(): Promise<Throughline> {
    const { url } = this.#world;
    this.#library ??= open({ server: url, token: this.#world.key(this.owner) });
    return this.#library.catch((error) => {
      this.#library = null;
      throw error;
    });
  }

  async close(): Promise<void> {
    const library = await this.#library?.catch(() => null);
    await library?.close();
  }
}

/** The answer. Null: the connection was lost before the answer was read. */
async function lostOr<T>(answer: Promise<T>): Promise<T | null> {
  try {
    return await answer;
  } catch (error) {
    // fetch throws these if a connection is refused, reset, or cut in the middle of a body.
    if (error instanceof TypeError || (error as { name?: string }).name === 'AbortError') return null;
    throw error;
  }
}
