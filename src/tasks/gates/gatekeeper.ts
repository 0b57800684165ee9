import { noSuchConversation, ThroughlineError } from '../../core/errors.ts';
import type { ProcessIdentity } from '../../core/process.ts';
import type { Task, TaskTurn } from '../../core/tasks/task.ts';
import type { GateResult } from '../../core/tasks/task-gate.ts';
import type { Engine, Submitted } from '../../ports/engine.ts';
import type { OpenSandbox } from '../../ports/sandbox.ts';
import type { TaskParts } from '../parts.ts';
import { Stopped } from '../task-turn.ts';
import { openBench, runAgentGate } from './agent-gate.ts';
import { runCommandGate } from './command-gate.ts';

export interface Judging {
  readonly task: Task;
  readonly conversation: string;
  /** The turn that is judged. */
  readonly turn: string;
  /** Aborts with a `StopReason`. */
  readonly stop: AbortSignal;
  /** Called with the process of a command, before the command runs. */
  started(process: ProcessIdentity): Promise<void>;
  /** Runs a turn of the judge. */
  have(conversation: string, agent: string, submit: () => Promise<Submitted>): Promise<TaskTurn>;
}

/** Runs the gate of one task, a command or a judge. Sandbox and the judge's conversation are opened once. */
export class Gatekeeper {
  readonly #parts: TaskParts;
  readonly #engine: Engine;
  /** Where the agent works. */
  #sandbox: OpenSandbox | null = null;
  /** The conversation of the judge. */
  #bench: string | null = null;

  constructor(parts: TaskParts, engine: Engine) {
    this.#parts = parts;
    this.#engine = engine;
  }

  /** Null: the task has no gate. */
  async judge(judging: Judging): Promise<GateResult | null> {
    const { task, conversation, turn, stop, started, have } = judging;
    const { gate } = task;
    if (gate === null) return null;
    const monotonic = () => this.#parts.clock.monotonic();
    const sandbox = await this.#opened(task.owner, conversation);
    if (gate.kind === 'command') {
      const result = await runCommandGate({ gate, sandbox, signal: stop, started, monotonic });
      if (stop.aborted && stop.reason !== 'cancelled') throw new Stopped();
      return result;
    }
    const { reply } = await this.#engine.answerOf(turn);
    this.#bench ??= await openBench(this.#engine, task, gate, sandbox.work);
    return runAgentGate({ gate, task, engine: this.#engine, bench: this.#bench, reply, monotonic, have });
  }

  /** An unusable directory is not a fault of our storage: trying again would not help. */
  async #opened(owner: string, conversation: string): Promise<OpenSandbox> {
    try {
      this.#sandbox ??= await this.#open(owner, conversation);
      return this.#sandbox;
    } catch (cause) {
      if (!(cause instanceof ThroughlineError)) throw cause;
      throw new ThroughlineError('refused', cause.message, { cause });
    }
  }

  async #open(owner: string, conversation: string): Promise<OpenSandbox> {
    const found = await this.#parts.store.findConversation(owner, conversation);
    if (found === null) throw noSuchConversation(conversation);
    return this.#parts.sandboxes.open(found.sandbox, { cwd: found.cwd });
  }
}
