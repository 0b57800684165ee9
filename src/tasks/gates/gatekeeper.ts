import { noSuchConversation, noSuchTurn, ThroughlineError } from '../../core/errors.ts';
import type { SandboxProcess } from '../../core/process.ts';
import type { Task, TaskTurn } from '../../core/tasks/task.ts';
import type { GateResult } from '../../core/tasks/task-gate.ts';
import { replyText } from '../../core/turn/record.ts';
import type { Engine, Submitted } from '../../ports/engine.ts';
import type { TaskParts } from '../parts.ts';
import { Stopped } from '../task-turn.ts';
import { runAgentGate } from './agent-gate.ts';
import { runCommandGate } from './command-gate.ts';

interface Judging {
  readonly task: Task;
  readonly conversation: string;
  /** The turn that is judged. */
  readonly turn: string;
  /** Aborts with a `StopReason`. */
  readonly stop: AbortSignal;
  /** Called with the process of a command, before the command runs. */
  started(process: SandboxProcess): Promise<void>;
  /** Runs a turn of the judge. */
  runTurn(conversation: string, agent: string, requestId: string, submit: () => Promise<Submitted>): Promise<TaskTurn>;
}

/** Runs the gate of a task, a command or a judge, where the agent works. Null: the task has no gate. */
export async function judge(parts: TaskParts, engine: Engine, judging: Judging): Promise<GateResult | null> {
  const { task, conversation, turn, stop, started, runTurn } = judging;
  const { gate } = task;
  if (gate === null) return null;
  const monotonic = () => parts.clock.monotonic();
  const sandbox = await openedSandbox(parts, task.owner, conversation);
  const replyOf = (id: string) => readReply(parts, task.owner, id);
  if (gate.kind === 'agent') {
    return runAgentGate({ gate, task, engine, work: sandbox.work, turn, monotonic, runTurn, replyOf });
  }
  const result = await runCommandGate({ gate, sandbox, signal: stop, started, monotonic });
  if (stop.aborted && stop.reason !== 'cancelled') throw new Stopped();
  return result;
}

/** What the agent said in a turn that has ended. */
async function readReply({ store }: TaskParts, owner: string, id: string): Promise<string> {
  const turn = await store.findTurn(owner, id);
  if (turn === null) throw noSuchTurn(id);
  const [record] = await store.recordsBefore(owner, turn.conversation, { upTo: turn.n, limit: 1 });
  return record?.n === turn.n ? replyText(record.parts) : '';
}

/** Every failure is `refused`: a directory that cannot be used is not a storage fault, and trying again does not help. */
async function openedSandbox({ store, sandboxes }: TaskParts, owner: string, conversation: string) {
  try {
    const found = await store.findConversation(owner, conversation);
    if (found === null) throw noSuchConversation(conversation);
    return await sandboxes.open(found.sandbox, { cwd: found.cwd });
  } catch (cause) {
    if (!(cause instanceof ThroughlineError)) throw cause;
    throw new ThroughlineError('refused', cause.message, { cause });
  }
}
