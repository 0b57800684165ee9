import { setTimeout as pause } from 'node:timers/promises';
import { open, type Throughline, ThroughlineError } from '../../../src/index.ts';
import { parseLines } from '../../e2e/cli-process.ts';
import type { Request } from '../../faults/storm/prompts.ts';
import type { Acknowledged } from './checks.ts';
import type { World } from './world.ts';

/** `command`: through the server, if one answers, else on the data home. `embedded`: a command that never uses the server. */
export type Way = 'http' | 'library' | 'command' | 'embedded';

/** Errors that pass: the same request again is the right answer to them. */
const PASSING = ['unreachable', 'closed', 'storage_busy', 'storage_full', 'too_many'];

/**
 * Somebody who repeats a request, under the same id, until it was acknowledged, however often the server is killed meanwhile. Throws
 * when the answer is one that nothing explains.
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

  /** Null: not acknowledged, for a reason that passes. */
  #try(request: Request): Promise<Acknowledged | null> {
    if (this.way === 'http') return this.#byHttp(request);
    return this.way === 'library' ? this.#byLibrary(request) : this.#byCommand(request);
  }

  async #byHttp({ name, key, prompt, options }: Request): Promise<Acknowledged | null> {
    const caller = this.#world.caller(this.owner);
    const asked = await lostOr(caller.post(`/conversations/${key}/turns`, { prompt, ...options }));
    if (asked === null || PASSING.includes(asked.body.code)) return null;
    if (asked.status !== 202) throw new Error(`${name}: ${asked.status} ${JSON.stringify(asked.body)}`);
    return { name, turn: asked.body.turn.id, n: asked.body.turn.n };
  }

  async #byLibrary({ name, key, prompt, options }: Request): Promise<Acknowledged | null> {
    try {
      const { engine } = await this.library();
      const { turn } = await engine.submit(key, prompt, options);
      return { name, turn: turn.id, n: turn.n };
    } catch (error) {
      if (error instanceof ThroughlineError && PASSING.includes(error.code)) return null;
      throw error;
    }
  }

  /** The command shows all that happens, until the end of its turn. It is acknowledged when it has shown the turn. */
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
    if (PASSING.some((passing) => stderr.includes(`"code":"${passing}"`))) return null;
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

/** The answer; null: the connection was lost before it was read. */
export async function lostOr<T>(answer: Promise<T>): Promise<T | null> {
  try {
    return await answer;
  } catch (error) {
    // What fetch throws for a connection that is refused, reset, or cut in the middle of a body.
    if (error instanceof TypeError || (error as { name?: string }).name === 'AbortError') return null;
    throw error;
  }
}
