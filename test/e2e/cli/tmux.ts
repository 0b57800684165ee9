import { execFile, spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { PROGRAM } from '../../program.ts';
import { type CliHome, pause } from './process.ts';

const run = promisify(execFile);

/** How often the screen is looked at: each look is a process. */
const LOOK_MS = 50;

/** Why there is no terminal to test with; null: there is one. */
export const NO_TMUX = spawnSync('tmux', ['-V']).error === undefined ? null : 'needs tmux (apt install tmux)';

export interface Size {
  readonly columns: number;
  readonly rows: number;
}

/** A shell in a real terminal, made by tmux, and what a person can do there. */
export class Tmux {
  readonly #home: CliHome;
  readonly #socket: string;
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

  /** Starts the program, and notes the state of the terminal before and after it. */
  async chat(...args: string[]): Promise<void> {
    const words = [process.execPath, PROGRAM, 'chat', ...args].map((word) => `'${word}'`).join(' ');
    const script = join(this.#home.path, 'run-chat');
    writeFileSync(
      script,
      `clear; stty -a > before; sh -c 'echo $$ > pid; exec "$@"' - ${words}; echo "left: $?"; stty -a > after\n`,
    );
    await this.line('. ./run-chat');
    await this.until(/^›/m);
  }

  /** Starts the program in the place of the shell: nobody could continue it after Ctrl-Z. */
  async chatAlone(...args: string[]): Promise<void> {
    const words = [process.execPath, PROGRAM, 'chat', ...args].map((word) => `'${word}'`).join(' ');
    await this.line(`clear; exec ${words}`);
    await this.until(/^›/m);
  }

  /** The process of the program that runs there. */
  get pid(): number {
    return Number(this.file('pid'));
  }

  file(name: string): string {
    return readFileSync(join(this.#home.path, name), 'utf8');
  }

  async type(text: string): Promise<void> {
    await this.#do('send-keys', '-l', '--', text);
  }

  /** By tmux's names: `Enter`, `C-c`, `M-Enter`, `Up`. */
  async press(...keys: string[]): Promise<void> {
    await this.#do('send-keys', ...keys);
  }

  async line(text: string): Promise<void> {
    await this.type(text);
    await this.press('Enter');
  }

  /** As a terminal pastes: marked, if the program has asked for that. */
  async paste(text: string): Promise<void> {
    await this.#do('set-buffer', '--', text);
    await this.#do('paste-buffer', '-p', '-d');
  }

  async resize({ columns, rows }: Size): Promise<void> {
    await this.#do('resize-window', '-x', String(columns), '-y', String(rows));
  }

  /** What the screen shows; with `scrolled`, also what has left it. */
  async screen({ scrolled = false, styled = false } = {}): Promise<string> {
    return this.#do('capture-pane', '-p', ...(styled ? ['-e'] : []), ...(scrolled ? ['-S', '-'] : []));
  }

  async cursor(): Promise<string> {
    return (await this.#do('display-message', '-p', '#{cursor_x},#{pane_title}')).trim();
  }

  /** Waits until the screen shows it, and gives the screen. */
  async until(pattern: RegExp): Promise<string> {
    let screen = '';
    for (const deadline = Date.now() + 120_000; Date.now() < deadline; await pause(LOOK_MS)) {
      screen = await this.screen();
      if (pattern.test(screen)) return screen;
    }
    throw new Error(`the terminal never showed ${pattern}:\n${screen}`);
  }

  /** Waits until the screen no longer shows it. */
  async gone(pattern: RegExp): Promise<void> {
    for (const deadline = Date.now() + 120_000; Date.now() < deadline; await pause(LOOK_MS)) {
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
