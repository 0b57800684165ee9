import type { AgentEvent, AgentOutcome, AgentSession, PromptRequest } from '../../../ports/agent.ts';
import type { Child, OpenSandbox } from '../../../ports/sandbox.ts';
import { Flight, whyNotSent } from '../../shared/flight.ts';
import { failureOf } from '../connection/answers.ts';
import { asObject, type Capabilities, NO_CAPABILITIES } from '../connection/capabilities.ts';
import { AcpConnection } from '../connection/connection.ts';
import { outcomeOf, untakable } from '../connection/prompt-outcome.ts';
import type { AcpOptions } from '../options.ts';
import { SandboxClient } from '../tools/client.ts';
import { Questions } from '../tools/permissions.ts';
import { Updates } from './updates.ts';
import { TokenMeter } from './usage.ts';

const CLOSE_MS = 2_000;

export interface SessionSettings {
  readonly child: Child;
  readonly sandbox: OpenSandbox;
  readonly options: AcpOptions;
  readonly memo: string | null;
  readonly onWindow: (tokens: number) => void;
}

/** A mode in which no tool can run. */
export interface QuietMode {
  readonly mode: string;
  leave(): Promise<void>;
  /** Whether the session has all then that the settings say; else it has to be opened again. */
  readonly hasAll: boolean;
}

/** One session, open in a process of its own. */
export class AcpSession implements AgentSession {
  readonly connection: AcpConnection;
  readonly client: SandboxClient;
  readonly updates: Updates;
  readonly #options: AcpOptions;
  readonly #questions = new Questions();
  #tokens = new TokenMeter({ name: '' });
  #can: Capabilities = NO_CAPABILITIES;
  #quiet: QuietMode | null = null;
  #flight: Flight | null = null;
  #closing: Promise<void> | null = null;

  constructor({ child, sandbox, options, memo, onWindow }: SessionSettings) {
    this.#options = options;
    this.updates = new Updates(memo, onWindow);
    this.client = new SandboxClient({
      sandbox,
      directories: options.directories,
      mark: child.identity.mark,
      inTurn: () => this.#flight !== null,
      taken: () => this.connection.taken(),
      onTerminalReleased: (id, text) => this.updates.terminalReleased(id, text),
    });
    this.connection = new AcpConnection(child, {
      notification: (method, params, length) => this.updates.notified(method, params, length),
      answered: (method) => {
        if (method === 'session/prompt') this.updates.answered();
      },
      request: (method, params) => this.#asked(method, params),
      room: () => this.#flight?.events.room(),
      gone: (how) => this.#gone(how),
    });
  }

  get id() {
    return this.updates.sessionId;
  }
  get process() {
    return this.connection.identity;
  }
  get alive() {
    return this.connection.alive;
  }
  get memo() {
    return this.updates.memo;
  }

  /** What the agent behind it is. */
  isOf(agent: Capabilities): void {
    this.#can = agent;
    this.#tokens = new TokenMeter(agent);
  }

  named(id: string): void {
    this.updates.sessionId = id;
  }

  /** It is in a mode in which no tool can run. Some are left by the agent itself: it is ended then, before it can run any. */
  isQuiet(quiet: QuietMode): void {
    this.#quiet = quiet;
    this.updates.onMode = (now) => {
      if (now !== quiet.mode) this.connection.stop('it left the mode in which no tool can run');
    };
  }

  /** The protocol has no way to read where a session stands. */
  async position(): Promise<null> {
    return null;
  }

  async *prompt(request: PromptRequest): AsyncGenerator<AgentEvent> {
    const { signal, content } = request;
    const refusal = whyNotSent(signal, this.#flight !== null, this.alive) ?? untakable(content, this.#can);
    if (refusal !== null) {
      yield { type: 'ended', outcome: refusal };
      return;
    }
    const flight = this.#takeOff();
    void this.#send(flight, request);
    yield* flight.handOut(signal);
  }

  async allowTools(): Promise<boolean> {
    if (!this.client.withoutTools) return true;
    if (this.#quiet === null || !this.alive) return false;
    this.updates.onMode = null;
    try {
      await this.#quiet.leave();
    } catch {
      return false;
    }
    this.client.withoutTools = !this.#quiet.hasAll;
    return this.#quiet.hasAll;
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
    if (this.#can.close && this.#flight === null && this.alive) {
      // It may have something to write. Whatever it says, its process is ended next.
      const closed = this.connection.request('session/close', { sessionId: this.id }).catch(() => {});
      await Promise.race([closed, after(CLOSE_MS)]);
    }
    await Promise.all([this.connection.close(), this.client.end()]);
  }

  #takeOff(): Flight {
    const flight = new Flight({
      ask: () => {
        this.connection.notify('session/cancel', { sessionId: this.id });
        this.#questions.cancelAll();
      },
      kill: () => this.kill(),
      graceMs: this.#options.cancelGraceMs,
    });
    this.#flight = flight;
    this.connection.beginAnew();
    this.updates.begin(flight.events);
    return flight;
  }

  async #send(flight: Flight, { content }: PromptRequest): Promise<void> {
    const params = { sessionId: this.id, prompt: content };
    try {
      const response = await this.connection.request('session/prompt', params);
      const usage = this.#tokens.read(response);
      if (usage !== null) flight.events.push({ type: 'usage', usage });
      this.#finish(flight, outcomeOf(asObject(response).stopReason, flight.stopped));
    } catch (error) {
      this.#finish(flight, flight.stopped ? { kind: 'cancelled' } : failureOf(error));
    }
  }

  #finish(flight: Flight, outcome: AgentOutcome): void {
    if (this.#flight !== flight) return;
    this.updates.end((id) => this.client.textOf(id));
    this.#flight = null;
    this.#questions.cancelAll();
    this.connection.beginAnew();
    flight.end(outcome);
  }

  #gone(how: string): void {
    void this.client.end();
    if (this.#flight) this.#finish(this.#flight, this.#flight.whenGone(`the agent’s process ${how}`));
  }

  async #asked(method: string, params: unknown): Promise<unknown> {
    if (method !== 'session/request_permission') return this.client.handle(method, params);
    const flight = this.#flight;
    const nobody = flight === null || flight.stopped || this.client.withoutTools;
    return this.#questions.put(params, nobody ? null : (question) => flight.events.push(question));
  }
}

function after(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms).unref());
}
