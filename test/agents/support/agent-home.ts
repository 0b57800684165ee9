// A data home whose agents are real programs, with a stand-in for the model of its own.
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
import { runsIn, saidIn } from './said.ts';

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
      settings: this.#marked(settings),
      permissions: 'ask',
      onBug: (error) => this.#bugs.push(error),
    });
    this.#opened.push(tl);
    return tl;
  }

  async host(): Promise<Host> {
    const host = Host.start({
      home: this.path,
      settings: this.#marked(this.settings),
      engine: { permissions: 'ask' },
    });
    this.#hosts.push(host);
    await host.calls.ready();
    return host;
  }

  /** The real executable, serving this home; `tl` is a client of it. */
  async serve(): Promise<{ tl: Throughline; kill: () => Promise<void> }> {
    const config = join(this.path, 'settings.json');
    writeFileSync(config, JSON.stringify(this.#marked(this.settings)));
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

  /** These codewords, in order, were in the last request to the model, however they came there. */
  expectCodewords(...words: string[]): void {
    const request = this.model.lastRequest();
    expect(request && codewordsIn(request)).toEqual(words);
  }

  /** Every agent has our mark in its environment, and so has whatever it starts. */
  #marked(settings: OpenOptions['settings']): object {
    const { agents = {}, ...others } = settings as { agents?: Record<string, { env?: object }> };
    const marked = Object.entries(agents).map(([name, agent]) => {
      return [name, { ...agent, env: { ...agent.env, [MARK]: basename(this.path) } }];
    });
    return { ...others, agents: Object.fromEntries(marked) };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#hosts.map((host) => host.kill()));
    await Promise.all(this.#opened.map((tl) => tl.close({ graceMs: 0 })));
    for (const server of this.#servers) server.kill('SIGKILL');
    await Promise.all(this.#servers.map(({ ended }) => ended));
    // Agents of a host that was killed notice that later, and write until then.
    await endMarked(basename(this.path));
    await this.model.close();
    rmSync(this.path, { recursive: true, force: true, maxRetries: 5 });
    expect(this.#bugs, 'faults of the program itself').toEqual([]);
    // What is told as an instruction is obeyed: history has no place there.
    const instructions = this.model.systemTexts().join('\n');
    expect(instructions).not.toMatch(/codeword/i);
    // Agents name their directories there, which prompts and answers may do, too.
    const others = instructions.replaceAll(new RegExp(`${RegExp.escape(this.path)}\\S*`, 'g'), '\n');
    expect(runsIn(others, saidIn(this.model.requests))).toEqual([]);
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

export async function threeTurns(tl: Throughline, key = 'chat', cwd?: string): Promise<void> {
  const chat = tl.conversation(key, cwd === undefined ? {} : { cwd });
  for (const prompt of [FIRST, SECOND, THIRD]) await chat.ask(prompt);
}
