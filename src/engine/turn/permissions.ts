import { randomUUID } from 'node:crypto';
import { denyOption } from '../../core/turn/permission.ts';
import type { PermissionMode } from '../../core/turn/turn.ts';
import type { Lease } from '../../leases/lease.ts';
import type { AgentEvent, AgentSession } from '../../ports/agent.ts';
import type { TurnSignal } from './turn-signal.ts';

type Question = Extract<AgentEvent, { type: 'permission' }>;

/**
 * Turns an agent's question into a stored one that anybody may answer, from any process, and passes the first answer back.
 * If nobody can answer, it is denied at once; if nobody does, after a while. Nothing here calls into a face.
 */
export class PermissionDesk {
  readonly #lease: Lease;
  readonly #signal: TurnSignal;
  readonly #turn: { id: string; attempt: number };
  readonly #mode: PermissionMode;
  readonly #waitMs: number;
  readonly #timers = new Set<NodeJS.Timeout>();

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
    const { title, toolCall, options } = question;
    const permission = { id, attempt: this.#turn.attempt, title, toolCall, options };
    await this.#lease.write({ write: 'ask', turn: this.#turn.id, permission });
    const no = denyOption(options)?.optionId ?? null;
    this.#signal.onPermission(id, (decided) => session.answer(question.id, decided.optionId ?? no));
    if (this.#mode === 'deny') await this.#withdraw(id, 'nobody can answer here');
    else this.#withdrawLater(id);
  }

  /** The attempt is over: its open questions are withdrawn with the end of the turn. */
  close(): void {
    for (const timer of this.#timers) clearTimeout(timer);
  }

  #withdrawLater(id: string): void {
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      // A failure here means that the lease is lost, which ends the turn anyway.
      this.#withdraw(id, 'nobody answered in time').catch(() => {});
    }, this.#waitMs);
    this.#timers.add(timer);
  }

  /** Does nothing when somebody has answered meanwhile: the first answer wins. */
  async #withdraw(id: string, reason: string): Promise<void> {
    await this.#lease.write({ write: 'withdraw', permission: id, turn: this.#turn.id, reason });
    this.#signal.lookAgain();
  }
}
