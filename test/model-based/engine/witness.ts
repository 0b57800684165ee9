import { isUsable } from '../../../src/core/restore/session.ts';
import { hasEnded } from '../../../src/core/turn/turn.ts';
import type { Store } from '../../../src/ports/store.ts';
import type { Machine } from './machine.ts';

export const SCRIPTS = [
  'answers',
  'answers',
  'answers',
  'tool',
  'asks',
  'fails once',
  'condenses',
  'fails',
  'tool and failure',
  'too long',
  'hang',
  'death',
  'tool and death',
] as const;
/** `fails and is used`: fails once, and before the next attempt somebody else uses its session. */
export type Script = (typeof SCRIPTS)[number] | 'fails and is used';

/** One prompt that reached an agent, and its result. */
export interface Delivery {
  /** The id of the prompt that the agent got. */
  readonly id: string;
  readonly word: string;
  readonly script: Script;
  /** The turn that was sent. Null: an earlier prompt, which a replay repeats. */
  readonly turn: string | null;
  readonly attempt: number;
  /** How often this prompt has reached an agent, this time included. */
  readonly nth: number;
  readonly agent: string;
  readonly session: string;
  /** What the session had, and what came with the prompt. */
  readonly context: string;
  readonly foreign: boolean;
  readonly reply: string;
  result: string;
  refuted: boolean;
  /** The agent changed its session, and nothing shows what the new one has. The engine may stop it for that, and send the prompt again. */
  moved: boolean;
  tool: boolean;
}

/** Records every prompt that reaches an agent and every tool that runs, whatever has been killed since. */
export class Witness {
  readonly deliveries: Delivery[] = [];
  readonly faults: string[] = [];
  /** By word: the request ids of the turns whose prompt has it. */
  readonly requests = new Map<string, string[]>();
  readonly #store: Store;
  readonly #machine: Machine;
  readonly #owner: string;

  constructor(store: Store, machine: Machine, owner: string) {
    this.#store = store;
    this.#machine = machine;
    this.#owner = owner;
  }

  prompt(word: string, script: Script): string {
    return `${word} (${script})`;
  }

  fault(what: unknown): void {
    this.faults.push(what instanceof Error ? (what.stack ?? what.message) : String(what));
  }

  async delivered(
    seen: Pick<Delivery, 'id' | 'agent' | 'session' | 'context' | 'foreign'> & {
      prompt: string;
      replayed: boolean;
      named: boolean;
    },
  ): Promise<Delivery> {
    const { prompt, replayed, named, ...rest } = seen;
    this.#machine.activity += 1;
    const [, word = '', script = ''] = /(\S+) \((.*)\)/.exec(prompt) ?? [];
    const turns = await Promise.all(
      (this.requests.get(word) ?? []).map((id) => this.#store.findRequest(this.#owner, id)),
    );
    const begun = turns.find((turn) => turn !== null && !hasEnded(turn.state) && turn.state !== 'queued');
    const running = replayed ? null : begun;
    // R6: that a turn is sent is recorded before its first byte leaves.
    if (running && running.sent === null) this.fault(`the prompt of turn ${running.n} arrived before it was sent`);
    if (running && named) await this.#isOurs(rest, running.conversation);
    const nth = this.deliveries.filter((one) => one.turn === running?.id).length + 1;
    const delivery: Delivery = {
      ...rest,
      word,
      script: script as Script,
      turn: running?.id ?? null,
      attempt: running?.attempt ?? 0,
      nth,
      reply: `reply-to-${word}-${this.deliveries.length}`,
      result: 'open',
      refuted: false,
      moved: false,
      tool: false,
    };
    this.deliveries.push(delivery);
    return delivery;
  }

  /** R1: a usable native session belongs to one conversation. */
  async #isOurs({ agent, session }: Pick<Delivery, 'agent' | 'session'>, conversation: string): Promise<void> {
    const rows = await this.#store.findSessions(this.#owner, session);
    const other = rows.find((row) => row.agent === agent && isUsable(row) && row.conversation !== conversation);
    if (other) this.fault(`${session} belongs to another conversation and was given a prompt of ${conversation}`);
  }

  /** A tool must not run in a replay, nor after its turn has ended: the process must be ended before the turn. */
  async toolRuns(delivery: Delivery, alive: () => boolean): Promise<void> {
    this.#machine.activity += 1;
    const turn = delivery.turn === null ? null : await this.#store.findTurn(this.#owner, delivery.turn);
    if (!alive()) return;
    delivery.tool = true;
    if (turn === null) this.fault(`a tool ran in a replay of ${delivery.word}`);
    else if (hasEnded(turn.state)) this.fault(`a tool of turn ${turn.n} ran after the turn had ended`);
  }
}
