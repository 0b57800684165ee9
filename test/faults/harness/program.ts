import { type ChildProcess, spawn } from 'node:child_process';
import { testProgram } from '../../program.ts';
import { until } from './until.ts';

/** One line that a program printed: a JSON object. */
export type Line = Readonly<Record<string, unknown>>;

const PROGRAMS = new URL('../programs/', import.meta.url);

/** A real process that runs one of `programs/`, takes commands and prints lines, both JSON. */
export class Program {
  readonly name: string;
  readonly lines: Line[] = [];
  /** Empty unless something went wrong. */
  stderr = '';
  /** Resolves when it has ended and all of its output was read. */
  readonly closed: Promise<void>;
  readonly #child: ChildProcess;
  #partial = '';
  #over = false;

  constructor(name: string, input: object, onLine?: (line: Line) => void) {
    this.name = name;
    const program = testProgram(new URL(`${name}.ts`, PROGRAMS));
    this.#child = spawn(process.execPath, [program, JSON.stringify(input)], {
      stdio: ['pipe', 'pipe', 'pipe'],
      env: { ...process.env, NODE_OPTIONS: '' },
    });
    this.#child.stdin?.on('error', () => {});
    this.#child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      const parts = (this.#partial + text).split('\n');
      // The last part is incomplete, or empty. A line that a kill cut off does not count.
      this.#partial = parts.pop() ?? '';
      for (const part of parts) {
        const line = JSON.parse(part) as Line;
        this.lines.push(line);
        onLine?.(line);
      }
    });
    this.#child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.stderr += text;
    });
    this.closed = new Promise((resolve) => {
      this.#child.once('close', () => {
        this.#over = true;
        resolve();
      });
    });
  }

  get pid(): number {
    return this.#child.pid ?? -1;
  }

  get over(): boolean {
    return this.#over;
  }

  send(command: object): void {
    this.#child.stdin?.write(`${JSON.stringify(command)}\n`);
  }

  signal(name: 'SIGKILL' | 'SIGSTOP' | 'SIGCONT'): void {
    this.#child.kill(name);
  }

  /** Kills it, and waits until it has ended. */
  async end(): Promise<void> {
    if (!this.#over) this.signal('SIGKILL');
    await this.closed;
  }

  /** The first line with this field. Waits for it if it was not printed yet. */
  async said(name: string): Promise<Line> {
    const find = () => this.lines.find((line) => name in line);
    return until(`${this.name} to say "${name}"`, () => {
      const line = find();
      if (line === undefined && this.#over) throw new Error(`${this.name} ended: ${this.stderr || 'without a word'}`);
      return line;
    });
  }
}
