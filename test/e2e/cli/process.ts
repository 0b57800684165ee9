import { AsyncLocalStorage } from 'node:async_hooks';
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { expect } from 'vitest';
import { DONE } from '../../../src/faces/cli/exit-codes.ts';
import { run } from '../../../src/faces/cli/run.ts';
import { systemClock } from '../../../src/host/clock.ts';
import { parts } from '../../../src/main.ts';
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
  /** The path of the executable. Default: the bundled one (`PROGRAM`). */
  readonly program?: string;
  /** The path of the Node to use. Default: the one that runs the tests. */
  readonly node?: string;
  readonly input?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
}

/** A data home and a settings file in a temporary directory, and methods that run the executable with them, or its commands in this process. */
export class CliHome {
  readonly path = realpathSync(mkdtempSync(join(tmpdir(), 'throughline-cli-')));
  readonly config = join(this.path, 'settings.json');
  readonly #running = new Set<Running>();

  constructor(agents: object = AGENTS) {
    this.configure({ defaultAgent: 'scripted', agents, turns: MANY_SLOTS });
    mkdirSync(this.#bin);
    symlinkSync(PROGRAM, join(this.#bin, 'throughline'));
  }

  /** The program is installed for the shell, so that hints name it without npx. */
  get #bin(): string {
    return join(this.path, 'bin-of-shell');
  }

  /** Replaces the settings file. */
  configure(settings: object): void {
    writeFileSync(this.config, JSON.stringify(settings));
  }

  start(args: readonly string[], options: StartOptions = {}): Running {
    const running = new Running(options.program ?? PROGRAM, args, {
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
    return {
      PATH: `${this.#bin}:${PATH}`,
      HOME,
      ...cache,
      THROUGHLINE_HOME: join(this.path, 'home'),
      THROUGHLINE_CONFIG: this.config,
    };
  }

  run(...args: string[]): Promise<Ended> {
    return this.start(args).ended;
  }

  /** Runs a command, expects the exit code 0, and returns its stdout. */
  async ok(...args: string[]): Promise<string> {
    return expectDone(args, await this.run(...args));
  }

  /** The same with `--json`. Returns every line, parsed. */
  // biome-ignore lint/suspicious/noExplicitAny: the shape is what the tests look at
  async lines(...args: string[]): Promise<any[]> {
    return parseLines(await this.ok(...args, '--json'));
  }

  /**
   * The same in this process, with the parts that the executable has: for tests of what a command does, and not of its process. The command
   * cannot read stdin or use a server, and its directory is that of the tests. Not for `backup`, `restore` and `store`, which keep their
   * listeners for signals until their process ends.
   */
  readonly here = new CommandsHere(this);

  /** What `show --json` prints. */
  // biome-ignore lint/suspicious/noExplicitAny: the shape is what the tests look at
  async show(key: string): Promise<any> {
    const [view, ...others] = await this.here.lines('show', key, '--embedded');
    expect(others).toEqual([]);
    return view;
  }

  async remove(): Promise<void> {
    for (const running of this.#running) running.kill('SIGKILL');
    await Promise.all([...this.#running].map((running) => running.ended));
    rmSync(this.path, { recursive: true, force: true, maxRetries: 20 });
  }
}

/** Runs commands in this process, on the data home and with the settings of a `CliHome`. */
class CommandsHere {
  readonly #home: CliHome;

  constructor(home: CliHome) {
    this.#home = home;
  }

  async run(...args: string[]): Promise<Ended> {
    const own = args.slice(0, args.includes('--') ? args.indexOf('--') : undefined);
    if (own.includes('-')) throw new Error('A command in this process cannot read stdin. Start the executable.');
    const variable = Object.keys(process.env).find((name) => READ_BY_COMMANDS.test(name));
    if (variable !== undefined) throw new Error(`Unset ${variable}: commands in this process would use it.`);
    const [stdout, stderr] = [new PassThrough(), new PassThrough()];
    const printed = Promise.all([text(stdout), text(stderr)]);
    const env = this.#home.environment();
    const usual = { '--home': env.THROUGHLINE_HOME ?? '', '--config': env.THROUGHLINE_CONFIG ?? '' };
    const isGiven = (option: string) => own.some((word) => word === option || word.startsWith(`${option}=`));
    const globals = Object.entries(usual).flatMap((option) => (isGiven(option[0]) ? [] : option));
    const options = { parts, version: 'test', stdout, stderr, env, clock: systemClock };
    const code = await reportingTo(stderr, () => run(args.toSpliced(1, 0, ...globals), options));
    for (const stream of [stdout, stderr]) stream.end();
    const [out, err] = await printed;
    return { code, signal: null, stdout: out, stderr: err };
  }

  async ok(...args: string[]): Promise<string> {
    return expectDone(args, await this.run(...args));
  }

  // biome-ignore lint/suspicious/noExplicitAny: the shape is what the tests look at
  async lines(...args: string[]): Promise<any[]> {
    return parseLines(await this.ok(...args, '--json'));
  }
}

const READ_BY_COMMANDS = /^THROUGHLINE_(HOME|CONFIG|STORE|SERVER|TOKEN|PLAIN_HTTP|DEBUG)$/;

const stderrOfCommand = new AsyncLocalStorage<PassThrough>();
let reporting = 0;

/** What a command reports on the stderr of its process (src/host/report.ts) goes to its own stderr. */
async function reportingTo<T>(stderr: PassThrough, act: () => Promise<T>): Promise<T> {
  if (reporting === 0) {
    const { write } = process.stderr;
    restoreStderr = () => {
      process.stderr.write = write;
    };
    process.stderr.write = ((...args: Parameters<typeof write>) => {
      const own = stderrOfCommand.getStore();
      return own === undefined ? write.apply(process.stderr, args) : own.write(String(args[0]));
    }) as typeof write;
  }
  reporting += 1;
  try {
    return await stderrOfCommand.run(stderr, act);
  } finally {
    reporting -= 1;
    if (reporting === 0) restoreStderr();
  }
}

let restoreStderr = () => {};

function expectDone(args: readonly string[], { code, stdout, stderr }: Ended): string {
  expect({ args, code, stderr: code === DONE ? '' : stderr }).toEqual({ args, code: DONE, stderr: '' });
  return stdout;
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
