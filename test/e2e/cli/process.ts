import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { expect } from 'vitest';
import { compose } from '../../../src/compose.ts';
import type { Parts } from '../../../src/faces/cli/cli.ts';
import { DONE } from '../../../src/faces/cli/exit-codes.ts';
import { run } from '../../../src/faces/cli/run.ts';
import { systemClock } from '../../../src/host/clock.ts';
import { PROGRAM } from '../../program.ts';
import { AGENTS } from './agents.ts';

/** So many that no turn waits for a slot. The default depends on the machine. */
export const MANY_SLOTS = { parallel: 64, perOwner: 64 };

export interface Ended {
  readonly code: number | null;
  readonly signal: string | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface StartOptions {
  /** The path of the Node to use. Default: the one that runs the tests. */
  readonly node?: string;
  readonly input?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
}

/** A data home and a settings file in a temporary directory, and methods that run the real executable with them. */
export class CliHome {
  readonly path = realpathSync(mkdtempSync(join(tmpdir(), 'throughline-cli-')));
  readonly config = join(this.path, 'settings.json');
  readonly #running = new Set<Running>();

  constructor(agents: object = AGENTS) {
    this.configure({ defaultAgent: 'scripted', agents, turns: MANY_SLOTS });
  }

  /** Replaces the settings file. */
  configure(settings: object): void {
    writeFileSync(this.config, JSON.stringify(settings));
  }

  start(args: readonly string[], options: StartOptions = {}): Running {
    const running = new Running(PROGRAM, args, {
      cwd: this.path,
      ...options,
      env: { ...this.environment(), ...options.env },
    });
    this.#running.add(running);
    void running.ended.then(() => this.#running.delete(running));
    return running;
  }

  /** Only the variables that a program needs, so that the environment of the tests does not change what it does. */
  environment(): Record<string, string> {
    const { PATH = '', HOME = '', NODE_COMPILE_CACHE } = process.env;
    const cache = NODE_COMPILE_CACHE === undefined ? {} : { NODE_COMPILE_CACHE };
    return { PATH, HOME, ...cache, THROUGHLINE_HOME: join(this.path, 'home'), THROUGHLINE_CONFIG: this.config };
  }

  run(...args: string[]): Promise<Ended> {
    return this.start(args).ended;
  }

  /** Runs a command, expects the exit code 0, and returns its stdout. */
  async ok(...args: string[]): Promise<string> {
    const { code, stdout, stderr } = await this.run(...args);
    expect({ args, code, stderr: code === 0 ? '' : stderr }).toEqual({ args, code: 0, stderr: '' });
    return stdout;
  }

  /** The same with `--json`. Returns every line, parsed. */
  // biome-ignore lint/suspicious/noExplicitAny: the shape is what the tests look at
  async lines(...args: string[]): Promise<any[]> {
    return parseLines(await this.ok(...args, '--json'));
  }

  /** What `show --json` prints. It runs in this process, which takes a tenth of the time, because many tests check a command with it. */
  // biome-ignore lint/suspicious/noExplicitAny: the shape is what the tests look at
  async show(key: string): Promise<any> {
    const [stdout, stderr] = [new PassThrough(), new PassThrough()];
    const open: Parts['open'] = async ({ home = '', config = '', looks }) =>
      (await compose({ home, config, ...(looks && { looks }), engine: { maxWarm: 0 } })).engine;
    const args = ['show', key, '--json', '--home', join(this.path, 'home'), '--config', this.config];
    const options = { version: 'test', stdout, stderr, env: {}, clock: systemClock };
    const code = await run(args, { ...options, parts: { open } as Parts });
    for (const stream of [stdout, stderr]) stream.end();
    expect({ code, stderr: code === DONE ? '' : await text(stderr) }).toEqual({ code: DONE, stderr: '' });
    const [view, ...others] = parseLines(await text(stdout));
    expect(others).toEqual([]);
    return view;
  }

  async remove(): Promise<void> {
    for (const running of this.#running) running.kill('SIGKILL');
    await Promise.all([...this.#running].map((running) => running.ended));
    rmSync(this.path, { recursive: true, force: true, maxRetries: 20 });
  }
}

/** Variables with which the executable runs this code first. Programs that it starts do not run it. */
export function preload(command: string, code: string): Record<string, string> {
  const guarded = `if (process.argv[2] === ${JSON.stringify(command)}) { ${code} }`;
  const imports = "import fs from 'node:fs'; import { syncBuiltinESMExports } from 'node:module';";
  return { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(`${imports} ${guarded}`)}` };
}

/** Code for `preload`: calls `act()` once, as soon as the program has written this text to stdout. */
export function whenWritten(text: string, act: string): string {
  return `const { write } = process.stdout;
    process.stdout.write = (...args) => {
      const result = write.apply(process.stdout, args);
      if (!String(args[0]).includes(${JSON.stringify(text)})) return result;
      process.stdout.write = write;
      (${act})();
      return result;
    };`;
}

/** One run of the executable. */
export class Running {
  readonly #child: ChildProcessWithoutNullStreams;
  readonly ended: Promise<Ended>;
  stdout = '';
  stderr = '';

  constructor(program: string, args: readonly string[], { node = process.execPath, input, env, cwd }: StartOptions) {
    this.#child = spawn(node, [program, ...args], { cwd, env });
    this.#child.stdout.setEncoding('utf8').on('data', (text: string) => {
      this.stdout += text;
    });
    this.#child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.stderr += text;
    });
    this.#child.stdin.on('error', () => {}).end(input ?? '');
    this.ended = new Promise((resolve) => {
      this.#child.on('close', (code, signal) => {
        resolve({ code, signal, stdout: this.stdout, stderr: this.stderr });
      });
    });
  }

  get pid(): number {
    return this.#child.pid as number;
  }

  kill(signal: 'SIGINT' | 'SIGTERM' | 'SIGKILL'): void {
    this.#child.kill(signal);
  }

  /** Closes our end of its stdout, as `head` does after its last line. */
  stopReading(): void {
    this.#child.stdout.destroy();
  }

  /** Waits until the program has written text that matches, and returns the match. */
  async until(where: 'stdout' | 'stderr', pattern: RegExp): Promise<RegExpExecArray> {
    for (const deadline = Date.now() + 120_000; Date.now() < deadline; await pause(5)) {
      const hasEnded = this.#child.exitCode !== null || this.#child.signalCode !== null;
      if (hasEnded) await Promise.race([this.ended, pause(10_000)]); // its last output may arrive after its exit
      const match = pattern.exec(this[where]);
      if (match) return match;
      if (hasEnded) break;
    }
    throw new Error(
      `never wrote ${pattern} to ${where}: ${JSON.stringify({ exit: this.#child.exitCode ?? this.#child.signalCode, stdout: this.stdout, stderr: this.stderr })}`,
    );
  }
}

// biome-ignore lint/suspicious/noExplicitAny: the shape is what the tests look at
export function parseLines(text: string): any[] {
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Polls until the condition holds. The time limit of the test applies. */
export async function until(condition: () => Promise<boolean> | boolean, everyMs = 20): Promise<void> {
  while (!(await condition())) await pause(everyMs);
}
