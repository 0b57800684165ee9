import { ThroughlineError } from '../../core/errors.ts';
import type { AgentEvent, AgentSession, PromptRequest } from '../../ports/agent.ts';
import type { Child } from '../../ports/sandbox.ts';
import { EventQueue } from './event-queue.ts';
import { LineReader } from './lines.ts';
import { parseMessage } from './messages.ts';
import type { ScriptedOptions } from './options.ts';
import { proofOf } from './proof.ts';
import type { FromProgram, ToProgram } from './protocol.ts';
import { StderrTail } from './stderr-tail.ts';
import { readPosition, storageFile } from './storage.ts';

type Answer = Extract<FromProgram, { type: 'opened' | 'refused' }>;
type Open = Extract<ToProgram, { type: 'open' }>;

/** The prompt in flight. */
interface Flight {
  readonly request: PromptRequest;
  readonly events: EventQueue;
  /** Where it must land; undefined: nothing to check. */
  readonly landsAt: string | null | undefined;
  accepted: Extract<FromProgram, { type: 'accepted' }> | null;
  proved: boolean;
  stopping: NodeJS.Timeout | null;
}

const CLOSE_STEP_MS = 500;

/** One process of the program, with one session open in it. */
export class ScriptedSession implements AgentSession {
  /** Lines of its output that were no messages. */
  noise = 0;
  readonly #child: Child;
  readonly #open: Open;
  readonly #options: ScriptedOptions;
  readonly #stderr = new StderrTail();
  readonly #answer = Promise.withResolvers<Answer>();
  #id: string | null = null;
  #gone = false;
  #prompted: boolean;
  #flight: Flight | null = null;
  #closing: Promise<void> | null = null;

  constructor(child: Child, open: Open) {
    this.#child = child;
    this.#open = open;
    this.#options = open.options;
    this.#prompted = open.how === 'resume';
    this.#answer.promise.catch(() => {}); // it may come when nobody waits for it any more
    void this.#listen();
  }

  get id() {
    return this.#id;
  }
  get process() {
    return this.#child.identity;
  }
  get alive() {
    return this.#child.alive && !this.#gone;
  }

  /** Asks the program to open the session. Throws `agent_unavailable` when it ends before it has answered. */
  async start(): Promise<Answer> {
    this.#send(this.#open);
    const answer = await this.#answer.promise;
    if (answer.type === 'opened') this.#id = answer.id;
    return answer;
  }

  async position(): Promise<string | null> {
    const file = this.#storage();
    return file === null ? null : readPosition(file);
  }

  async *prompt(request: PromptRequest): AsyncGenerator<AgentEvent> {
    const refusal = this.#refusal(request);
    if (refusal !== null) {
      yield { type: 'ended', outcome: refusal };
      return;
    }
    const flight = this.#takeOff(request);
    const stop = () => this.#stop(flight);
    request.signal.addEventListener('abort', stop, { once: true });
    this.#send({ type: 'prompt', id: request.id, content: request.content });
    try {
      yield* flight.events.drain();
    } finally {
      request.signal.removeEventListener('abort', stop);
      // Whoever leaves in the middle must not leave the agent working.
      if (!flight.events.ended) this.#stop(flight);
      flight.events.abandon();
    }
  }

  async allowTools(): Promise<boolean> {
    if (!this.#open.noTools) return true;
    if (!this.#options.toolsInPlace || !this.alive) return false;
    this.#send({ type: 'tools' });
    return true;
  }

  answer(permissionId: string, optionId: string | null): void {
    this.#send({ type: 'answer', id: permissionId, optionId });
  }

  close(): Promise<void> {
    this.#closing ??= this.#end();
    return this.#closing;
  }

  async kill(): Promise<void> {
    this.#flight?.events.release();
    this.#child.kill('SIGKILL');
    await this.#child.exited;
  }

  async #end(): Promise<void> {
    this.#flight?.events.release();
    this.#child.stdin.end();
    if (await this.#exitsWithin(CLOSE_STEP_MS)) return;
    this.#child.kill('SIGTERM');
    if (await this.#exitsWithin(CLOSE_STEP_MS)) return;
    await this.kill();
  }

  async #exitsWithin(ms: number): Promise<boolean> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<false>((resolve) => {
      timer = setTimeout(resolve, ms, false);
    });
    const exited = await Promise.race([this.#child.exited.then(() => true), late]);
    clearTimeout(timer);
    return exited;
  }

  /** Why a prompt cannot be sent; null: it can. Nothing has left us then, so it may be tried again elsewhere. */
  #refusal({ signal }: PromptRequest): Extract<AgentEvent, { type: 'ended' }>['outcome'] | null {
    if (signal.aborted) return { kind: 'cancelled' };
    const failed = (message: string) => ({ kind: 'failed', code: 'agent_failed', message, again: true }) as const;
    if (this.#flight !== null) return failed('this session is still busy with a prompt');
    return this.alive ? null : failed('the agent’s process ended before the prompt was sent');
  }

  #takeOff(request: PromptRequest): Flight {
    // A session that nobody has prompted must be empty; of any other, only the caller knows where it should stand.
    const unknown = request.expected === null && this.#prompted;
    const landsAt = unknown ? undefined : request.expected;
    this.#prompted = true;
    const flight: Flight = {
      request,
      events: new EventQueue(),
      landsAt,
      accepted: null,
      proved: false,
      stopping: null,
    };
    this.#flight = flight;
    return flight;
  }

  /** Asks the agent to stop, and ends it when it does not. */
  #stop(flight: Flight): void {
    if (flight.events.ended || flight.stopping !== null) return;
    this.#send({ type: 'cancel' });
    flight.stopping = setTimeout(() => this.#child.kill('SIGKILL'), this.#options.cancelGraceMs);
  }

  async #listen(): Promise<void> {
    void this.#stderr.read(this.#child.stderr);
    const lines = new LineReader((line) => this.#receive(line));
    try {
      for await (const chunk of this.#child.stdout) {
        lines.push(chunk);
        this.noise += lines.dropped;
        lines.dropped = 0;
        await this.#flight?.events.room();
      }
    } catch {
      // The pipe broke: what matters is how the process ended.
    }
    const { code, signal } = await this.#child.exited;
    this.#gone = true;
    const how = signal === null ? `with code ${code}` : `by ${signal}`;
    const complaint = this.#stderr.text === '' ? '' : `: ${this.#stderr.text}`;
    this.#answer.reject(
      new ThroughlineError('agent_unavailable', `The scripted agent ended ${how} before it was open${complaint}`, {
        hint: 'run it by hand to see what it says',
      }),
    );
    const message = `the agent’s process ended ${how}${complaint}`;
    this.#finish(this.#flight?.stopping ? { kind: 'cancelled' } : { kind: 'lost', message });
  }

  #receive(line: string): void {
    const message = parseMessage(line);
    if (message === null) {
      this.noise += 1;
      return;
    }
    const flight = this.#flight;
    switch (message.type) {
      case 'opened':
      case 'refused':
        this.#answer.resolve(message);
        break;
      case 'session':
        this.#id = message.id;
        flight?.events.push(message);
        this.#prove();
        break;
      case 'accepted':
        if (flight) flight.accepted = message;
        this.#prove();
        break;
      case 'ended':
        if (message.prompt === flight?.request.id) this.#finish(message.outcome);
        break;
      default:
        flight?.events.push(message);
    }
  }

  /** As soon as the prompt is in a session whose name we know. */
  #prove(): void {
    const flight = this.#flight;
    const file = this.#storage();
    if (!flight?.accepted || flight.proved || flight.landsAt === undefined || file === null) return;
    flight.proved = true;
    flight.events.push(proofOf({ file, ...flight.accepted, expected: flight.landsAt }));
  }

  #finish(outcome: Extract<AgentEvent, { type: 'ended' }>['outcome']): void {
    const flight = this.#flight;
    if (flight === null) return;
    this.#flight = null;
    if (flight.stopping !== null) clearTimeout(flight.stopping);
    flight.events.end(outcome);
  }

  /** Null: the session has no name yet, or its storage is not to be read. */
  #storage(): string | null {
    const readable = this.#options.position && this.#options.memory === 'disk';
    return readable && this.#id !== null ? storageFile(this.#open.dir, this.#id) : null;
  }

  #send(message: ToProgram): void {
    this.#child.stdin.write(`${JSON.stringify(message)}\n`);
  }
}
