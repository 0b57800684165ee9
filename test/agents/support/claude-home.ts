// A data home whose only agent is the real Claude, with its own stand-in model and its own home of a user.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { AgentSettings, Throughline } from '../../../src/index.ts';
import { type Model, startModel } from '../../../src/testing/index.ts';
import { until } from '../../contracts/agent-sandbox.ts';
import { AgentHome } from './agent-home.ts';
import { claudeEnvironment, packageFolder, userHome } from './claude.ts';

export { codeword, FIRST, FOURTH, SECOND, THIRD, threeTurns, withAnswers } from './agent-home.ts';

export type ClaudeAdapter = 'claude-sdk' | 'claude-cli';
type ClaudeOptions = NonNullable<Extract<AgentSettings, { readonly adapter: ClaudeAdapter }>['options']>;

/** Settings of the user: shell commands need no permission. */
export const ALLOW_BASH = { permissions: { allow: ['Bash'] } };

export class ClaudeHome extends AgentHome {
  /** The config directory of Claude. */
  readonly config: string;
  readonly env: Record<string, string>;
  /** The settings of the agent. */
  readonly claude: AgentSettings & { readonly adapter: ClaudeAdapter };

  /** `settings`: Claude's settings of the user. `env`: additional variables. `options`: the options of the agent in our settings. */
  static async make(
    adapter: ClaudeAdapter,
    settings: object = ALLOW_BASH,
    env: object = {},
    options: ClaudeOptions = {},
  ): Promise<ClaudeHome> {
    return new ClaudeHome(adapter, await startModel(), settings, env, options);
  }

  private constructor(adapter: ClaudeAdapter, model: Model, settings: object, env: object, options: ClaudeOptions) {
    super(model);
    const home = userHome(this.path, settings);
    this.config = join(home, '.claude');
    this.env = { ...claudeEnvironment(model, home), ...env };
    this.claude = { adapter, package: packageFolder, env: this.env, options };
    this.settings = { agents: { claude: this.claude } };
  }

  /** Waits until a tool call is in a transcript. Claude writes it a moment after the tool has begun. */
  toolCallWritten(): Promise<void> {
    const hasCall = (file: string) => readFileSync(file, 'utf8').includes('"type":"tool_use"');
    return until('the call is in the transcript', () => this.transcripts().some(hasCall));
  }

  /** The paths of all transcripts. */
  transcripts(): string[] {
    const projects = join(this.config, 'projects');
    return readdirSync(projects, { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.jsonl'))
      .map((name) => join(projects, name));
  }
}

/**
 * A conversation that several tests share, because Claude is slow to start. Each test continues after the turns of the tests before it,
 * and may leave Claude running.
 */
export class SharedChat implements AsyncDisposable {
  readonly home: ClaudeHome;
  readonly cwd: string;
  /** All prompts so far, in order. */
  readonly prompts: string[] = [];
  tl: Throughline;

  static async start(adapter: ClaudeAdapter, settings?: object): Promise<SharedChat> {
    const home = await ClaudeHome.make(adapter, settings);
    return new SharedChat(home, await home.open());
  }

  private constructor(home: ClaudeHome, tl: Throughline) {
    this.home = home;
    this.cwd = home.directory('work');
    this.tl = tl;
  }

  get conversation() {
    return this.tl.conversation('chat', { cwd: this.cwd });
  }

  ask(prompt: string) {
    this.prompts.push(prompt);
    return this.conversation.ask(prompt);
  }

  /** The id of its current session, and the path of its transcript. */
  async session(): Promise<{ id: string; file: string }> {
    const [session] = await this.tl.engine.sessions('chat');
    const id = session?.id ?? '';
    return { id, file: this.home.transcripts().find((file) => file.endsWith(`${id}.jsonl`)) ?? '' };
  }

  /** Closes Throughline, which ends Claude, and opens it again. `whileClosed` runs between the two. */
  async reopen(whileClosed: () => unknown = () => {}): Promise<void> {
    await this.tl.close();
    await whileClosed();
    this.tl = await this.home.open();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.home[Symbol.asyncDispose]();
  }
}

/** A line of a prompt: the stand-in model calls Claude's shell tool, if it is offered. */
export const bash = (command: string) => `model: tool Bash ${JSON.stringify({ command })}`;
