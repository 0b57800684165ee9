import { existsSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { AgentEvent, AgentOutcome, AgentSession, PromptRequest } from '../../ports/agent.ts';
import { whyNotSent } from '../shared/flight.ts';
import { ClaudeFlight, gone, unsent } from './claude-flight.ts';
import type { ClaudeConnection, ClaudeMessage } from './connection.ts';
import { renderMemo } from './memo.ts';
import { isWork, TurnReader } from './messages.ts';
import type { Questions } from './permissions.ts';
import type { CostSoFar } from './result.ts';
import type { Rewound } from './rewind.ts';
import { SessionFile } from './session-file.ts';
import { FileWatch } from './transcript/file-watch.ts';
import { entriesFrom } from './transcript/position.ts';
import { probeWritable } from './transcript/write.ts';
import { userMessage } from './user-message.ts';

export interface ClaudeSessionParts {
  /** Null: Claude names it with its first message. */
  readonly id: string | null;
  readonly connection: ClaudeConnection;
  readonly questions: Questions;
  /** Its transcript, read as far as it goes; null: nobody has looked yet. */
  readonly file: SessionFile | null;
  /** Where the transcript of a session lies; null: none can have this id. */
  fileOf(id: string): string | null;
  /** The folder that it is written to. */
  readonly folder: string;
  readonly noTools: boolean;
  /** Nobody has prompted it: it must be empty. */
  readonly empty: boolean;
  readonly cost: CostSoFar | null;
  /** It was opened as it was before a failed prompt; null or left out: as it stands in its file. */
  readonly rewound?: Rewound | null;
  readonly version: string;
}

/** How long an interrupted Claude may take to end its turn; it closes tools and writes them down. */
const CANCEL_GRACE_MS = 5_000;
/** How long what was streamed may take to be in the file. Claude writes it within a tenth of a second. */
const WRITE_GRACE_MS = 3_000;
/** A version that does not tell when it is idle gets as much time to say more after its result. */
const QUIET_MS = 250;
const LOOK_AGAIN_MS = 10;
const LOOK_AGAIN_MOST_MS = 200;

/**
 * One session, open in a running Claude.
 *
 *   free ──prompt──▶ in flight ──result and, after tools, idle──▶ waits until the transcript holds what was streamed ──▶ free
 *                        ╰──abort──▶ interrupted, after a while killed        the process ends: free for ever
 */
export class ClaudeSession implements AgentSession {
  readonly #parts: ClaudeSessionParts;
  readonly #connection: ClaudeConnection;
  #id: string | null;
  /** Null: the session has no name yet. */
  #file: SessionFile | null;
  #prompted: boolean;
  #cost: CostSoFar | null;
  #tellsState = false;
  /** Claude streamed what it did not write: until a later turn finds all of it, what its file says is not what it knows. */
  #unwritten = false;
  /** The entries that were not there when they were last looked for. */
  #missing: readonly string[] = [];
  /** Somebody has ended it: from then on it takes nothing, though its process may take a moment. */
  #ended = false;
  #flight: ClaudeFlight | null = null;
  /** Of the transcript, while the process lives; null: nobody watches yet. */
  #watch: FileWatch | null = null;
  /** A turn has ended by its result, and Claude has not said yet that it is idle; null: it has. */
  #resting: PromiseWithResolvers<void> | null = null;

  constructor(parts: ClaudeSessionParts) {
    this.#parts = parts;
    this.#connection = parts.connection;
    this.#id = parts.id;
    this.#file = parts.file ?? this.#fileOf(parts.id);
    this.#prompted = !parts.empty;
    this.#cost = parts.cost;
    void this.#listen();
  }

  get id() {
    return this.#id;
  }
  get process() {
    return this.#connection.process;
  }
  get alive() {
    return this.#connection.alive && !this.#ended;
  }
  get memo(): string | null {
    return renderMemo({ cost: this.#cost, seal: this.#file?.seal ?? null });
  }

  async position(): Promise<string | null> {
    const position = this.#unwritten || this.#file === null ? null : await this.#file.position();
    const { rewound } = this.#parts;
    return rewound && position === rewound.filePosition ? rewound.position : position;
  }

  async transcript(from: number): Promise<Uint8Array | null> {
    return this.#unwritten || this.#file === null ? null : this.#file.copy(from);
  }

  async *prompt(request: PromptRequest): AsyncGenerator<AgentEvent> {
    const refusal = whyNotSent(request.signal, this.#flight !== null, this.alive);
    if (refusal !== null) {
      yield { type: 'ended', outcome: refusal };
      return;
    }
    const flight = this.#takeOff(request);
    void this.#send(flight);
    yield* flight.handOut(request.signal);
  }

  /** Which tools there are is said when Claude is started, and not changed afterwards. */
  async allowTools(): Promise<boolean> {
    return !this.#parts.noTools;
  }

  answer(permissionId: string, optionId: string | null): void {
    this.#parts.questions.answer(permissionId, optionId);
  }

  close(): Promise<void> {
    this.#ended = true;
    return this.#connection.close();
  }

  kill(): Promise<void> {
    this.#ended = true;
    return this.#connection.kill();
  }

  #takeOff(request: PromptRequest): ClaudeFlight {
    // A session that nobody has prompted must be empty; of any other, only the caller knows where it should stand.
    const unknown = request.expected === null && this.#prompted;
    const turn = new TurnReader(request.id, this.#cost, this.#parts.version, this.#tellsState);
    const stopping = {
      ask: () => void this.#connection.interrupt(),
      kill: () => this.kill(),
      graceMs: CANCEL_GRACE_MS,
    };
    this.#flight = new ClaudeFlight(stopping, { request, turn, landsAt: unknown ? undefined : request.expected });
    return this.#flight;
  }

  /** With a read-only config directory Claude would answer as always and keep nothing, so that is found out before. */
  async #send(flight: ClaudeFlight): Promise<void> {
    const { id, content, signal } = flight.request;
    // A prompt that comes before Claude is idle is taken into the turn before.
    await this.#resting?.promise;
    const unwritable = probeWritable(this.#parts.folder);
    if (unwritable !== null) return this.#notSent(flight, unsent(`${unwritable}; nothing was sent`, false));
    await this.#file?.mark(id);
    if (signal.aborted) return this.#notSent(flight, { kind: 'cancelled' });
    if (!this.alive) return this.#finish(flight, gone());
    flight.sent = true;
    this.#parts.questions.begin((event) => flight.events.push(event));
    this.#connection.send(userMessage(content, id, this.#id ?? ''));
    await this.#readAlong(flight);
  }

  /** Where it has gone back for this prompt, its file still ends with the one that failed: whoever opens it next is to see that. */
  async #notSent(flight: ClaudeFlight, outcome: AgentOutcome): Promise<void> {
    const { rewound } = this.#parts;
    if (rewound && (await this.position()) === rewound.position) await this.kill();
    this.#finish(flight, outcome);
  }

  /** Reads what Claude writes when it writes it: with the result there is nothing left to read, and nobody waits for that. */
  async #readAlong(flight: ClaudeFlight): Promise<void> {
    for (let pause = LOOK_AGAIN_MS; !flight.events.ended; pause = longer(pause)) {
      await this.#changed(pause);
      if (!flight.ending) await this.#prove(flight);
    }
  }

  /** Resolves when the transcript has changed; where nobody would say so, after the pause. */
  async #changed(pause: number): Promise<void> {
    if (this.#file !== null && this.#connection.alive) this.#watch ??= new FileWatch(this.#file.path);
    await (this.#watch?.next(pause) ?? sleep(pause));
  }

  async #listen(): Promise<void> {
    for await (const message of this.#connection.messages) this.#receive(message);
    await this.#connection.kill(); // its output has ended: whatever is left of it can tell us nothing
    this.#unwatch();
    this.#rested();
    const flight = this.#flight;
    if (!flight?.sent || flight.ending) return;
    const how = `Claude’s process ended ${this.#connection.ending ?? ''}`.trim();
    await this.#land(flight, flight.turn.outcome ?? flight.whenGone(how));
  }

  #receive(message: ClaudeMessage): void {
    const flight = this.#flight;
    if (message.subtype === 'session_state_changed' && message.state === 'idle') this.#rested();
    if (typeof message.session_id === 'string' && message.session_id !== '') this.#named(message.session_id, flight);
    if (!flight?.sent) {
      if (message.subtype === 'session_state_changed') this.#tellsState = true;
      // Nobody asked, and nobody would be told. What it has done by then is found in its storage.
      if (isWork(message)) void this.kill();
      return;
    }
    for (const event of flight.turn.read(message)) flight.events.push(event);
    this.#cost = flight.turn.cost;
    this.#tellsState ||= flight.turn.tellsState;
    const { outcome } = flight.turn;
    if (outcome === null || flight.ending) return;
    if (flight.turn.over) void this.#land(flight, outcome);
    else if (this.#mayRest(flight.turn)) {
      this.#resting = Promise.withResolvers();
      void this.#land(flight, outcome);
    } else if (!this.#tellsState) void sleep(QUIET_MS).then(() => this.#land(flight, outcome));
  }

  /** Whether all has been said with the result, and that Claude is idle is only for the next prompt to wait for. */
  #mayRest({ outcome, usedTools }: TurnReader): boolean {
    // What has a process for every prompt is idle when there is the next one, and that is to be known before.
    return this.#tellsState && this.#connection.namesPrompts && outcome?.kind === 'completed' && !usedTools;
  }

  #unwatch(): void {
    this.#watch?.close();
    this.#watch = null;
  }

  #rested(): void {
    this.#resting?.resolve();
    this.#resting = null;
  }

  /** Older versions go on under another id with every process, or even with every prompt. */
  #named(id: string, flight: ClaudeFlight | null): void {
    if (id === this.#id) return;
    this.#id = id;
    this.#file = this.#fileOf(id, flight?.request.id);
    this.#unwatch();
    flight?.events.push({ type: 'session', id });
  }

  #fileOf(id: string | null, prompt: string | null = null): SessionFile | null {
    const path = id === null ? null : this.#parts.fileOf(id);
    return path === null ? null : new SessionFile(path, prompt);
  }

  /** The turn is over once the transcript holds what we were shown of it. */
  async #land(flight: ClaudeFlight, outcome: AgentOutcome): Promise<void> {
    if (flight.ending) return;
    flight.ending = true;
    if (outcome.kind === 'failed' && outcome.unsent === true) return this.#landUntaken(flight, outcome);
    this.#prompted = true;
    const written = await this.#written(flight);
    this.#unwritten = !written;
    // Somebody may have gone on from our turn already: then this is not where the file stands, and the next turn will see it.
    const position = written ? (this.#file?.ownPosition ?? null) : null;
    if (!written && flight.landsAt !== undefined) flight.events.push(UNWRITTEN);
    this.#finish(flight, outcome.kind === 'lost' ? outcome : { ...outcome, position });
  }

  /** Nothing of it has to be written, but that it was not taken may be; what others have written meanwhile is not Claude’s. */
  async #landUntaken(flight: ClaudeFlight, outcome: AgentOutcome): Promise<void> {
    const { expected } = flight.request;
    const file = this.#file;
    const found = file && expected !== null ? await entriesFrom(file.path, { prompt: null, position: expected }) : null;
    const position = expected === null || this.#unwritten ? await this.position() : (found?.position ?? null);
    // Of a file that is there and tells nothing, nobody knows that it is empty.
    if (file === null || existsSync(file.path)) this.#prompted = true;
    this.#finish(flight, { ...outcome, position });
  }

  /** Waits until all that we were shown is in the transcript; false: it is not, or nobody can tell. */
  async #written(flight: ClaudeFlight): Promise<boolean> {
    const expected = [flight.request.id, ...flight.turn.entries];
    const patience = this.alive && this.#connection.namesPrompts ? WRITE_GRACE_MS : 0;
    // Counted in pauses and not by the clock: a machine that keeps us from looking keeps Claude from writing, too.
    for (let pause = LOOK_AGAIN_MS, waited = 0; ; waited += pause, pause = longer(pause)) {
      await this.#prove(flight);
      const all = expected.every((uuid) => this.#file?.has(uuid));
      if (all || flight.turn.writesLost || waited >= patience) break;
      await sleep(pause);
    }
    const late = this.#missing.filter((uuid) => (this.#file?.positionAt(uuid) ?? null) === null);
    this.#missing = [...late, ...expected.filter((uuid) => !this.#file?.has(uuid))];
    // A file that was deleted in the middle of the turn begins with the rest of it: what came before is in no file then.
    return this.#missing.length === 0 && this.#file?.chain?.rootReached === true;
  }

  /** As soon as the prompt is in the file, wherever the turn is by then. */
  async #prove(flight: ClaudeFlight): Promise<void> {
    const file = this.#file;
    await file?.read();
    if (flight.proved || !file) return;
    const proof = file.landing(flight.request.id, flight.landsAt ?? null);
    if (proof === null) return;
    flight.proved = true;
    if (flight.landsAt !== undefined) flight.events.push(proof);
  }

  #finish(flight: ClaudeFlight, outcome: AgentOutcome): void {
    this.#parts.questions.end();
    this.#flight = null;
    flight.end(outcome);
    this.#watch?.release();
  }
}

/** What was streamed is no proof of what a process that is started later will know. */
const UNWRITTEN = {
  type: 'proof',
  proof: 'counted',
  detail: 'not all that Claude said is in its transcript',
} as const;

function longer(pause: number): number {
  return Math.min(pause * 1.5, LOOK_AGAIN_MOST_MS);
}
