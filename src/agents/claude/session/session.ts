import { setTimeout as sleep } from 'node:timers/promises';
import type { Choices } from '../../../core/turn/choices.ts';
import type { Prompt } from '../../../core/turn/content.ts';
import type { AgentEvent, AgentOutcome, AgentSession, Chosen, PromptRequest } from '../../../ports/agent.ts';
import { whyNotSent } from '../../shared/flight.ts';
import type { ClaudeConnection, ClaudeMessage } from '../connection.ts';
import type { SessionStorage } from '../transcript/locate.ts';
import { probeWritable } from '../transcript/write.ts';
import { userMessage, worded } from '../user-message.ts';
import { ClaudeChoices, type StartedWith } from './choices.ts';
import type { Questions } from './questions.ts';
import { windowIn } from './result.ts';
import type { Rewound } from './rewind.ts';
import { renderMemo } from './seal.ts';
import { SessionFile } from './session-file.ts';
import { afterMessage, NEW_SESSION, next, type SessionEvent, type SessionState } from './state.ts';
import { ClaudeFlight, StoredSession } from './stored-session.ts';
import { isWork, TurnReader } from './turn-reader.ts';

export interface ClaudeSessionParts {
  readonly id: string;
  readonly connection: ClaudeConnection;
  readonly questions: Questions;
  /** Its transcript, read to its end; null: not read yet. */
  readonly file: SessionFile | null;
  /** Where transcripts are. */
  readonly storage: SessionStorage;
  readonly noTools: boolean;
  /** It had no prompt yet, so it must be empty. */
  readonly empty: boolean;
  /** What it has cost so far, in dollars, by Claude's count; null: not known. */
  readonly costUsd: number | null;
  /** Set when it was opened as it was before a failed prompt; null or left out: as it stands in its file. */
  readonly rewound?: Rewound | null;
  readonly version: string;
  /** Model, mode and effort that Claude was started with. */
  readonly startedWith: StartedWith;
  /** Called with the window of its model, whenever Claude reports it. */
  readonly onWindow: (tokens: number) => void;
}

/** How long an interrupted Claude may take to end its turn: it ends its tools and records that. */
const CANCEL_GRACE_MS = 5_000;
/** How long a Claude that does not report that it is idle may continue after its result. */
const QUIET_MS = 250;

/**
 * One session, open in a running Claude. `state.ts` has what it is doing, `stored-session.ts` what its transcript shows. This class sends
 * prompts, reads Claude's messages, and ends turns.
 */
export class ClaudeSession implements AgentSession {
  readonly #parts: ClaudeSessionParts;
  readonly #connection: ClaudeConnection;
  readonly #stored: StoredSession;
  readonly #choices: ClaudeChoices;
  #id: string;
  #costUsd: number | null;
  /** Claude's own name of its model; null: it has not said it yet. */
  #model: string | null = null;
  #state: SessionState<ClaudeFlight> = NEW_SESSION;
  /** Resolved when Claude is no longer `finishing`; null: nobody waits for that. */
  #finishing: PromiseWithResolvers<void> | null = null;

  constructor(parts: ClaudeSessionParts) {
    this.#parts = parts;
    this.#connection = parts.connection;
    this.#id = parts.id;
    this.#costUsd = parts.costUsd;
    this.#choices = new ClaudeChoices((what) => this.#connection.set(what), parts.startedWith);
    this.#stored = new StoredSession(parts.file ?? this.#fileOf(parts.id), {
      empty: parts.empty,
      rewound: parts.rewound ?? null,
    });
    void this.#listen();
  }

  get id() {
    return this.#id;
  }
  get process() {
    return this.#connection.process;
  }
  get alive() {
    return this.#connection.alive && this.#state.claude !== 'ended';
  }
  get memo(): string | null {
    const { seal, compaction } = this.#stored;
    const { model, usualModel } = this.#parts.startedWith;
    return renderMemo({ costUsd: this.#costUsd, seal, compaction, chosenModel: model !== usualModel });
  }

  position(): Promise<string | null> {
    return this.#stored.position();
  }

  transcript(from: number): Promise<Uint8Array | null> {
    return this.#stored.copy(from);
  }

  async *prompt(request: PromptRequest): AsyncGenerator<AgentEvent> {
    const refusal = whyNotSent(request.signal, this.#state.turn !== 'none', this.alive);
    if (refusal !== null) {
      yield { type: 'ended', outcome: refusal };
      return;
    }
    const flight = this.#flightOf(request);
    this.#apply({ kind: 'prompted', prompt: flight });
    void this.#send(flight);
    yield* flight.deliver(request.signal);
  }

  choose(choices: Choices): Promise<Chosen> {
    return this.#choices.choose(choices);
  }

  /** Claude gets its tools when it is started; they cannot be changed afterwards. */
  async allowTools(): Promise<boolean> {
    return !this.#parts.noTools;
  }

  wording(content: Prompt): Prompt {
    return worded(content);
  }

  answer(permissionId: string, optionId: string | null): void {
    this.#parts.questions.answer(permissionId, optionId);
  }

  close(): Promise<void> {
    this.#apply({ kind: 'ended' });
    return this.#connection.close();
  }

  kill(): Promise<void> {
    this.#apply({ kind: 'ended' });
    return this.#connection.kill();
  }

  #apply(event: SessionEvent<ClaudeFlight>): void {
    this.#state = next(this.#state, event);
    if (this.#state.claude === 'finishing') return;
    this.#finishing?.resolve();
    this.#finishing = null;
  }

  #flightOf(request: PromptRequest): ClaudeFlight {
    const stopping = {
      ask: () => void this.#connection.interrupt(),
      kill: () => this.kill(),
      graceMs: CANCEL_GRACE_MS,
    };
    const turn = new TurnReader(request.id, this.#costUsd, this.#parts.version);
    return new ClaudeFlight(stopping, { request, turn, follows: this.#stored.follows(request.expected) });
  }

  async #send(flight: ClaudeFlight): Promise<void> {
    const { id, content, signal } = flight.request;
    if (this.#state.claude === 'finishing') {
      this.#finishing ??= Promise.withResolvers();
      await this.#finishing.promise;
    }
    // With a read-only config directory, Claude would answer as usual and store nothing.
    const unwritable = await probeWritable(this.#parts.storage);
    if (unwritable !== null) return this.#notSent(flight, unsent(`${unwritable}; nothing was sent`, false));
    await this.#stored.mark(id);
    if (signal.aborted) return this.#notSent(flight, { kind: 'cancelled' });
    if (!this.alive) return this.#finish(flight, unsent('Claude’s process ended before the prompt was sent', true));
    this.#apply({ kind: 'sent' });
    this.#parts.questions.begin((event) => flight.events.push(event));
    this.#connection.send(userMessage(content, id, this.#id));
    await this.#stored.follow(flight);
  }

  /** Ends a rewound session: its file still ends with the failed prompt, and the next one that opens it has to find that. */
  async #notSent(flight: ClaudeFlight, outcome: AgentOutcome): Promise<void> {
    if (await this.#stored.isRewound()) await this.kill();
    this.#finish(flight, outcome);
  }

  async #listen(): Promise<void> {
    for await (const message of this.#connection.messages) this.#receive(message);
    await this.kill(); // its output has ended, so the process is of no use any more
    if (this.#state.turn !== 'running') return;
    const { prompt: flight } = this.#state;
    const how = `Claude’s process ended ${this.#connection.ending ?? ''}`.trim();
    await this.#end(flight, flight.turn.outcome ?? flight.whenGone(how));
  }

  #receive(message: ClaudeMessage): void {
    this.#choices.read(message);
    if (message.subtype === 'init' && typeof message.model === 'string') this.#model = message.model;
    const window = message.type === 'result' ? windowIn(message, this.#model) : null;
    if (window !== null) this.#parts.onWindow(window);
    if (message.subtype === 'session_state_changed') this.#apply({ kind: 'reported', idle: message.state === 'idle' });
    if (typeof message.session_id === 'string' && message.session_id !== '') this.#named(message.session_id);
    const flight = this.#flight;
    const reader = flight?.turn ?? null;
    const announced = flight === null ? [] : this.#choices.announcement(message, this.#connection.models);
    for (const update of announced) flight?.events.push({ type: 'update', update });
    for (const event of reader?.read(message) ?? []) flight?.events.push(event);
    const used = reader?.contextUsed ?? null;
    // As agents of the protocol report it.
    const update = { sessionUpdate: 'usage_update', used, size: window } as const;
    if (window !== null && used !== null) flight?.events.push({ type: 'update', update });
    if (reader?.refused) flight?.fail(reader.refused);
    if (reader !== null) this.#costUsd = reader.costUsd;
    const verdict = afterMessage(this.#state, {
      work: isWork(message),
      outcome: reader?.outcome?.kind ?? null,
      idle: reader?.over ?? false,
      usedTools: reader?.usedTools ?? false,
    });
    if (verdict === 'kill') void this.kill();
    const outcome = reader?.outcome ?? null;
    if (flight === null || outcome === null) return;
    if (verdict === 'end') void this.#end(flight, outcome);
    if (verdict === 'end_later') void sleep(QUIET_MS).then(() => this.#end(flight, outcome));
  }

  /** The prompt that was sent; null: none was. What Claude says before that is no answer to it. */
  get #flight(): ClaudeFlight | null {
    return this.#state.turn === 'running' || this.#state.turn === 'recording' ? this.#state.prompt : null;
  }

  /** Claude continues under another id: a new session for the engine (R1), with a file of its own. */
  #named(id: string): void {
    if (id === this.#id) return;
    this.#id = id;
    const prompt = this.#state.turn === 'none' ? null : this.#state.prompt;
    this.#stored.moveTo(this.#fileOf(id, prompt?.request.id));
    prompt?.events.push({ type: 'session', id });
  }

  #fileOf(id: string, prompt: string | null = null): SessionFile | null {
    const file = this.#parts.storage.fileOf(id);
    return file === null ? null : new SessionFile(file, prompt);
  }

  /** Claude has answered, or can answer no more. */
  async #end(flight: ClaudeFlight, outcome: AgentOutcome): Promise<void> {
    if (this.#state.turn !== 'running' || this.#state.prompt !== flight) return;
    this.#apply({ kind: 'answered', idle: flight.turn.over });
    if (outcome.kind === 'failed' && outcome.unsent === true) {
      return this.#finish(flight, { ...outcome, position: await this.#stored.positionWithout(flight.request) });
    }
    const position = await this.#stored.recorded(flight, this.alive);
    this.#finish(flight, outcome.kind === 'lost' ? outcome : { ...outcome, position });
  }

  #finish(flight: ClaudeFlight, outcome: AgentOutcome): void {
    this.#parts.questions.end();
    this.#apply({ kind: 'finished' });
    flight.end(outcome);
  }
}

function unsent(message: string, again: boolean): AgentOutcome {
  return { kind: 'failed', code: 'agent_failed', message, again, unsent: true };
}
