import { failureOf, ThroughlineError } from '../core/errors.ts';
import { type Budget, isUnpriced, tokensOf } from '../core/limits/budget.ts';
import { BudgetWatch } from '../core/limits/budget-watch.ts';
import type { SandboxProcess } from '../core/process.ts';
import {
  conversationKeyOf,
  type Decision,
  judgeOf,
  type SessionMode,
  type Task,
  type TaskEventDraft,
  type TaskTurn,
  type TurnPurpose,
} from '../core/tasks/task.ts';
import {
  decideAfter,
  decideBefore,
  decideBudget,
  giveUp,
  STATE_AFTER,
  type Standing,
} from '../core/tasks/task-decision.ts';
import type { GateResult } from '../core/tasks/task-gate.ts';
import { requestIdOf, withDecision, withTurns } from '../core/tasks/task-progress.ts';
import { taskPrompt } from '../core/tasks/task-prompt.ts';
import type { Engine, SubmitOptions, Submitted } from '../ports/engine.ts';
import type { TaskChange, TaskClaim, TaskFence } from '../ports/store/tasks.ts';
import { judge } from './gates/gatekeeper.ts';
import type { TaskParts } from './parts.ts';
import { alreadySubmitted, isRefusal, runTaskTurn, Stopped, type StopReason, type TurnRequest } from './task-turn.ts';

/**
 * Works on one claimed task until it is at rest:
 *
 *   before a turn  ─▶ are budget and iterations left?
 *   turn           ─▶ an ordinary turn; its request id is made from the progress of the task
 *   gate           ─▶ a command or an agent's verdict, when the turn completed
 *   decision       ─▶ stored with its reason and the results of turn and gate, in one commit; then the next turn, or the end
 *
 * The stored progress is all that is needed to continue. After a crash, the next runner submits the same turn and gets it; only a gate may
 * run twice.
 */
export class TaskWork {
  readonly #parts: TaskParts;
  readonly #engine: Engine;
  readonly #fence: TaskFence;
  readonly #stop: AbortSignal;
  /** One for the agent that works, one for the judge. */
  readonly #watch: Record<TurnPurpose, BudgetWatch>;
  #task: Task;
  /** The process of a gate that an earlier runner left; null: none. */
  readonly #leftGate: TaskClaim['gate'];

  /** `stop` aborts with a `StopReason`. */
  constructor(parts: TaskParts, claim: TaskClaim, stop: AbortSignal) {
    this.#parts = parts;
    this.#engine = parts.engine.as(claim.task.owner, claim.task.owner);
    this.#fence = claim.fence;
    this.#task = claim.task;
    this.#leftGate = claim.gate;
    this.#stop = stop;
    const { session, milestone, progress } = claim.task;
    const isNew = session === null && milestone === null && progress.turns === 0;
    this.#watch = { work: new BudgetWatch(isNew), gate: new BudgetWatch(false) };
  }

  /** Rejects only for storage faults and bugs. Everything else that goes wrong is a decision about the task. */
  async run(): Promise<void> {
    try {
      if (this.#leftGate !== null) await this.#parts.sandboxes.end(this.#leftGate);
      await this.#untilAtRest(await this.#open());
    } catch (error) {
      if (error instanceof Stopped) return;
      await this.#failed(error);
    }
  }

  async #untilAtRest(conversation: string): Promise<void> {
    while (this.#task.state === 'running') {
      if (this.#stop.aborted) return this.#cancelled(await this.#turnsBegun());
      const before = decideBefore(this.#standing());
      if (before !== null) await this.#decide(before, [], null);
      else await this.#iterate(conversation);
    }
  }

  /** If the task is cancelled: ends the turns that an earlier runner began, and returns them. */
  async #turnsBegun(): Promise<TaskTurn[]> {
    if (this.#reason !== 'cancelled') return [];
    const { id, owner, agent, gate, progress } = this.#task;
    const turns: TaskTurn[] = [];
    const end = async (purpose: TurnPurpose, by: string, asked = 1): Promise<boolean> => {
      const requestId = requestIdOf(id, progress, purpose, asked);
      const turn = await this.#parts.store.findRequest(owner, requestId);
      if (turn !== null)
        turns.push(await this.#runTurn(turn.conversation, by, purpose, requestId, async () => alreadySubmitted(turn)));
      return turn !== null;
    };
    await end('work', agent);
    const judge = judgeOf(gate);
    for (let asked = 1; judge !== null && (await end('gate', judge, asked)); asked += 1);
    return turns;
  }

  async #iterate(conversation: string): Promise<void> {
    this.#watch.work.begin(this.#affordable([]));
    const { id, agent, progress } = this.#task;
    const requestId = requestIdOf(id, progress, 'work');
    const submit = () => this.#submit(conversation, requestId);
    const turn = await this.#runTurn(conversation, agent, 'work', requestId, submit);
    const turns = [turn];
    const judged = turn.outcome === 'completed' && !this.#stop.aborted ? await this.#judged(conversation, turns) : null;
    // An earlier runner may have begun the judge's turn, although this one did not.
    if (this.#stop.aborted) return this.#cancelled(await this.#turnsBegun());
    if (judged !== null && 'decision' in judged) return this.#decide(judged, turns, null);
    const standing = this.#standing(turns);
    const howToAllow = await this.#howToAllow(turn);
    const overspent = turn.outcome === 'cancelled' && this.#watch.work.over;
    await this.#decide(overspent ? OVERSPENT : decideAfter(standing, { ...turn, howToAllow }, judged), turns, judged);
  }

  /** The setting that lets the agent do what was denied in the turn; null: none is known. */
  async #howToAllow({ turn, denied: { length } }: TaskTurn): Promise<string | null> {
    if (turn === null || length === 0) return null;
    const { store, agents } = this.#parts;
    const questions = await store.permissions(this.#task.owner, { turn });
    const denied = questions.filter(({ state }) => state === 'denied').map(({ toolCall }) => toolCall);
    return (await agents.get(this.#task.agent)?.agent.howToAllow?.(denied)) ?? null;
  }

  /** The conversation of the task or of its milestone, found by its key if it exists. */
  async #open(): Promise<string> {
    const { agent, cwd, sandbox, progress } = this.#task;
    const place = { ...(cwd !== null && { cwd }), ...(sandbox !== null && { sandbox }) };
    const key = conversationKeyOf(this.#task);
    const { id: conversation } =
      progress.conversation === null
        ? await this.#engine.ensure({ key, agent, ...place })
        : await this.#engine.conversation(progress.conversation);
    if (progress.conversation === null || this.#leftGate !== null) {
      const opened = { kind: 'task.opened', payload: { conversation } } as const;
      const events = progress.conversation === null ? [opened] : [];
      await this.#commit({ progress: { ...progress, conversation }, gate: null, events });
    }
    return conversation;
  }

  #submit(conversation: string, requestId: string): Promise<Submitted> {
    const { agent, permissions, progress, session, newSession, sessions } = this.#task;
    // Only until a turn has run in it. From then on it belongs to the conversation, also if its id changes.
    const named = progress.adopted ? {} : { ...(session && { session }), ...(newSession && { newSession }) };
    if (progress.retryOf !== null) return this.#engine.retry(progress.retryOf, { requestId });
    const options: SubmitOptions = {
      requestId,
      agent,
      permissions,
      ...named,
      ...(session === null && RESTORE[sessions]),
    };
    return this.#engine.submit(conversation, taskPrompt(this.#task), options);
  }

  #runTurn(
    conversation: string,
    agent: string,
    purpose: TurnPurpose,
    requestId: string,
    submit: TurnRequest['submit'],
  ) {
    const { store, clock } = this.#parts;
    const common = { engine: this.#engine, store, task: this.#task, stop: this.#stop, now: clock.now };
    const watch = this.#watch[purpose];
    const asked = { conversation, agent, purpose, requestId, submit };
    return runTaskTurn({ ...common, ...asked, shouldCancel: (update) => watch.see(update) });
  }

  /**
   * Runs the gate, and adds the turns of a judge to `turns`. A gate that cannot run is `broken`, because the turn has ended and has cost
   * something. A decision: there was no budget for the judge.
   */
  async #judged(conversation: string, turns: TaskTurn[]): Promise<GateResult | Decision | null> {
    try {
      return await this.#judge(conversation, turns);
    } catch (error) {
      if (error instanceof Unaffordable) return error.decision;
      if (!isRefusal(error)) throw error;
      return { verdict: 'broken', summary: error.message, output: '', cut: 0, ms: 0 };
    }
  }

  #judge(conversation: string, turns: TaskTurn[]): Promise<GateResult | null> {
    const started = (process: SandboxProcess) =>
      this.#commit({ progress: this.#task.progress, gate: process, events: [] });
    const runTurn = async (id: string, agent: string, requestId: string, submit: () => Promise<Submitted>) => {
      const unaffordable = decideBudget(this.#standing(turns));
      if (unaffordable !== null) {
        const reason = `${unaffordable.reason} Its last turn was not judged.`;
        throw new Unaffordable({ ...unaffordable, reason });
      }
      this.#watch.gate.begin(this.#affordable(turns));
      const judged = await this.#runTurn(id, agent, 'gate', requestId, submit);
      turns.push(judged);
      if (judged.outcome === 'cancelled' && this.#watch.gate.over) throw new Unaffordable(OVERSPENT);
      return judged;
    };
    const turn = turns[0]?.turn as string;
    const judging = { task: this.#task, conversation, turn, stop: this.#stop, started, runTurn };
    return judge(this.#parts, this.#engine, judging);
  }

  /** Stores the results of the turn and the decision in one commit. */
  async #decide(decision: Decision, turns: readonly TaskTurn[], gate: GateResult | null): Promise<void> {
    const { round, iteration } = this.#task.progress;
    const state = STATE_AFTER[decision.decision];
    const events: TaskEventDraft[] = turnedEvents(turns);
    if (gate !== null) events.push({ kind: 'task.gated', payload: { round, iteration, result: gate } });
    events.push({ kind: 'task.decided', payload: { ...decision, round, iteration, state: state ?? 'running' } });
    const [work] = turns;
    const progress = withDecision(withTurns(this.#task.progress, turns), decision, work?.turn ?? null, gate);
    const ended = state === null ? {} : { state: state as NonNullable<TaskChange['state']> };
    await this.#commit({ progress, turns, gate: null, events, ...ended });
  }

  async #cancelled(turns: readonly TaskTurn[]): Promise<void> {
    if (this.#reason !== 'cancelled') throw new Stopped();
    const progress = withTurns(this.#task.progress, turns);
    await this.#commit({ progress, turns, gate: null, state: 'cancelled', events: turnedEvents(turns) });
  }

  /** If the task cannot run, a person is asked. After a bug it fails, so that it is not tried for ever. */
  async #failed(error: unknown): Promise<void> {
    if (isRefusal(error)) {
      if (this.#reason === 'cancelled') return this.#cancelled([]);
      const { message, hint } = failureOf(error);
      const reason = hint === undefined ? message : `${message} ${hint}`;
      return this.#decide({ decision: 'ask', code: 'task_failed', reason }, [], null);
    }
    if (error instanceof ThroughlineError) throw error;
    this.#parts.onBug(error, `task ${this.#task.id}`);
    await this.#decide(giveUp('task_failed', 'Throughline failed; its log says why.'), [], null);
  }

  async #commit(change: TaskChange): Promise<void> {
    this.#task = await this.#parts.store.tasks.commit(this.#fence, change);
  }

  /** The facts for a decision after these turns, which are not stored yet. */
  #standing(turns: readonly TaskTurn[] = []): Standing {
    const { maxIterations, retryInterrupted, budget, progress } = this.#task;
    const { iteration, tries, spent } = withTurns(progress, turns);
    const unpriced = turns.find(({ usage }) => isUnpriced(usage))?.agent ?? null;
    return { iteration, tries, spent, maxIterations, retryInterrupted, budget, unpriced };
  }

  /** What the next turn may spend, after these turns, which are not stored yet. */
  #affordable(turns: readonly TaskTurn[]): Budget {
    const { costMicros, tokens } = this.#task.budget;
    const { spent } = withTurns(this.#task.progress, turns);
    return {
      costMicros: costMicros === null ? null : costMicros - spent.costMicros,
      tokens: tokens === null ? null : tokens - tokensOf(spent),
    };
  }

  get #reason(): StopReason | undefined {
    return this.#stop.reason as StopReason | undefined;
  }
}

/** There is no budget for the judge's turn. */
class Unaffordable extends Error {
  readonly decision: Decision;

  constructor(decision: Decision) {
    super(decision.reason);
    this.decision = decision;
  }
}

/** How each turn of a task gets its context. */
const RESTORE: Record<SessionMode, Pick<SubmitOptions, 'restore'>> = {
  kept: {},
  fresh: { restore: { rebuild: true, rung: 'transcript' } },
  blank: { restore: { policy: 'off' } },
};

const OVERSPENT = giveUp('budget_spent', 'The budget ran out during a turn, and the turn was cancelled.');

function turnedEvents(turns: readonly TaskTurn[]): TaskEventDraft[] {
  return turns.map((turn) => ({ kind: 'task.turned', payload: turn }));
}
