import { isObject } from '../../core/content.ts';
import { chunkText, type Update } from '../../core/update.ts';
import type { AgentEvent, AgentOutcome, AgentSession, PromptRequest } from '../../ports/agent.ts';
import type { Child, Room } from '../../ports/sandbox.ts';
import { EventQueue } from '../shared/event-queue.ts';
import { asObject, type Capabilities } from './capabilities.ts';
import { SandboxClient } from './client.ts';
import { AcpConnection } from './connection.ts';
import type { AcpOptions } from './options.ts';
import { Questions } from './permissions.ts';
import { failureOf } from './refusal.ts';
import { TerminalTexts } from './terminal-texts.ts';
import { CostMeter, TokenMeter } from './usage.ts';

/** The prompt in flight. */
interface Flight {
  readonly events: EventQueue;
  /** The agent has said that it is done: what still comes is no part of the turn. */
  answered: boolean;
  /** Runs from the moment the agent was asked to stop; null: it was not. */
  grace: NodeJS.Timeout | null;
}

/** Kinds of updates that say what happened in a turn: outside of one they would be taken for the next one's. */
const OF_A_TURN: readonly string[] = [
  'user_message_chunk',
  'agent_message_chunk',
  'agent_thought_chunk',
  'tool_call',
  'tool_call_update',
  'plan',
];
const MOST_BETWEEN = 500;
const CLOSE_MS = 2_000;

export interface SessionSettings {
  readonly child: Child;
  readonly room: Room;
  readonly options: AcpOptions;
  readonly memo: string | null;
  readonly onWindow: (tokens: number) => void;
}

/** One session, open in a process of its own. */
export class AcpSession implements AgentSession {
  readonly connection: AcpConnection;
  readonly client: SandboxClient;
  readonly #options: AcpOptions;
  readonly #questions = new Questions();
  readonly #texts = new TerminalTexts();
  readonly #cost: CostMeter;
  #tokens = new TokenMeter({ name: '' });
  /** While a session is loaded: where the history goes that it repeats. */
  onRepeated: ((update: Update) => void) | null = null;
  /** Ends the no-tools profile in place; null: there is none, or it cannot be. */
  onAllowTools: (() => Promise<void>) | null = null;
  #closesSessions = false;
  /** What it shows of itself as if it were an answer; null: nothing, or it has. */
  #banner: string | null = null;
  #id: string | null = null;
  /** What came while no prompt was in flight. */
  #between: Update[] = [];
  #flight: Flight | null = null;
  #closing: Promise<void> | null = null;

  constructor({ child, room, options, memo, onWindow }: SessionSettings) {
    this.#options = options;
    this.#cost = new CostMeter(memo, onWindow);
    this.client = new SandboxClient({
      room,
      directories: options.directories,
      mark: child.identity.mark,
      onTerminalReleased: (id, text) => {
        this.#texts.released(id, text);
        this.#tell(this.#texts.taken());
      },
    });
    this.connection = new AcpConnection(child, {
      notification: (method, params) => this.#notified(method, params),
      answered: (method) => {
        if (method === 'session/prompt' && this.#flight !== null) this.#flight.answered = true;
      },
      request: (method, params) => this.#asked(method, params),
      room: () => this.#flight?.events.room(),
      gone: (how) => this.#gone(how),
    });
  }

  get id() {
    return this.#id;
  }
  get process() {
    return this.connection.identity;
  }
  get alive() {
    return this.connection.alive;
  }
  get memo() {
    return this.#cost.memo;
  }

  /** What the agent behind it is. */
  isOf(agent: Capabilities): void {
    this.#closesSessions = agent.close;
    this.#tokens = new TokenMeter(agent);
  }

  named(id: string): void {
    this.#id = id;
  }

  /** pi greets each new session in a message of its own, which may come while the first prompt is answered. */
  greets(banner: string): void {
    this.#banner = banner;
  }

  /** The protocol has no way to read where a session stands. */
  async position(): Promise<null> {
    return null;
  }

  async *prompt(request: PromptRequest): AsyncGenerator<AgentEvent> {
    const refusal = this.#refusal(request);
    if (refusal !== null) {
      yield { type: 'ended', outcome: refusal };
      return;
    }
    const flight: Flight = { events: new EventQueue(), answered: false, grace: null };
    this.#flight = flight;
    for (const update of this.#between.splice(0)) flight.events.push({ type: 'update', update });
    void this.#send(flight, request);
    yield* flight.events.handOut(request.signal, () => this.#stop(flight));
  }

  async allowTools(): Promise<boolean> {
    if (!this.client.withoutTools) return true;
    if (this.onAllowTools === null || !this.alive) return false;
    try {
      await this.onAllowTools();
    } catch {
      return false;
    }
    this.client.withoutTools = false;
    return true;
  }

  answer(permissionId: string, optionId: string | null): void {
    this.#questions.answer(permissionId, optionId);
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async kill(): Promise<void> {
    this.#flight?.events.release();
    await Promise.all([this.connection.kill(), this.client.end()]);
  }

  async #close(): Promise<void> {
    this.#flight?.events.release();
    if (this.#closesSessions && this.#flight === null && this.alive) {
      // It may have something to write. Whatever it says, its process is ended next.
      const closed = this.connection.request('session/close', { sessionId: this.#id }).catch(() => {});
      await Promise.race([closed, after(CLOSE_MS)]);
    }
    await Promise.all([this.connection.close(), this.client.end()]);
  }

  /** Why a prompt cannot be sent; null: it can. Nothing has left us then, so it may be tried again elsewhere. */
  #refusal({ signal }: PromptRequest): AgentOutcome | null {
    if (signal.aborted) return { kind: 'cancelled' };
    const failed = (message: string) => ({ kind: 'failed', code: 'agent_failed', message, again: true }) as const;
    if (this.#flight !== null) return failed('this session is still busy with a prompt');
    return this.alive ? null : failed('the agent’s process ended before the prompt was sent');
  }

  async #send(flight: Flight, { content }: PromptRequest): Promise<void> {
    const params = { sessionId: this.#id, prompt: content };
    try {
      const response = await this.connection.request('session/prompt', params);
      const usage = this.#tokens.read(response);
      if (usage !== null) flight.events.push({ type: 'usage', usage });
      this.#finish(flight, outcomeOf(asObject(response).stopReason, flight.grace !== null));
    } catch (error) {
      const asked = flight.grace !== null;
      this.#finish(flight, asked ? { kind: 'cancelled' } : failureOf(error));
    }
  }

  /** Asks the agent to stop, and ends it when it does not. */
  #stop(flight: Flight): void {
    if (flight.events.ended || flight.grace !== null) return;
    this.connection.notify('session/cancel', { sessionId: this.#id });
    flight.grace = setTimeout(() => void this.kill(), this.#options.cancelGraceMs);
    this.#questions.cancelAll();
  }

  #finish(flight: Flight, outcome: AgentOutcome): void {
    if (this.#flight !== flight) return;
    this.#tell(this.#texts.rest((id) => this.client.textOf(id)));
    this.#flight = null;
    this.#questions.cancelAll();
    if (flight.grace !== null) clearTimeout(flight.grace);
    flight.events.end(outcome);
  }

  #gone(how: string): void {
    const flight = this.#flight;
    void this.client.end();
    if (flight === null) return;
    const asked = flight.grace !== null;
    this.#finish(flight, asked ? { kind: 'cancelled' } : { kind: 'lost', message: `the agent’s process ended ${how}` });
  }

  #notified(method: string, params: unknown): void {
    const { update, sessionId } = asObject(params);
    if (method !== 'session/update') {
      this.#flight?.events.push({ type: 'update', update: { sessionUpdate: '_acp/notification', method, params } });
      return;
    }
    if (!isObject(update) || typeof update.sessionUpdate !== 'string') return;
    // Sub-sessions of the agent's own are told apart by whoever shows them, not by us.
    this.#update(update as unknown as Update, typeof sessionId === 'string' ? sessionId : null);
  }

  #update(update: Update, sessionId: string | null): void {
    const ours = this.#id === null || sessionId === null || sessionId === this.#id;
    const kept = ours ? update : ({ sessionUpdate: '_acp/other_session', sessionId, update } as Update);
    if (this.onRepeated !== null && ours) {
      this.onRepeated(update);
      if (OF_A_TURN.includes(update.sessionUpdate)) return;
    }
    const spent = ours && update.sessionUpdate === 'usage_update' ? this.#cost.read(update) : null;
    const flight = this.#flight;
    if (flight !== null && spent !== null) flight.events.push({ type: 'usage', usage: spent });
    if (flight === null || flight.answered) {
      this.#keepForNext(kept);
      return;
    }
    if (this.#isBanner(kept)) {
      flight.events.push({ type: 'update', update: apart(kept) });
      return;
    }
    flight.events.push({ type: 'update', update: kept });
    this.#texts.see(kept);
  }

  #isBanner(update: Update): boolean {
    if (this.#banner === null || update.sessionUpdate !== 'agent_message_chunk') return false;
    const is = chunkText(update) === this.#banner;
    // It comes first, or has come before.
    this.#banner = null;
    return is;
  }

  /** It belongs to no turn, and is not to be lost either: the next one has it, where it cannot pass for that turn's own. */
  #keepForNext(update: Update): void {
    this.#between.push(OF_A_TURN.includes(update.sessionUpdate) ? apart(update) : update);
    if (this.#between.length > MOST_BETWEEN) this.#between.shift();
  }

  async #asked(method: string, params: unknown): Promise<unknown> {
    if (method !== 'session/request_permission') return this.client.handle(method, params);
    const flight = this.#flight;
    const nobody = flight === null || flight.grace !== null || this.client.withoutTools;
    return this.#questions.put(params, nobody ? null : (question) => flight.events.push(question));
  }

  #tell(updates: Iterable<Update>): void {
    for (const update of updates) this.#flight?.events.push({ type: 'update', update });
  }
}

function apart(update: Update): Update {
  return { sessionUpdate: '_acp/between_turns', update } as Update;
}

function outcomeOf(stopReason: unknown, asked: boolean): AgentOutcome {
  if (stopReason === 'end_turn') return asked ? { kind: 'cancelled' } : { kind: 'completed' };
  if (stopReason === 'cancelled') return { kind: 'cancelled' };
  const message =
    STOPPED[String(stopReason)] ?? `the agent stopped: ${JSON.stringify(stopReason) ?? 'it did not say why'}`;
  return { kind: 'failed', code: 'agent_failed', message, again: false };
}

const STOPPED: Readonly<Record<string, string>> = {
  max_tokens: 'the answer was cut off: the model may not say more in one turn',
  max_turn_requests: 'the agent stopped: it may not ask its model more often in one turn',
  refusal: 'the agent refused to answer',
};

function after(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms).unref());
}
