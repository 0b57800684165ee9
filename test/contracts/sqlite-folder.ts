// For tests of the SQLite store: a folder that is removed after the test, and processes that use a database in it.
import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { onTestFinished } from 'vitest';
import type { Clock } from '../../src/ports/clock.ts';
import type { Store } from '../../src/ports/store.ts';
import { openSqliteStore } from '../../src/stores/sqlite/store.ts';
import { testProgram } from '../program.ts';

export { temporaryFolder } from '../temporary-folder.ts';

export const CLOCK: Clock = {
  now: () => Date.now(),
  monotonic: () => Number(process.hrtime.bigint() / 1000n) / 1000,
};

/** A store on the file, closed when the test has finished. */
export async function openAt(file: string, busyMs?: number): Promise<Store> {
  const store = await openSqliteStore({
    file,
    clock: CLOCK,
    boot: 'boot-1',
    ...(busyMs === undefined ? {} : { busyMs }),
  });
  onTestFinished(() => store.close());
  return store;
}

const PROGRAM = testProgram(new URL('sqlite-child.ts', import.meta.url));

/** A process that uses the database in one of the roles of `sqlite-child.ts`. */
export class Child {
  readonly process: ChildProcess;
  readonly lines: unknown[] = [];
  readonly #errors: string[] = [];
  readonly #exited: Promise<number | null>;
  #wake = () => {};

  constructor(file: string, role: string, name: string) {
    this.process = spawn(process.execPath, [PROGRAM, file, role, name], {
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    this.#exited = new Promise((resolve) => this.process.on('close', resolve));
    this.process.stderr?.on('data', (text) => this.#errors.push(`${text}`));
    if (this.process.stdout) {
      createInterface(this.process.stdout).on('line', (line) => {
        this.lines.push(JSON.parse(line));
        this.#wake();
      });
    }
    onTestFinished(() => {
      this.process.kill('SIGKILL');
    });
  }

  /** Resolves with all lines when it has ended. Throws if it failed. */
  async done(): Promise<unknown[]> {
    const code = await this.#exited;
    if (code !== 0) throw new Error(`The child ended with ${code}: ${this.#errors.join('')}`);
    return this.lines;
  }

  /** Resolves with the line of that number, from 0. */
  async line(index: number): Promise<unknown> {
    while (this.lines.length <= index) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
        setTimeout(resolve, 50);
      });
      if (this.process.exitCode !== null && this.lines.length <= index) await this.done();
    }
    return this.lines[index];
  }

  tell(): void {
    this.process.stdin?.write('go\n');
  }

  finish(): Promise<unknown[]> {
    this.process.stdin?.end();
    return this.done();
  }
}
