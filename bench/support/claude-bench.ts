import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { claudeVariables, forbiddenTools, ISOLATION_DEFAULTS } from '../../src/agents/claude/environment.ts';
import { claudeSdkAgent } from '../../src/agents/claude/sdk/adapter.ts';
import { userMessage } from '../../src/agents/claude/user-message.ts';
import { systemClock } from '../../src/host/clock.ts';
import type { Agent } from '../../src/ports/agent.ts';
import { allowedEnvironment } from '../../src/sandboxes/shared/local-sandbox.ts';
import {
  claudeEnvironment,
  findClaude,
  type InstalledClaude,
  NOT_INSTALLED,
  packageFolder,
  userHome,
} from '../../test/agents/support/claude.ts';
import { BenchHome } from './bench-home.ts';

/** The real Claude and the stand-in model, for one measure. */
export class ClaudeBench {
  readonly home = new BenchHome();
  readonly claude: InstalledClaude;
  readonly env: Record<string, string>;
  readonly #model: ChildProcess;

  /** Null: Claude is not installed, and that was reported. */
  static async start(measure: string): Promise<ClaudeBench | null> {
    const claude = findClaude();
    if (claude === null) {
      console.error(`${measure} is skipped: ${NOT_INSTALLED}`);
      return null;
    }
    const model = spawn(process.execPath, [fileURLToPath(new URL('model-process.ts', import.meta.url))], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    const url = await new Promise<string>((resolve, reject) => {
      model.stdout.once('data', (line) => resolve(String(line).trim()));
      model.once('exit', () => reject(new Error('the stand-in model did not start')));
    });
    return new ClaudeBench(claude, model, url);
  }

  private constructor(claude: InstalledClaude, model: ChildProcess, url: string) {
    this.claude = claude;
    this.#model = model;
    this.env = claudeEnvironment({ url }, userHome(this.home.path));
    // The adapter would pass these variables on to Claude. A Claude with more settings is slower.
    for (const name of Object.keys(claudeVariables(process.env))) delete process.env[name];
  }

  /** Claude as Throughline uses it. */
  agent(): Agent {
    return claudeSdkAgent({
      name: 'claude',
      package: packageFolder,
      env: this.env,
      options: {},
      installed: '',
      memory: join(this.home.path, 'learnt'),
      clock: systemClock,
    });
  }

  directory(name: string): string {
    const path = join(this.home.path, name);
    mkdirSync(path, { recursive: true });
    return path;
  }

  /**
   * Claude as a program without Throughline uses it: by the SDK's own streaming input. It has the same environment, settings and prompts
   * as from the adapter, so that only Throughline makes the difference.
   */
  async query(cwd: string, more: { readonly resume?: string } = {}): Promise<DirectQuery> {
    const { query } = (await import(this.claude.sdk)) as { query: (request: object) => AsyncIterable<SdkMessage> };
    return new DirectQuery(query, {
      cwd,
      env: {
        ...allowedEnvironment(process.env),
        ...ISOLATION_DEFAULTS,
        ...this.env,
        CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS: '1',
      },
      disallowedTools: forbiddenTools(ISOLATION_DEFAULTS),
      includePartialMessages: true,
      verbatimPrompts: true,
      systemPrompt: { type: 'preset', preset: 'claude_code' },
      settings: { cleanupPeriodDays: 36_500 },
      strictMcpConfig: true,
      // With `canUseTool`, as with the adapter, the model is offered one more tool, and every request is longer.
      canUseTool: async () => ({ behavior: 'deny', message: 'Nobody is there.' }),
      ...(more.resume === undefined ? { sessionId: randomUUID() } : more),
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.home[Symbol.asyncDispose]();
    this.#model.stdin?.end();
  }
}

interface SdkMessage {
  readonly type: string;
  readonly is_error?: boolean;
  readonly session_id?: string;
}

/** When something was seen, in ms after the prompt was given. */
export interface Seen {
  readonly first: number;
  readonly ended: number;
}

/** One process of Claude, one prompt after the other. */
class DirectQuery {
  sessionId: string | null = null;
  readonly #messages: AsyncIterator<SdkMessage>;
  readonly #prompts: ((message: object | null) => void)[] = [];

  constructor(query: (request: object) => AsyncIterable<SdkMessage>, options: object) {
    this.#messages = query({ prompt: this.#input(), options })[Symbol.asyncIterator]();
  }

  async ask(text: string): Promise<Seen> {
    const start = performance.now();
    while (this.#prompts.length === 0) await new Promise(setImmediate);
    this.#prompts.shift()?.(userMessage([{ type: 'text', text }], randomUUID(), this.sessionId ?? ''));
    let first = Number.NaN;
    for (;;) {
      const { value, done } = await this.#messages.next();
      if (done) throw new Error('Claude ended before its turn did');
      this.sessionId = value.session_id ?? this.sessionId;
      if (value.type === 'stream_event' && Number.isNaN(first)) first = performance.now() - start;
      if (value.type !== 'result') continue;
      if (value.is_error) throw new Error(`Claude failed: ${JSON.stringify(value)}`);
      return { first, ended: performance.now() - start };
    }
  }

  /** Ends its input, and so the process. */
  async close(): Promise<void> {
    while (this.#prompts.length === 0) await new Promise(setImmediate);
    this.#prompts.shift()?.(null);
    while (!(await this.#messages.next()).done);
  }

  async *#input(): AsyncGenerator<object> {
    for (;;) {
      const message = await new Promise<object | null>((resolve) => this.#prompts.push(resolve));
      if (message === null) return;
      yield message;
    }
  }
}
