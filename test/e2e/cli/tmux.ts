import { execFile, spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { PROGRAM } from '../../program.ts';
import { type CliHome, pause } from './process.ts';

const run = promisify(execFile);

/** The time between two reads of the screen. Each read starts a process. */
const POLL_MS = 50;

/** The reason to skip tests that need tmux. Null: tmux is installed. */
export const NO_TMUX = spawnSync('tmux', ['-V']).error === undefined ? null : 'needs tmux (apt install tmux)';

export interface Size {
  readonly columns: number;
  readonly rows: number;
}

/** A shell in a real terminal, made by tmux, with methods for what a person can do there. */
export class Tmux {
  readonly #home: CliHome;
  readonly #socket: string;
  /** A file with everything that programs have written to the terminal. */
  readonly raw: string;

  private constructor(home: CliHome, name: string) {
    this.#home = home;
    this.#socket = join(home.path, `tmux-${name}`);
    this.raw = join(home.path, `raw-${name}`);
  }

  static async open(home: CliHome, name: string, { columns, rows }: Size = { columns: 80, rows: 24 }): Promise<Tmux> {
    const tmux = new Tmux(home, name);
    const size = ['-x', String(columns), '-y', String(rows)];
    const env = { ...home.environment(), TERM: 'xterm-256color', LANG: 'C.UTF-8', ENV: '', PS1: '$ ' };
    const variables = Object.entries(env).flatMap(([variable, value]) => ['-e', `${variable}=${value}`]);
    await tmux.#do('new-session', '-d', ...size, ...variables, '-c', home.path, 'sh');
    await tmux.#do('pipe-pane', '-o', `cat >> '${tmux.raw}'`);
    await tmux.until(/\$/);
    return tmux;
  }

  /** Starts a chat. The files `before` and `after` get the state of the terminal, `pid` the process of the chat. */
  async chat(...args: string[]): Promise<void> {
    const words = [process.execPath, PROGRAM, 'chat', ...args].map((word) => `'${word}'`).join(' ');
    const script = join(this.#home.path, 'run-chat');
    writeFileSync(
      script,
      `export PATH='${this.#home.environment().PATH}'; clear; stty -a > before; sh -c 'echo $$ > pid; exec "$@"' - ${words}; echo "left: $?"; stty -a > after\n`,
    );
    await this.line('. ./run-chat');
    await this.until(/^›/m);
  }

  /** Starts a chat in place of the shell, so that no shell can continue it after Ctrl-Z. */
  async chatAlone(...args: string[]): Promise<void> {
    const words = [process.execPath, PROGRAM, 'chat', ...args].map((word) => `'${word}'`).join(' ');
    await this.line(`clear; exec ${words}`);
    await this.until(/^›/m);
  }

  /** The process id of the chat. */
  get pid(): number {
    return Number(this.file('pid'));
  }

  file(name: string): string {
    return readFileSync(join(this.#home.path, name), 'utf8');
  }

  async type(text: string): Promise<void> {
    await this.#do('send-keys', '-l', '--', text);
  }

  /** Keys by their names in tmux: `Enter`, `C-c`, `M-Enter`, `Up`. */
  async press(...keys: string[]): Promise<void> {
    await this.#do('send-keys', ...keys);
  }

  async line(text: string): Promise<void> {
    await this.type(text);
    await this.press('Enter');
  }

  /** Pastes as a terminal does: with the marks of bracketed paste, if the program has turned them on. */
  async paste(text: string): Promise<void> {
    await this.#do('set-buffer', '--', text);
    await this.#do('paste-buffer', '-p', '-d');
  }

  async resize({ columns, rows }: Size): Promise<void> {
    await this.#do('resize-window', '-x', String(columns), '-y', String(rows));
  }

  /** The text of the screen. `scrolled`: also what has scrolled off it. `styled`: with the escape sequences of its styles. */
  async screen({ scrolled = false, styled = false } = {}): Promise<string> {
    return this.#do('capture-pane', '-p', ...(styled ? ['-e'] : []), ...(scrolled ? ['-S', '-'] : []));
  }

  /** The column of the cursor and the title of the terminal, with a comma between them. */
  async cursor(): Promise<string> {
    return (await this.#do('display-message', '-p', '#{cursor_x},#{pane_title}')).trim();
  }

  /** Waits until the screen matches, and returns its text. */
  async until(pattern: RegExp): Promise<string> {
    let screen = '';
    for (const deadline = Date.now() + 120_000; Date.now() < deadline; await pause(POLL_MS)) {
      screen = await this.screen();
      if (pattern.test(screen)) return screen;
    }
    throw new Error(`the terminal never showed ${pattern}:\n${screen}`);
  }

  /** Waits until the screen no longer matches. */
  async gone(pattern: RegExp): Promise<void> {
    for (const deadline = Date.now() + 120_000; Date.now() < deadline; await pause(POLL_MS)) {
      if (!pattern.test(await this.screen())) return;
    }
    throw new Error(`the terminal still shows ${pattern}`);
  }

  async close(): Promise<void> {
    await this.#do('kill-server').catch(() => {});
  }

  async #do(...args: string[]): Promise<string> {
    const { PATH = '' } = process.env;
    const { stdout } = await run('tmux', ['-S', this.#socket, '-f', '/dev/null', ...args], {
      env: { PATH, TERM: 'xterm-256color', LANG: 'C.UTF-8', SHELL: '/bin/sh' },
    });
    return stdout;
  }
}
