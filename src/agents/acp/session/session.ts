import { setTimeout } from 'node:timers/promises';
import type { Choices } from '../../../core/turn/choices.ts';
import type { Prompt } from '../../../core/turn/content.ts';
import { refusesLogin, type Update } from '../../../core/turn/update.ts';
import type { AgentEvent, AgentOutcome, AgentSession, Chosen, PromptRequest } from '../../../ports/agent.ts';
import type { Child, OpenSandbox } from '../../../ports/sandbox.ts';
import { Flight, whyNotSent } from '../../shared/flight.ts';
import { asObject } from '../../shared/json.ts';
import { loginRefused } from '../../shared/model-retry.ts';
import { failureOf, isAuthRequired, outcomeOf, unsupported } from '../connection/answers.ts';
import { type Capabilities, NO_CAPABILITIES } from '../connection/capabilities.ts';
import { AcpConnection } from '../connection/connection.ts';
import { loginHint } from '../connection/start.ts';
import type { AgentProgram, Quirks } from '../known/description.ts';
import type { Surroundings } from '../known/surroundings.ts';
import { SandboxClient } from '../tools/client.ts';
import { Questions } from '../tools/permissions.ts';
import { SessionChoices } from './choices.ts';
import { literally } from './literal.ts';
import { SessionState } from './state.ts';
import { Updates } from './updates.ts';
import { TokenMeter } from './usage.ts';

const CLOSE_MS = 2_000;

interface SessionSettings {
  readonly child: Child;
  readonly sandbox: OpenSandbox;
  readonly program: Pick<AgentProgram, 'options' | 'env' | 'login'>;
  readonly memo: string | null;
  /** Gets the history that the agent repeats; null: nobody reads it. */
  readonly onRepeated: ((update: Update) => void) | null;
  readonly onWindow: (tokens: number) => void;
}

/** A mode in which no tool can run. */
interface ModeWithoutTools {
  readonly mode: string;
  leave(): Promise<void>;
  /** Whether the session then has everything that the settings name. False: it has to be opened again. */
  readonly leavesAllSet: boolean;
}

/** One session, open in a process of its own. */
export class AcpSession implements AgentSession {
  readonly connection: AcpConnection;
  readonly client: SandboxClient;
  readonly updates: Updates;
  readonly state = new SessionState();
  readonly choices: SessionChoices;
  readonly onRepeated: SessionSettings['onRepeated'];
  quirks: Quirks = {};
  /** `forbidden`: the session has to be opened again to allow them. */
  tools: 'allowed' | 'forbidden' | ModeWithoutTools = 'allowed';
  readonly surroundings: Surroundings;
  readonly #program: SessionSettings['program'];
  readonly #questions = new Questions();
  #tokens = new TokenMeter({});
  #can: Capabilities = NO_CAPABILITIES;
  #closing: Promise<void> | null = null;

  constructor({ child, sandbox, program, memo, onRepeated, onWindow }: SessionSettings) {
    this.onRepeated = onRepeated;
    this.#program = program;
    this.surroundings = { sandbox, env: program.env };
    const { cost, owed } = parseMemo(memo);
    const changed = (update: Update) => this.#settingsChanged(update);
    this.updates = new Updates(this.state, {
      memo: cost,
      onWindow,
      onSettings: changed,
      onRetry: (retry) => {
        if (refusesLogin(retry)) this.state.flight?.fail(loginRefused(retry, loginHint(program)));
      },
    });
    this.choices = new SessionChoices(
      (method, params) => this.connection.request(method, { sessionId: this.id, ...params }),
      owed,
    );
    this.client = new SandboxClient({
      sandbox,
      directories: program.options.directories,
      agent: child.identity,
      inTurn: () => this.state.kind === 'prompting',
      toolsAllowed: () => this.tools === 'allowed',
      drained: () => this.connection.drained(),
      onTerminalReleased: (id, text) => this.updates.terminalReleased(id, text),
    });
    this.connection = new AcpConnection(child, {
      notification: (method, params, length) => this.updates.notified(method, params, length),
      answered: (method) => {
        if (method === 'session/prompt') this.state.answered();
      },
      request: (method, params) => this.#asked(method, params),
      ready: () => this.state.flight?.events.ready(),
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
    return renderMemo(this.updates.memo, this.choices.owed);
  }

  /** The agent has reported its name and capabilities. */
  identified(can: Capabilities, quirks: Quirks): void {
    this.#can = can;
    this.quirks = quirks;
    this.#tokens = new TokenMeter(quirks);
    this.updates.aboutAnswer = quirks.aboutAnswer;
  }

  /** The protocol has no way to read the position of a session. */
  async position(): Promise<null> {
    return null;
  }

  async *prompt(request: PromptRequest): AsyncGenerator<AgentEvent> {
    const { signal, content } = request;
    const refusal = whyNotSent(signal, this.state.flight !== null, this.alive) ?? unsupported(content, this.#can);
    if (refusal !== null) {
      yield { type: 'ended', outcome: refusal };
      return;
    }
    const flight = this.#begin();
    void this.#send(flight, request);
    yield* flight.deliver(signal);
  }

  async choose(choices: Choices): Promise<Chosen> {
    const why = await this.choices.choose(choices);
    return why === null ? 'set' : { why };
  }

  lacks(choices: Choices): string | null {
    return this.choices.lacks(choices);
  }

  async allowTools(): Promise<boolean> {
    const mode = this.tools;
    if (mode === 'allowed') return true;
    if (mode === 'forbidden' || !this.alive) return false;
    this.tools = 'forbidden';
    try {
      await mode.leave();
    } catch {
      return false;
    }
    if (!mode.leavesAllSet) return false;
    this.tools = 'allowed';
    this.updates.keep(this.choices.announcement);
    return true;
  }

  wording(content: Prompt): Prompt {
    return literally(content);
  }

  answer(permissionId: string, optionId: string | null): void {
    this.#questions.answer(permissionId, optionId);
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async kill(): Promise<void> {
    this.state.flight?.events.release();
    await Promise.all([this.connection.kill(), this.client.end()]);
  }

  async #close(): Promise<void> {
    const { flight } = this.state;
    flight?.events.release();
    if (this.#can.close && flight === null && this.alive) {
      // The agent may have something to write. Whatever it answers, its process is ended next.
      const closed = this.connection.request('session/close', { sessionId: this.id }).catch(() => {});
      await Promise.race([closed, setTimeout(CLOSE_MS, null, { ref: false })]);
    }
    await Promise.all([this.connection.close(), this.client.end()]);
  }

  #begin(): Flight {
    const flight = new Flight({
      ask: () => {
        this.connection.notify('session/cancel', { sessionId: this.id });
        this.#questions.cancelAll();
      },
      kill: () => this.kill(),
      graceMs: this.#program.options.cancelGraceMs,
    });
    this.state.begin(flight);
    this.connection.resetLimit();
    this.updates.begin();
    return flight;
  }

  async #send(flight: Flight, { content }: PromptRequest): Promise<void> {
    const params = { sessionId: this.id, prompt: this.wording(content) };
    const outcome = await this.#outcomeOf(flight, params);
    const { recordedOutputs } = this.quirks;
    if (recordedOutputs && this.alive) {
      await this.updates.compareOutputs((ids) => recordedOutputs(ids, this.id ?? '', this.surroundings));
    }
    this.#finish(flight, outcome);
  }

  async #outcomeOf(flight: Flight, params: object): Promise<AgentOutcome> {
    try {
      const response = await this.connection.request('session/prompt', params);
      const usage = this.#tokens.read(response);
      if (usage !== null) flight.events.push({ type: 'usage', usage });
      const outcome = outcomeOf(asObject(response).stopReason, flight.stopped);
      return outcome.kind === 'completed' ? await this.#checkRecord(outcome) : outcome;
    } catch (error) {
      if (flight.stopped) return { kind: 'cancelled' };
      const failure = failureOf(error);
      const isSignedOut = isAuthRequired(error, this.quirks);
      const login = isSignedOut ? ({ code: 'signed_out', hint: loginHint(this.#program) } as const) : {};
      return failure.kind === 'failed' ? { ...failure, ...login } : failure;
    }
  }

  /** The outcome by the agent's own record, which may show that a turn failed that the agent calls completed. */
  async #checkRecord(completed: AgentOutcome): Promise<AgentOutcome> {
    const { recordedTexts, failureOf: failureIn } = this.quirks;
    if (recordedTexts) await this.updates.compare((ids) => recordedTexts(ids, this.surroundings));
    const why = this.updates.failure ?? (await failureIn?.(this.id ?? '', this.surroundings)) ?? null;
    return why === null ? completed : failureOf(new Error(why || 'the agent reported an error without a reason'));
  }

  /** Does nothing when the end of the process has finished the turn before. */
  #finish(flight: Flight, outcome: AgentOutcome): void {
    if (this.state.flight !== flight) return;
    this.updates.end((id) => this.client.textOf(id));
    this.state.finish();
    this.#questions.cancelAll();
    this.connection.resetLimit();
    flight.end(outcome);
  }

  #gone(how: string): void {
    void this.client.end();
    const { flight } = this.state;
    if (flight) this.#finish(flight, flight.whenGone(`the agent’s process ${how}`));
  }

  /** Some agents leave the mode without tools by themselves. Such an agent is ended before it can run a tool. */
  #settingsChanged(update: Update): void {
    const said = asObject(update);
    this.choices.read(said);
    const { currentModeId: mode } = said;
    if (mode === undefined || typeof this.tools === 'string' || mode === this.tools.mode) return;
    this.connection.stop('it left the mode in which no tool can run');
  }

  async #asked(method: string, params: unknown): Promise<unknown> {
    if (method !== 'session/request_permission') return this.client.handle(method, params);
    const { flight } = this.state;
    const unanswerable =
      flight === null || this.state.kind !== 'prompting' || flight.stopped || this.tools !== 'allowed';
    return this.#questions.put(params, unanswerable ? null : (question) => flight.events.push(question));
  }
}

/** What the session keeps while it is closed: what it has cost, and what it still has to be given back. */
function renderMemo(cost: string, owed: Readonly<Record<string, string | boolean>>): string {
  return Object.keys(owed).length === 0 ? cost : JSON.stringify({ cost, owed });
}

function parseMemo(memo: string | null): { cost: string | null; owed: Record<string, string | boolean> } {
  return memo?.startsWith('{') ? JSON.parse(memo) : { cost: memo, owed: {} };
}
