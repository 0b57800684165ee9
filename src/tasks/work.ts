import type { Conversation } from '../core/conversation.ts';
import { failureOf, ThroughlineError } from '../core/errors.ts';
import type { Task, TaskEventDraft, TaskProgress, TaskTurn } from '../core/task.ts';
import { type Decision, decideAfter, decideBefore, giveUp, STATE_AFTER, type Standing } from '../core/task-decision.ts';
import type { GateResult } from '../core/task-gate.ts';
import { requestIdOf, withDecision, withTurns } from '../core/task-progress.ts';
import { taskPrompt } from '../core/task-prompt.ts';
import type { Update } from '../core/update.ts';
import type { Engine, SubmitOptions, Submitted } from '../ports/engine.ts';
import type { Room } from '../ports/sandbox.ts';
import type { TaskChange, TaskClaim, TaskFence } from '../ports/task-store.ts';
import { openBench, runAgentGate } from './agent-gate.ts';
import { runCommandGate } from './command-gate.ts';
import { CostWatch } from './cost-watch.ts';
import type { TaskParts } from './parts.ts';
import { haveTurn, Stopped, type StopReason } from './task-turn.ts';

/**
 * Works on one task that was taken up, until it is at rest:
 *
 *   may it go on?  ─▶ budget and iterations, before every turn
 *   turn           ─▶ an ordinary turn, its request id made from where the task stands
 *   gate           ─▶ a command or an agent's verdict, when the turn completed
 *   decision       ─▶ with its reason, and what the turn and the gate came to, in one commit; then the next turn, or the end
 *
 * What is stored says all. Whoever goes on after a crash asks for the same turn again and gets it; only a gate may run twice.
 */
export class TaskWork {
  readonly #parts: TaskParts;
  readonly #engine: Engine;
  readonly #fence: TaskFence;
  readonly #stop: AbortSignal;
  readonly #cost: CostWatch;
  #task: Task;
  #left: TaskClaim['gate'];
  /** Where the agent works; opened for the first gate. */
  #room: Room | null = null;
  /** The conversation of an agent that judges; opened likewise. */
  #bench: string | null = null;

  /** `stop` aborts with a `StopReason`. */
  constructor(parts: TaskParts, claim: TaskClaim, stop: AbortSignal) {
    this.#parts = parts;
    this.#engine = parts.engine.as(claim.task.owner);
    this.#fence = claim.fence;
    this.#task = claim.task;
    this.#left = claim.gate;
    this.#stop = stop;
    const { session, milestone, progress } = claim.task;
    this.#cost = new CostWatch(session === null && milestone === null && progress.turns === 0);
  }

  /** Never rejects but for faults of the storage and of this program; a task that goes wrong is a decision. */
  async run(): Promise<void> {
    try {
      if (this.#left !== null) await this.#parts.processes.end(this.#left);
      await this.#untilAtRest(await this.#open());
    } catch (error) {
      if (error instanceof Stopped) return;
      await this.#couldNot(error);
    }
  }

  async #untilAtRest(conversation: Conversation): Promise<void> {
    while (this.#task.state === 'running') {
      if (this.#stop.aborted) return this.#cancelled(await this.#begun(conversation.id));
      const before = decideBefore(this.#standing());
      if (before !== null) await this.#decide(before, [], null);
      else await this.#iterate(conversation);
    }
  }

  /** The turn that an earlier runner had begun: cancelled with its task, it is brought to its end as well. */
  async #begun(conversation: string): Promise<TaskTurn[]> {
    const { id, owner, agent, progress } = this.#task;
    if (this.#reason !== 'cancelled') return [];
    const known = await this.#parts.store.findRequest(owner, requestIdOf(id, progress, 'work'));
    return known === null ? [] : [await this.#have(conversation, agent, 'work', () => this.#submit(conversation))];
  }

  async #iterate(conversation: Conversation): Promise<void> {
    this.#cost.begin(this.#costLeft());
    const turn = await this.#have(conversation.id, this.#task.agent, 'work', () => this.#submit(conversation.id));
    const judging: TaskTurn[] = [];
    const gate =
      turn.outcome === 'completed' && !this.#stop.aborted ? await this.#judgeSafely(conversation, turn, judging) : null;
    const turns = [turn, ...judging];
    if (this.#stop.aborted) return this.#cancelled(turns);
    const standing = this.#standing(withTurns(this.#task.progress, turns));
    const decision = turn.outcome === 'cancelled' && this.#cost.over ? OVERSPENT : decideAfter(standing, turn, gate);
    await this.#decide(decision, turns, gate);
  }

  /** The conversation is the task's own or its milestone's. What was stored before is found again by its key. */
  async #open(): Promise<Conversation> {
    const { id, milestone, agent, cwd, sandbox, progress } = this.#task;
    const place = { ...(cwd !== null && { cwd }), ...(sandbox !== null && { sandbox }) };
    const key = milestone === null ? `task/${id}` : `milestone/${milestone}`;
    const conversation =
      progress.conversation === null
        ? await this.#engine.ensure({ key, agent, ...place })
        : await this.#engine.conversation(progress.conversation);
    if (progress.conversation === null || this.#left !== null) {
      const opened = { kind: 'task.opened', payload: { conversation: conversation.id } } as const;
      const events = progress.conversation === null ? [opened] : [];
      await this.#commit({ progress: { ...progress, conversation: conversation.id }, gate: null, events });
    }
    return conversation;
  }

  #submit(conversation: string): Promise<Submitted> {
    const { id, agent, permissions, progress, session, sessions } = this.#task;
    const requestId = requestIdOf(id, progress, 'work');
    if (progress.retryOf !== null) return this.#engine.retry(progress.retryOf, { requestId });
    const options: SubmitOptions = {
      requestId,
      agent,
      permissions,
      // Only until a turn has run in it: from then on it is the conversation's own, whatever id it goes on under.
      ...(session !== null && !progress.adopted && { session }),
      ...(session === null && sessions === 'fresh' && { restore: { rung: 'transcript' } }),
    };
    return this.#engine.submit(conversation, taskPrompt(this.#task), options);
  }

  #have(conversation: string, agent: string, purpose: TaskTurn['purpose'], submit: () => Promise<Submitted>) {
    const { store, clock } = this.#parts;
    const common = { engine: this.#engine, store, task: this.#task, stop: this.#stop, now: clock.now };
    const watched = purpose === 'work' ? { enough: (update: Update) => this.#cost.see(update) } : {};
    return haveTurn({ ...common, ...watched, conversation, agent, purpose, submit });
  }

  /** A gate that cannot be had says nothing about the turn, which is over and has cost something. */
  async #judgeSafely(conversation: Conversation, turn: TaskTurn, judging: TaskTurn[]): Promise<GateResult | null> {
    try {
      return await this.#judge(conversation, turn, judging);
    } catch (error) {
      if (!(error instanceof ThroughlineError && CAUSED.has(error.code))) throw error;
      return { verdict: 'broken', summary: error.message, output: '', cut: 0, ms: 0 };
    }
  }

  async #judge(conversation: Conversation, turn: TaskTurn, judging: TaskTurn[]): Promise<GateResult | null> {
    const { gate } = this.#task;
    if (gate === null) return null;
    const monotonic = () => this.#parts.clock.monotonic();
    this.#room ??= await this.#parts.sandboxes.open(conversation.sandbox, { cwd: conversation.cwd });
    const room = this.#room;
    if (gate.kind === 'command') {
      const started: Parameters<typeof runCommandGate>[0]['started'] = async (process) => {
        await this.#commit({ progress: this.#task.progress, gate: process, events: [] });
      };
      const result = await runCommandGate({ gate, room, signal: this.#stop, started, monotonic });
      if (this.#stop.aborted && this.#reason !== 'cancelled') throw new Stopped();
      return result;
    }
    const { reply } = await this.#engine.answerOf(turn.turn as string);
    const have = async (id: string, submit: () => Promise<Submitted>) => {
      const judged = await this.#have(id, gate.agent, 'gate', submit);
      judging.push(judged);
      return judged;
    };
    this.#bench ??= await openBench(this.#engine, this.#task, gate, room.work);
    return runAgentGate({ gate, task: this.#task, engine: this.#engine, bench: this.#bench, reply, monotonic, have });
  }

  /** Everything that the turn came to, and what becomes of the task, in one commit. */
  async #decide(decision: Decision, turns: readonly TaskTurn[], gate: GateResult | null): Promise<void> {
    const { round, iteration } = this.#task.progress;
    const state = STATE_AFTER[decision.decision];
    const events: TaskEventDraft[] = turnedEvents(turns);
    if (gate !== null) events.push({ kind: 'task.gated', payload: { round, iteration, result: gate } });
    events.push({ kind: 'task.decided', payload: { ...decision, round, iteration, state: state ?? 'running' } });
    const [work] = turns;
    const progress = withDecision(withTurns(this.#task.progress, turns), decision, work?.turn ?? null, gate);
    await this.#commit({
      progress,
      turns,
      gate: null,
      events,
      ...(state !== null && { state: state as TaskChange['state'] & {} }),
    });
  }

  async #cancelled(turns: readonly TaskTurn[]): Promise<void> {
    if (this.#reason !== 'cancelled') throw new Stopped();
    const progress = withTurns(this.#task.progress, turns);
    await this.#commit({ progress, turns, gate: null, state: 'cancelled', events: turnedEvents(turns) });
  }

  /** What keeps a task from being worked on at all is for a person; a fault of ours must not come back for ever. */
  async #couldNot(error: unknown): Promise<void> {
    if (error instanceof ThroughlineError) {
      if (!CAUSED.has(error.code)) throw error;
      const { message, hint } = failureOf(error);
      const reason = hint === undefined ? message : `${message} ${hint}`;
      return this.#decide({ decision: 'ask', code: 'task_failed', reason }, [], null);
    }
    this.#parts.onBug(error, `task ${this.#task.id}`);
    await this.#decide(giveUp('task_failed', 'Throughline failed; its log says why.'), [], null);
  }

  async #commit(change: TaskChange): Promise<void> {
    this.#task = await this.#parts.store.tasks.commit(this.#fence, change);
  }

  #standing(progress: TaskProgress = this.#task.progress): Standing {
    const { maxIterations, retryInterrupted, budget } = this.#task;
    const { iteration, tries, spent } = progress;
    return { iteration, tries, spent, maxIterations, retryInterrupted, budget };
  }

  /** What a turn may still cost; null: nobody says. */
  #costLeft(): number | null {
    const { budget, progress } = this.#task;
    return budget.costMicros === null ? null : budget.costMicros - progress.spent.costMicros;
  }

  get #reason(): StopReason {
    return this.#stop.reason as StopReason;
  }
}

const OVERSPENT = giveUp('budget_spent', 'The budget was spent in the middle of a turn, which was cancelled.');

/** Codes by which the state of the world, and not the storage, keeps a task from being worked on. */
const CAUSED = new Set(['invalid', 'refused', 'conflict', 'not_found', 'agent_unavailable']);

function turnedEvents(turns: readonly TaskTurn[]): TaskEventDraft[] {
  return turns.map((turn) => ({ kind: 'task.turned', payload: turn }));
}
