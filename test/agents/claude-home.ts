// A data home whose only agent is the real Claude, with a person's home and a stand-in for the model of its own.
import { mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'vitest';
import { type OpenOptions, open, type Throughline } from '../../src/index.ts';
import { acknowledgement, conversationOf, type Model, startModel } from '../../src/testing/index.ts';
import { Host } from '../e2e/support/host.ts';
import { claudeEnvironment, packageFolder, userHome } from './claude.ts';
import { runsIn, saidIn } from './said.ts';

export type ClaudeAdapter = 'claude-sdk' | 'claude-cli';

/** Settings of the person: shell commands need no permission. */
export const ALLOW_BASH = { permissions: { allow: ['Bash'] } };

export class ClaudeHome {
  readonly path = realpathSync(mkdtempSync(join(tmpdir(), 'throughline-claude-')));
  /** The config directory of Claude. */
  readonly config: string;
  readonly env: Record<string, string>;
  readonly model: Model;
  readonly #opened: Throughline[] = [];
  readonly #hosts: Host[] = [];
  readonly #bugs: unknown[] = [];
  /** How its Claude is set. */
  readonly claude: object;

  /** `settings`: the person's own, of Claude; `options`: ours, of the agent. */
  static async make(
    adapter: ClaudeAdapter,
    settings: object = ALLOW_BASH,
    env: object = {},
    options: object = {},
  ): Promise<ClaudeHome> {
    return new ClaudeHome(adapter, await startModel(), settings, env, options);
  }

  private constructor(adapter: ClaudeAdapter, model: Model, settings: object, env: object, options: object) {
    this.model = model;
    const home = userHome(this.path, settings);
    this.config = join(home, '.claude');
    this.env = { ...claudeEnvironment(model, home), ...env };
    this.claude = { adapter, package: packageFolder, env: this.env, options };
  }

  get settings(): OpenOptions['settings'] {
    return { agents: { claude: this.claude } };
  }

  async open(settings = this.settings): Promise<Throughline> {
    const tl = await open({ home: this.path, settings, onBug: (error) => this.#bugs.push(error) });
    this.#opened.push(tl);
    return tl;
  }

  async host(): Promise<Host> {
    const host = await Host.start({ home: this.path, settings: this.settings, engine: {} });
    this.#hosts.push(host);
    return host;
  }

  /** The transcripts that there are. */
  transcripts(): string[] {
    const projects = join(this.config, 'projects');
    return readdirSync(projects, { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.jsonl'))
      .map((name) => join(projects, name));
  }

  directory(name: string): string {
    const path = join(this.path, name);
    mkdirSync(path, { recursive: true });
    return path;
  }

  /** The model was last told these prompts and its answers to them, in order and with roles, and nothing else. */
  expectTold(...prompts: string[]): void {
    const request = this.model.lastRequest();
    expect(request && conversationOf(request)).toEqual(told(prompts));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#hosts.map((host) => host.kill()));
    await Promise.all(this.#opened.map((tl) => tl.close({ graceMs: 0 })));
    await this.model.close();
    rmSync(this.path, { recursive: true, force: true });
    expect(this.#bugs, 'faults of the program itself').toEqual([]);
    // What is told as an instruction is obeyed: history has no place there.
    const instructions = this.model.systemTexts().join('\n');
    expect(instructions).not.toMatch(/codeword/i);
    // Claude names its directory there, which prompts and answers may do, too.
    expect(runsIn(instructions.replaceAll(this.path, '\n'), saidIn(this.model.requests))).toEqual([]);
  }
}

/** Prompts with their answers, the last one without. */
export function told(prompts: readonly string[]) {
  const all = prompts.flatMap((text) => [
    { role: 'user', text },
    { role: 'assistant', text: acknowledgement(text) },
  ]);
  return all.slice(0, -1);
}

export const codeword = (word: string) => `The codeword is ${word}.`;

/** The first prompts of every scenario. */
export const [FIRST, SECOND, THIRD, FOURTH] = ['amber', 'birch', 'cedar', 'denim'].map(codeword) as [
  string,
  string,
  string,
  string,
];

export const bash = (command: string) => `model: tool Bash ${JSON.stringify({ command })}`;

export async function threeTurns(tl: Throughline, key = 'chat', cwd?: string): Promise<void> {
  const chat = tl.conversation(key, cwd === undefined ? {} : { cwd });
  for (const prompt of [FIRST, SECOND, THIRD]) await chat.ask(prompt);
}
