import { checkOptions, type OptionNames } from '../core/input/arguments.ts';
import type { ConversationSpec, Engine } from '../ports/engine.ts';
import type { Tasks } from '../ports/tasks.ts';
import type { OnPermission } from './answering.ts';
import { ConversationHandle } from './conversation.ts';

const CONVERSATION_OPTIONS: OptionNames<Omit<ConversationSpec, 'key'>> = {
  agent: true,
  title: true,
  cwd: true,
  sandbox: true,
  restore: true,
  limitPerDay: true,
};

/** A turn that another process left may run here without the caller's knowledge, and cutting it off would lose it. */
const CLOSE_MS = 30_000;

/** Throughline for one owner, over any engine. Also runs in browsers. */
export class ThroughlineClient {
  readonly engine: Engine;
  /** Goals that agents work on, unattended, until their gates pass. */
  readonly tasks: Tasks;

  protected readonly onPermission: OnPermission | undefined;

  constructor(engine: Engine, tasks: Tasks, onPermission?: OnPermission) {
    this.engine = engine;
    this.tasks = tasks;
    this.onPermission = onPermission;
  }

  /** The same for another owner; for applications with their own login. Closing either closes both. */
  as(owner: string): ThroughlineClient {
    return new ThroughlineClient(this.engine.as(owner), this.tasks.as(owner), this.onPermission);
  }

  /**
   * A conversation by the caller's key. The first prompt creates it, or `ensure()`; reading never does. What exists with another
   * directory, sandbox or restore setting than these `options` is refused.
   */
  conversation(key: string, options: Omit<ConversationSpec, 'key'> = {}): ConversationHandle {
    checkOptions(options, CONVERSATION_OPTIONS, 'A conversation');
    return new ConversationHandle(this.engine, { ...options, key }, this.onPermission);
  }

  /**
   * Starts nothing more, and waits for turns that were already sent: at most `graceMs` (30 seconds, if left out). Then it interrupts
   * the rest. What is queued stays stored; the next process of the data home runs it.
   */
  async close({ graceMs = CLOSE_MS }: { graceMs?: number } = {}): Promise<void> {
    await this.tasks.close();
    await this.engine.close({ graceMs });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
