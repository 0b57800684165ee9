// A data home whose only agent is the real Claude, with a person's home and a stand-in for the model of its own.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { AgentSettings, Throughline } from '../../../src/index.ts';
import { type Model, startModel } from '../../../src/testing/index.ts';
import { until } from '../../contracts/agent-sandbox.ts';
import { AgentHome } from './agent-home.ts';
import { claudeEnvironment, packageFolder, userHome } from './claude.ts';

export { codeword, FIRST, FOURTH, SECOND, THIRD, threeTurns, told } from './agent-home.ts';

export type ClaudeAdapter = 'claude-sdk' | 'claude-cli';
type ClaudeOptions = NonNullable<Extract<AgentSettings, { readonly adapter: ClaudeAdapter }>['options']>;

/** Settings of the person: shell commands need no permission. */
export const ALLOW_BASH = { permissions: { allow: ['Bash'] } };

export class ClaudeHome extends AgentHome {
  /** The config directory of Claude. */
  readonly config: string;
  readonly env: Record<string, string>;
  /** How its Claude is set. */
  readonly claude: AgentSettings & { readonly adapter: ClaudeAdapter };

  /** `settings`: the person's own, of Claude; `options`: ours, of the agent. */
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

  /** Resolves when Claude has written into a transcript that it calls a tool. It writes a moment later than it acts. */
  callWritten(): Promise<void> {
    const isCall = (file: string) => readFileSync(file, 'utf8').includes('"type":"tool_use"');
    return until('the call is in the transcript', () => this.transcripts().some(isCall));
  }

  /** The transcripts that there are. */
  transcripts(): string[] {
    const projects = join(this.config, 'projects');
    return readdirSync(projects, { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.jsonl'))
      .map((name) => join(projects, name));
  }
}

/**
 * A conversation that several tests share, because every start of Claude takes long. Each test goes on from the turns of those before it,
 * and may leave Claude running.
 */
export class SharedChat implements AsyncDisposable {
  readonly home: ClaudeHome;
  readonly cwd: string;
  /** Every prompt that Claude was told, in order. */
  readonly said: string[] = [];
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
    this.said.push(prompt);
    return this.conversation.ask(prompt);
  }

  /** The id of its session, and where Claude has its transcript. */
  async session(): Promise<{ id: string; file: string }> {
    const [session] = await this.tl.engine.sessions('chat');
    const id = session?.id ?? '';
    return { id, file: this.home.transcripts().find((file) => file.endsWith(`${id}.jsonl`)) ?? '' };
  }

  /** Ends Claude, and what the home is opened by. `between` happens before it is opened again. */
  async reopen(between: () => unknown = () => {}): Promise<void> {
    await this.tl.close();
    await between();
    this.tl = await this.home.open();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.home[Symbol.asyncDispose]();
  }
}

export const bash = (command: string) => `model: tool Bash ${JSON.stringify({ command })}`;
