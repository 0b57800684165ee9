import { randomUUID } from 'node:crypto';
import { setImmediate as nextRound } from 'node:timers/promises';
import { asSentence, type Failure } from '../../core/errors.ts';
import {
  askedQuestion,
  denyOption,
  howToAllow,
  MOST_OPEN_QUESTIONS,
  NOBODY_THERE,
  nobodyAnswered,
  type Permission,
  TOO_MANY_OPEN,
} from '../../core/turn/permission.ts';
import type { PermissionMode } from '../../core/turn/turn.ts';
import type { Lease } from '../../leases/lease.ts';
import type { AgentEvent, AgentSession } from '../../ports/agent.ts';
import type { TurnSignal } from './turn-signal.ts';

type Question = Extract<AgentEvent, { type: 'permission' }>;

/**
 * Stores the questions of an agent, so that anybody may answer them from any process, and passes the first answer to the agent. A question
 * is denied at once if nobody can answer it, or if too many are open, and after a while if nobody answers. After the turn was told to
 * stop, nothing is stored: the agent gets no answer to such a question.
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
    // A commit of SQLite blocks this process. Between two questions, others get their turn, and a cancel is seen.
    await nextRound();
    if (this.#isStopped) return session.answer(question.id, null);
    const id = randomUUID();
    const { fault, ...asked } = askedQuestion(question);
    const permission = { id, attempt: this.#turn.attempt, ...asked };
    const asking = { write: 'ask', turn: this.#turn.id, permission } as const;
    // If options cannot be told apart, the one that denies may be one that allows.
    const no = fault === null ? (denyOption(question.options)?.optionId ?? null) : null;
    const why = fault ?? this.#whyNobodyCanAnswer();
    const decided = ({ state, optionId, reason }: Pick<Permission, 'state' | 'optionId' | 'reason'>) => {
      if (state === 'denied') this.#denied = { title: asked.title, reason: reason ?? NOBODY_THERE };
      session.answer(question.id, optionId ?? no);
    };
    if (why === null) {
      await this.#lease.write(asking);
      this.#signal.onPermission(id, decided);
      this.#denyLater(id);
    } else {
      await this.#lease.write(asking, this.#denial(id, why));
      decided({ state: 'denied', optionId: null, reason: why });
    }
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
      if (this.#isStopped) return;
      // A failure here means that the lease is lost, which ends the turn anyway.
      this.#deny(id, nobodyAnswered(this.#waitMs)).catch(() => {});
    }, this.#waitMs);
    this.#timers.add(timer);
  }

  /** Does nothing when somebody has answered meanwhile: the first answer wins. */
  async #deny(id: string, reason: string): Promise<void> {
    await this.#lease.write(this.#denial(id, reason));
    this.#signal.lookAgain();
  }

  #denial(id: string, reason: string) {
    return { write: 'deny', permission: id, turn: this.#turn.id, reason } as const;
  }

  #whyNobodyCanAnswer(): string | null {
    if (this.#mode === 'deny') return NOBODY_THERE;
    return this.#signal.openQuestions < MOST_OPEN_QUESTIONS ? null : TOO_MANY_OPEN;
  }

  get #isStopped(): boolean {
    return this.#signal.signal.aborted;
  }
}
