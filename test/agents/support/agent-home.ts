// A data home whose agents are real programs, with its own stand-in model. When it is disposed of, it ends everything that was started
// in it, and checks two rules that hold in every test: no internal error was reported, and no text of a conversation became an instruction.
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { expect } from 'vitest';
import { type OpenOptions, open, type Throughline } from '../../../src/index.ts';
import { acknowledgement, codewordsIn, conversationOf, type Model } from '../../../src/testing/index.ts';
import { Running } from '../../e2e/cli/process.ts';
import { Host } from '../../e2e/support/host.ts';
import { endMarked, MARK } from '../../faults/harness/marked.ts';
import { PROGRAM } from '../../program.ts';
import { passagesRepeatedIn, promptsAndAnswers } from './repeated-text.ts';

export class AgentHome {
  readonly path = realpathSync(mkdtempSync(join(tmpdir(), 'throughline-agents-')));
  readonly model: Model;
  settings: OpenOptions['settings'] = {};
  readonly #opened: Throughline[] = [];
  readonly #hosts: Host[] = [];
  readonly #servers: Running[] = [];
  readonly #bugs: unknown[] = [];

  protected constructor(model: Model) {
    this.model = model;
  }

  async open(settings = this.settings): Promise<Throughline> {
    const tl = await open({
      home: this.path,
      settings: this.#withMark(settings),
      permissions: 'ask',
      onBug: (error) => this.#bugs.push(error),
    });
    this.#opened.push(tl);
    return tl;
  }

  /** Another process that has opened this home. */
  async host(): Promise<Host> {
    const host = Host.start({
      home: this.path,
      settings: this.#withMark(this.settings),
      engine: { permissions: 'ask' },
    });
    this.#hosts.push(host);
    await host.calls.ready();
    return host;
  }

  /** Starts the real executable as a server of this home. `tl` is a client of it. */
  async serve(): Promise<{ tl: Throughline; kill: () => Promise<void> }> {
    const config = join(this.path, 'settings.json');
    writeFileSync(config, JSON.stringify(this.#withMark(this.settings)));
    const env = {
      PATH: process.env.PATH ?? '',
      HOME: this.path,
      THROUGHLINE_HOME: this.path,
      THROUGHLINE_CONFIG: config,
    };
    const running = new Running(PROGRAM, ['serve', '--json', '--port', '0'], { env, cwd: this.path });
    this.#servers.push(running);
    const [line = ''] = await running.until('stdout', /^\{"kind":"serving".*\}$/m);
    const tl = await open({ server: JSON.parse(line).url, home: this.path });
    this.#opened.push(tl);
    const kill = async () => {
      running.kill('SIGKILL');
      await running.ended;
    };
    return { tl, kill };
  }

  /** Makes a directory in this home. */
  directory(name: string): string {
    const path = join(this.path, name);
    mkdirSync(path, { recursive: true });
    return path;
  }

  /** The last request to the model has exactly these prompts with their answers, in this order. */
  expectConversation(...prompts: string[]): void {
    const request = this.model.lastRequest();
    expect(request && conversationOf(request)).toEqual(withAnswers(prompts));
  }

  /** The last request to the model has exactly these codewords in this order, as messages or in a transcript block. */
  expectCodewords(...words: string[]): void {
    const request = this.model.lastRequest();
    expect(request && codewordsIn(request)).toEqual(words);
  }

  /** Adds our mark to the environment of every agent. The programs that an agent starts inherit it. */
  #withMark(settings: OpenOptions['settings']): object {
    const { agents = {}, ...others } = settings as { agents?: Record<string, { env?: object }> };
    const withMark = Object.entries(agents).map(([name, agent]) => {
      return [name, { ...agent, env: { ...agent.env, [MARK]: basename(this.path) } }];
    });
    return { ...others, agents: Object.fromEntries(withMark) };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#hosts.map((host) => host.kill()));
    await Promise.all(this.#opened.map((tl) => tl.close({ graceMs: 0 })));
    for (const server of this.#servers) server.kill('SIGKILL');
    await Promise.all(this.#servers.map(({ ended }) => ended));
    // The agents of a killed host do not end at once, and may still write files.
    await endMarked(basename(this.path));
    await this.model.close();
    rmSync(this.path, { recursive: true, force: true, maxRetries: 5 });
    expect(this.#bugs, 'internal errors of Throughline').toEqual([]);
    // The model obeys its instructions, so they must contain nothing of the history.
    const instructions = this.model.systemTexts().join('\n');
    expect(instructions).not.toMatch(/codeword/i);
    // Paths do not count: agents name their directories there, and prompts may name them too.
    const withoutPaths = instructions.replaceAll(new RegExp(`${RegExp.escape(this.path)}\\S*`, 'g'), '\n');
    expect(passagesRepeatedIn(withoutPaths, promptsAndAnswers(this.model.requests))).toEqual([]);
  }
}

/** The messages of a conversation: each prompt with the answer of the stand-in model, the last prompt without one. */
export function withAnswers(prompts: readonly string[]) {
  const messages = prompts.flatMap((text) => [
    { role: 'user', text },
    { role: 'assistant', text: acknowledgement(text) },
  ]);
  return messages.slice(0, -1);
}

export const codeword = (word: string) => `The codeword is ${word}.`;

/** The prompts that most tests begin with. */
export const [FIRST, SECOND, THIRD, FOURTH] = ['amber', 'birch', 'cedar', 'denim'].map(codeword) as [
  string,
  string,
  string,
  string,
];

export async function threeTurns(tl: Throughline, key = 'chat', cwd?: string): Promise<void> {
  const chat = tl.conversation(key, cwd === undefined ? {} : { cwd });
  for (const prompt of [FIRST, SECOND, THIRD]) await chat.ask(prompt);
}
