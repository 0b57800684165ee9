import { isObject } from '../../../core/content.ts';
import { chunkText, type Update } from '../../../core/update.ts';
import type { AgentEvent } from '../../../ports/agent.ts';
import { asObject } from '../connection/capabilities.ts';
import { apart, BetweenTurns, isOfATurn } from './between.ts';
import { TerminalTexts } from './terminal-texts.ts';
import { CostMeter } from './usage.ts';

/** Where the events of a turn go. */
interface Turn {
  push(event: AgentEvent): void;
}

/**
 * Sorts what an agent says: what belongs to the turn that runs, what is kept for the next one, what is a history repeated. Nothing
 * of it is changed, and nothing is lost unsaid.
 */
export class Updates {
  readonly #between = new BetweenTurns();
  readonly #texts = new TerminalTexts();
  readonly #cost: CostMeter;
  /** The session that is spoken of; null: its name is not known yet. */
  sessionId: string | null = null;
  /** While a session is loaded: where the history goes that it repeats. */
  onRepeated: ((update: Update) => void) | null = null;
  /** Told of the mode that the session is in whenever it is another one. */
  onMode: ((mode: unknown) => void) | null = null;
  /** What it shows of itself as if it were an answer; null: nothing, or it has. */
  #banner: string | null = null;
  #turn: Turn | null = null;
  /** The agent has said that the turn is over: what still comes is no part of it. */
  #answered = false;

  constructor(memo: string | null, onWindow: (tokens: number) => void) {
    this.#cost = new CostMeter(memo, onWindow);
  }

  get memo(): string {
    return this.#cost.memo;
  }

  /** pi greets each new session in a message of its own, which may come while the first prompt is answered. */
  greets(banner: string): void {
    this.#banner = banner;
  }

  begin(turn: Turn): void {
    this.#turn = turn;
    this.#answered = false;
    this.#tell(this.#between.take());
    this.#tellCost();
  }

  answered(): void {
    this.#answered = true;
  }

  /** `textOf`: what a terminal shows that was not released yet; null: there is none of this id. */
  end(textOf: (terminalId: string) => string | null): void {
    this.#tell(this.#texts.rest(textOf));
    this.#turn = null;
  }

  terminalReleased(id: string, text: string): void {
    this.#texts.released(id, text);
    this.#tell(this.#texts.taken());
  }

  /** A notification as it came, and how long it was. */
  notified(method: string, params: unknown, length: number): void {
    const { update, sessionId } = asObject(params);
    if (method !== 'session/update' || !isUpdate(update)) {
      this.#tellOrKeep({ sessionUpdate: '_acp/notification', method, params }, length);
    } else if (this.sessionId !== null && typeof sessionId === 'string' && sessionId !== this.sessionId) {
      // Sub-sessions of the agent's own are told apart by whoever shows them, not by us.
      this.#tellOrKeep({ sessionUpdate: '_acp/other_session', sessionId, update }, length);
    } else this.#update(update, length);
  }

  #update(update: Update, length: number): void {
    if (update.sessionUpdate === 'usage_update') this.#spent(update);
    if (update.sessionUpdate === 'current_mode_update') this.onMode?.(update.currentModeId);
    if (this.onRepeated !== null) {
      this.onRepeated(update);
      if (isOfATurn(update)) return;
    }
    if (this.#tellOrKeep(this.#isBanner(update) ? apart(update) : update, length)) this.#texts.see(update);
  }

  get #running(): boolean {
    return this.#turn !== null && !this.#answered;
  }

  /** False: no turn runs, or it is over. */
  #tellOrKeep(update: Update, length: number): boolean {
    const running = this.#running;
    if (running) this.#turn?.push({ type: 'update', update });
    else this.#between.keep(update, length);
    return running;
  }

  #tell(updates: Iterable<Update>): void {
    for (const update of updates) this.#turn?.push({ type: 'update', update });
  }

  /** What it has cost since the last turn ended is told with the next one; what is repeated was paid for before. */
  #spent(update: Update): void {
    this.#cost.read(asObject(update), this.onRepeated !== null);
    if (this.#turn !== null) this.#tellCost();
  }

  #tellCost(): void {
    const usage = this.#cost.take();
    if (usage !== null) this.#turn?.push({ type: 'usage', usage });
  }

  #isBanner(update: Update): boolean {
    if (!this.#running || this.#banner === null || update.sessionUpdate !== 'agent_message_chunk') return false;
    const is = chunkText(update) === this.#banner;
    // It comes first, or has come before.
    this.#banner = null;
    return is;
  }
}

/** Kinds of our own say what only we can know: in an agent's mouth they are its own affair. */
const OURS = '_throughline/';

function isUpdate(value: unknown): value is Update {
  return isObject(value) && typeof value.sessionUpdate === 'string' && !value.sessionUpdate.startsWith(OURS);
}
