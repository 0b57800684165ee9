import { randomUUID } from 'node:crypto';
import { asSentence, type Failure } from '../../core/errors.ts';
import { askedQuestion, denyOption, howToAllow, NOBODY_THERE, nobodyAnswered } from '../../core/turn/permission.ts';
import type { PermissionMode } from '../../core/turn/turn.ts';
import type { Lease } from '../../leases/lease.ts';
import type { AgentEvent, AgentSession } from '../../ports/agent.ts';
import type { TurnSignal } from './turn-signal.ts';

type Question = Extract<AgentEvent, { type: 'permission' }>;

/**
 * Stores the questions of an agent, so that anybody may answer them from any process, and passes the first answer to the agent. A question
 * is denied at once if nobody can answer it, and after a while if nobody does.
 */
export class PermissionDesk {
  readonly #lease: Lease;
  readonly #signal: TurnSignal;
  readonly #turn: { id: string; attempt: number };
  readonly #mode: PermissionMode;
  readonly #waitMs: number;
  readonly #timers = new Set<NodeJS.Timeout>();
  /** The last question that was denied; null: none was. */
  #denied: { readonly title: string; readonly reason: string } | null = null;

  constructor(
    lease: Lease,
    signal: TurnSignal,
    turn: { id: string; attempt: number },
    mode: PermissionMode,
    waitMs: number,
  ) {
    this.#lease = lease;
    this.#signal = signal;
    this.#turn = turn;
    this.#mode = mode;
    this.#waitMs = waitMs;
  }

  async ask(question: Question, session: AgentSession): Promise<void> {
    const id = randomUUID();
    const { fault, ...asked } = askedQuestion(question);
    const permission = { id, attempt: this.#turn.attempt, ...asked };
    await this.#lease.write({ write: 'ask', turn: this.#turn.id, permission });
    // If options cannot be told apart, the one that denies may be one that allows.
    const no = fault === null ? (denyOption(question.options)?.optionId ?? null) : null;
    const why = fault ?? (this.#mode === 'deny' ? NOBODY_THERE : null);
    this.#signal.onPermission(id, why === null, ({ state, optionId, reason }) => {
      if (state === 'denied') this.#denied = { title: asked.title, reason: reason ?? NOBODY_THERE };
      session.answer(question.id, optionId ?? no);
    });
    if (why !== null) await this.#deny(id, why);
    else this.#denyLater(id);
  }

  /** An agent that fails after a denial does not report the reason. Adds why the question was denied, and what to do. */
  explain(failure: Failure | null): Failure | null {
    if (failure?.code !== 'permission_denied' || this.#denied === null) return failure;
    const { title, reason } = this.#denied;
    const hint = `${asSentence(`The question "${title}" was denied: ${reason}`)} ${howToAllow(reason)}`;
    return { ...failure, hint: failure.hint === undefined ? hint : `${asSentence(failure.hint)} ${hint}` };
  }

  /** The attempt has ended. Its open questions are withdrawn with the end of the turn. */
  close(): void {
    for (const timer of this.#timers) clearTimeout(timer);
    this.#signal.noMoreQuestions();
  }

  #denyLater(id: string): void {
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      // A failure here means that the lease is lost, which ends the turn anyway.
      this.#deny(id, nobodyAnswered(this.#waitMs)).catch(() => {});
    }, this.#waitMs);
    this.#timers.add(timer);
  }

  /** Does nothing when somebody has answered meanwhile: the first answer wins. */
  async #deny(id: string, reason: string): Promise<void> {
    await this.#lease.write({ write: 'deny', permission: id, turn: this.#turn.id, reason });
    this.#signal.lookAgain();
  }
}
