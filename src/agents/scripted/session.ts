import { ThroughlineError } from '../../core/errors.ts';
import type { AgentEvent, AgentOutcome, AgentSession, PromptRequest } from '../../ports/agent.ts';
import type { Child, OpenSandbox } from '../../ports/sandbox.ts';
import { Flight, mustFollow, type Stopping, whyNotSent } from '../shared/flight.ts';
import { type Ending, LineProcess } from '../shared/line-process.ts';
import type { ScriptedOptions } from './options.ts';
import { type FromProgram, parseMessage, type ToProgram } from './protocol.ts';
import { proofOf, readPosition, type SessionFile, storageFile } from './storage.ts';

type OpenAnswer = Extract<FromProgram, { type: 'opened' | 'refused' }>;
type Open = Extract<ToProgram, { type: 'open' }>;

const CLOSE_STEP_MS = 500;
/** Longer than any message of the program. One of its faults is a line without an end. */
const MAX_LINE_BYTES = 8 * 1024 * 1024;

/** The prompt in flight. */
class ScriptedFlight extends Flight {
  readonly id: string;
  /** The position that the prompt must follow; undefined: nothing to check. */
  readonly follows: string | null | undefined;
  taken: Extract<FromProgram, { type: 'taken' }> | null = null;
  proved = false;

  constructor(id: string, follows: string | null | undefined, stopping: Stopping) {
    super(stopping);
    this.id = id;
    this.follows = follows;
  }
}

/** One session, open in a process of its own. */
export class ScriptedSession implements AgentSession {
  readonly #program: LineProcess;
  readonly #open: Open;
  readonly #options: ScriptedOptions;
  readonly #sandbox: OpenSandbox;
  readonly #answer = Promise.withResolvers<OpenAnswer>();
  #id: string | null = null;
  #prompted: boolean;
  #flight: ScriptedFlight | null = null;
  /** The storage is being read for a proof; null: it is not. */
  #reading: Promise<void> | null = null;
  /** The file of the session with this id. */
  #file: { readonly id: string; readonly file: SessionFile } | null = null;

  constructor(child: Child, sandbox: OpenSandbox, open: Open) {
    this.#sandbox = sandbox;
    this.#open = open;
    this.#options = open.options;
    this.#prompted = open.how === 'resume';
    this.#answer.promise.catch(() => {}); // it may reject when nobody waits for it
    const listener = {
      line: (line: string) => {
        const message = parseMessage(line);
        if (message !== null) this.#inOrder(() => this.#receive(message));
      },
      tooLong: () => {},
      ready: () => this.#flight?.events.ready(),
      gone: ({ text }: Ending) => this.#inOrder(() => this.#gone(text)),
    };
    this.#program = new LineProcess(child, listener, { closeStepMs: CLOSE_STEP_MS, maxLineBytes: MAX_LINE_BYTES });
  }

  get id() {
    return this.#id;
  }
  get process() {
    return this.#program.identity;
  }
  get alive() {
    return this.#program.alive;
  }

  /** Asks the program to open the session. Throws `agent_unavailable` when it ends before it answers. */
  async start(): Promise<OpenAnswer> {
    this.#program.send(this.#open);
    const answer = await this.#answer.promise;
    if (answer.type === 'opened') this.#id = answer.id;
    return answer;
  }

  async position(): Promise<string | null> {
    const file = await this.#storage();
    return file === null ? null : readPosition(file);
  }

  async *prompt(request: PromptRequest): AsyncGenerator<AgentEvent> {
    const refusal = whyNotSent(request.signal, this.#flight !== null, this.alive);
    if (refusal !== null) {
      yield { type: 'ended', outcome: refusal };
      return;
    }
    const flight = this.#begin(request);
    this.#program.send({ type: 'prompt', id: request.id, content: request.content });
    yield* flight.deliver(request.signal);
  }

  async allowTools(): Promise<boolean> {
    if (!this.#open.noTools) return true;
    if (!this.#options.toolsInPlace || !this.alive) return false;
    this.#program.send({ type: 'tools' });
    return true;
  }

  answer(permissionId: string, optionId: string | null): void {
    this.#program.send({ type: 'answer', id: permissionId, optionId });
  }

  close(): Promise<void> {
    this.#flight?.events.release();
    return this.#program.close();
  }

  kill(): Promise<void> {
    this.#flight?.events.release();
    return this.#program.kill();
  }

  #begin({ id, expected }: PromptRequest): ScriptedFlight {
    const follows = mustFollow(expected, this.#prompted);
    this.#prompted = true;
    this.#flight = new ScriptedFlight(id, follows, {
      ask: () => this.#program.send({ type: 'cancel' }),
      kill: () => this.kill(),
      graceMs: this.#options.cancelGraceMs,
    });
    return this.#flight;
  }

  /** Messages that come while the storage is read wait for that, so that events keep their order. */
  #inOrder(step: () => void | Promise<void>): void {
    const done = this.#reading === null ? step() : this.#reading.then(step);
    if (done === undefined) return;
    const reading = done.finally(() => {
      if (this.#reading === reading) this.#reading = null;
    });
    this.#reading = reading;
  }

  #receive(message: FromProgram): void | Promise<void> {
    const flight = this.#flight;
    switch (message.type) {
      case 'opened':
      case 'refused':
        this.#answer.resolve(message);
        break;
      case 'session':
        this.#id = message.id;
        flight?.events.push(message);
        return this.#prove();
      case 'taken':
        if (flight) flight.taken = message;
        return this.#prove();
      case 'ended':
        if (message.prompt === flight?.id) this.#finish(message.outcome);
        break;
      default:
        flight?.events.push(message);
    }
  }

  #gone(how: string): void {
    const hint = 'Run the program by hand to see its error.';
    const unopened = `The scripted agent ended ${how}, before its session was open.`;
    this.#answer.reject(new ThroughlineError('agent_unavailable', unopened, { hint }));
    if (this.#flight) this.#finish(this.#flight.whenGone(`the agent’s process ended ${how}`));
  }

  /** Reports where the prompt landed, as soon as it is in a session whose id is known. */
  async #prove(): Promise<void> {
    const flight = this.#flight;
    if (!flight?.taken || flight.proved || flight.follows === undefined) return;
    const file = await this.#storage();
    if (file === null) return;
    flight.proved = true;
    flight.events.push(await proofOf({ file, ...flight.taken, expected: flight.follows }));
  }

  #finish(outcome: AgentOutcome): void {
    const flight = this.#flight;
    this.#flight = null;
    flight?.end(outcome);
  }

  /** Null: the session has no id yet, its storage cannot be reached, or the adapter does not read it. */
  async #storage(): Promise<SessionFile | null> {
    const readable = this.#options.position && this.#options.memory === 'disk';
    const id = this.#id;
    if (!readable || id === null) return null;
    if (this.#file?.id === id) return this.#file.file;
    const file = await storageFile(this.#sandbox, this.#options, id).catch(() => null);
    if (file !== null) this.#file = { id, file };
    return file;
  }
}
