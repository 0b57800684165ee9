import { Inbox } from '../../shared/inbox.ts';
import { endInSteps, endsWithin } from '../../shared/line-process.ts';
import {
  type ClaudeConnection,
  type ClaudeMessage,
  type ClaudeUserMessage,
  type ControlAnswer,
  modelsIn,
  type Setting,
} from '../connection.ts';
import type { Sdk, SdkOptions, SdkQuery } from './sdk.ts';
import type { SpawnedClaude } from './spawned.ts';

const CLOSE_STEP_MS = 2_000;

/** One query of the SDK, with its process: prompts go in, messages come out. */
export class SdkConnection implements ClaudeConnection {
  readonly messages = new Inbox<ClaudeMessage>();
  models: readonly unknown[] = [];
  /** Resolves when Claude is ready for prompts; rejects when it ended before. */
  readonly ready: Promise<unknown>;
  /** Null: the SDK has not asked for its process yet. */
  spawned: SpawnedClaude | null = null;
  readonly #input = new Inbox<ClaudeUserMessage>();
  readonly #query: SdkQuery;
  #closing: Promise<void> | null = null;

  constructor(sdk: Sdk, options: (spawned: (process: SpawnedClaude) => void) => SdkOptions) {
    this.#query = sdk.query({
      prompt: this.#input,
      options: options((process) => {
        this.spawned = process;
      }),
    });
    this.ready = this.#query.initializationResult().then((answer) => {
      this.models = modelsIn(answer);
    });
    this.ready.catch(() => {}); // it may reject when nobody waits for it
    void this.#listen();
  }

  get process() {
    return this.spawned?.child?.identity ?? null;
  }
  get alive(): boolean {
    return (this.spawned?.child?.alive ?? false) && !this.messages.closed;
  }
  get ending(): string | null {
    return this.alive ? null : (this.spawned?.ending ?? null);
  }

  send(message: ClaudeUserMessage): void {
    this.#input.push(message);
  }

  /** Rejects when Claude ends before it has answered. */
  async setServers(servers: Readonly<Record<string, object>>): Promise<ControlAnswer> {
    try {
      return { ok: true, response: await this.#query.setMcpServers(servers) };
    } catch (error) {
      if (!this.alive) throw error;
      return { ok: false, error: error instanceof Error ? error.message : String(error) };
    }
  }

  async set(what: Setting): Promise<string | null> {
    try {
      if ('mode' in what) await this.#query.setPermissionMode(what.mode);
      else await this.#query.applyFlagSettings({ effortLevel: what.effort });
      return null;
    } catch (error) {
      return error instanceof Error ? error.message : String(error);
    }
  }

  async interrupt(): Promise<void> {
    if (!this.alive) return;
    await this.#query.interrupt().catch(() => {}); // Claude has ended meanwhile
  }

  /** Ends its input, so that Claude can exit by itself. After a timeout sends SIGTERM, then SIGKILL. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async kill(): Promise<void> {
    this.spawned?.kill('SIGKILL');
    this.#input.close();
    await this.#gone;
  }

  get #gone(): Promise<void> {
    return this.spawned?.gone ?? Promise.resolve();
  }

  async #close(): Promise<void> {
    this.#input.close();
    await endInSteps(CLOSE_STEP_MS, this.#gone, (signal) => this.spawned?.kill(signal));
  }

  async #listen(): Promise<void> {
    try {
      for await (const message of this.#query) this.messages.push(message);
    } catch {
      // The SDK throws when Claude ends with an error. `ending` says how it ended.
    }
    // Its output is no longer read, so it must not continue. It gets some time to write what the session has cost.
    if (!(await endsWithin(CLOSE_STEP_MS, this.#gone))) await this.kill();
    this.messages.close();
  }
}
