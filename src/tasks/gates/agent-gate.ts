import { asSentence } from '../../core/errors.ts';
import { asTitle } from '../../core/input/names.ts';
import type { Gate, Task, TaskTurn } from '../../core/tasks/task.ts';
import { type GateResult, parseVerdict } from '../../core/tasks/task-gate.ts';
import { requestIdOf } from '../../core/tasks/task-progress.ts';
import { verdictAgain, verdictPrompt } from '../../core/tasks/task-prompt.ts';
import type { Engine, Submitted } from '../../ports/engine.ts';

/** The judge gets only the end of the reply, because it can read the work itself. */
const MOST_REPLY = 8_000;
/** It is asked once more if its first answer is no verdict. */
const MOST_ASKED = 2;

interface AgentGateRequest {
  readonly gate: Extract<Gate, { kind: 'agent' }>;
  readonly task: Task;
  readonly engine: Engine;
  /** The directory of the work. */
  readonly work: string;
  /** The turn that is judged. */
  readonly turn: string;
  readonly monotonic: () => number;
  /** Runs a turn of the judge, and keeps it for the record. */
  runTurn(conversation: string, agent: string, requestId: string, submit: () => Promise<Submitted>): Promise<TaskTurn>;
  /** What the agent said in a turn that has ended. */
  replyOf(turn: string): Promise<string>;
}

/** Asks an agent for a verdict in a conversation of its own, so that it judges the work and not the talk about it. */
export async function runAgentGate(request: AgentGateRequest): Promise<GateResult> {
  const { gate, task, engine, work: cwd, monotonic } = request;
  const said = await request.replyOf(request.turn);
  const title = asTitle(`Gate: ${gate.ask}`, 100);
  const { id } = await engine.ensure({ key: `task/${task.id}/gate`, agent: gate.agent, cwd, worktree: false, title });
  const begun = monotonic();
  const result = (verdict: GateResult['verdict'], summary: string): GateResult => {
    return { verdict, summary, output: '', cut: 0, ms: Math.round(monotonic() - begun) };
  };
  const boundary = `said-in-turn-${task.progress.round}.${task.progress.iteration}`;
  let prompt = verdictPrompt(task, gate.ask, said.slice(-MOST_REPLY).toWellFormed(), boundary);
  let asked = 1;
  for (let malformed = 0, interrupted = 0; ; asked += 1) {
    const requestId = requestIdOf(task.id, task.progress, 'gate', asked);
    const options = { requestId, agent: gate.agent, permissions: 'deny' } as const;
    const turn = await request.runTurn(id, gate.agent, requestId, () => engine.submit(id, prompt, options));
    if (turn.outcome === 'interrupted' && interrupted < task.retryInterrupted) {
      interrupted += 1;
      continue;
    }
    if (turn.outcome !== 'completed' || turn.turn === null) {
      return result('broken', asSentence(turn.failure?.message ?? `The judge's turn was ${turn.outcome}`));
    }
    const verdict = parseVerdict(await request.replyOf(turn.turn));
    if (!('malformed' in verdict)) return result(verdict.verdict, verdict.reason);
    malformed += 1;
    if (malformed >= MOST_ASKED)
      return result('broken', `${gate.agent} was asked twice and gave no verdict: ${verdict.malformed}`);
    prompt = verdictAgain(verdict.malformed);
  }
}
