import { writeSync } from 'node:fs';
import type { ReadStream, WriteStream } from 'node:tty';
import { type Key, KeyReader } from './input/keys.ts';

/** Asks the terminal to mark pastes, and to report modifiers with keys if it can (the protocols of kitty and xterm). */
const ENTER = '\u001b[?2004h\u001b[>1u\u001b[>4;1m';
const LEAVE = '\u001b[>4;0m\u001b[<u\u001b[?2004l\u001b[?25h\u001b[0m';

const STDOUT = 1;

/** The bytes of a sequence arrive together. After this time, a lone Escape is the key. */
const ESCAPE_MS = 50;
/** A stopped program runs no timers. If this one fires, the program was not stopped. */
const STOP_MS = 50;

export interface TerminalListener {
  key(key: Key): void;
  resized(): void;
  /** After the program was stopped (Ctrl-Z) and has continued. */
  resumed(): void;
  /** The terminal is gone. */
  gone(): void;
}

/**
 * The terminal in raw mode: every key is read at once, and nothing is echoed. However this process ends, unless it is killed, the
 * terminal is restored.
 */
export class Terminal {
  readonly #input: ReadStream;
  readonly #output: WriteStream;
  readonly #listener: TerminalListener;
  readonly #reader = new KeyReader();
  #timer: NodeJS.Timeout | undefined;
  isEntered = false;
  /** The terminal is in raw mode. */
  #grabbed = false;
  readonly #restore = () => this.leave();
  readonly #onData = (chunk: string) => this.#read(chunk);
  readonly #onResize = () => this.#listener.resized();
  readonly #onGone = () => this.#listener.gone();
  readonly #onContinue = () => {
    // Another program may have changed the terminal meanwhile.
    this.#release();
    this.#grab();
    this.#listener.resumed();
  };

  constructor(input: ReadStream, output: WriteStream, listener: TerminalListener) {
    this.#input = input;
    this.#output = output;
    this.#listener = listener;
  }

  get columns(): number {
    return this.#output.columns || 80;
  }

  get rows(): number {
    return this.#output.rows || 24;
  }

  enter(): void {
    this.isEntered = true;
    process.on('exit', this.#restore);
    // Before Node prints the error.
    process.on('uncaughtExceptionMonitor', this.#restore);
    process.on('SIGCONT', this.#onContinue);
    this.#output.on('resize', this.#onResize);
    this.#input.setEncoding('utf8').on('data', this.#onData).on('end', this.#onGone).on('error', this.#onGone);
    this.#output.on('error', this.#onGone);
    this.#grab();
    this.#input.resume();
  }

  write(text: string): void {
    if (text !== '' && this.isEntered) this.#output.write(text);
  }

  /** Idempotent. Writes synchronously: the process may end right after it. */
  leave(): void {
    if (!this.isEntered) return;
    this.isEntered = false;
    clearTimeout(this.#timer);
    process.off('exit', this.#restore);
    process.off('uncaughtExceptionMonitor', this.#restore);
    process.off('SIGCONT', this.#onContinue);
    this.#output.off('resize', this.#onResize);
    this.#input.off('data', this.#onData).off('end', this.#onGone).off('error', this.#onGone);
    this.#release();
    this.#input.pause();
  }

  /** Stops this program and its process group, as Ctrl-Z does in other programs. */
  suspend(): void {
    this.#release();
    process.kill(0, 'SIGTSTP');
    // Without a shell that could continue it (in a container, as the only program of a window), the program does not stop.
    setTimeout(() => {
      if (!this.#grabbed) this.#onContinue();
    }, STOP_MS);
  }

  #grab(): void {
    if (!this.isEntered) return;
    this.#grabbed = true;
    this.#input.setRawMode(true);
    this.#output.write(ENTER);
  }

  #release(): void {
    if (!this.#grabbed) return;
    this.#grabbed = false;
    try {
      this.#input.setRawMode(false);
      writeSync(STDOUT, LEAVE);
    } catch {
      // The terminal is gone, and there is nothing left to restore.
    }
  }

  #read(chunk: string): void {
    clearTimeout(this.#timer);
    for (const key of this.#reader.push(chunk)) this.#listener.key(key);
    if (!this.#reader.waits) return;
    this.#timer = setTimeout(() => {
      for (const key of this.#reader.flush()) this.#listener.key(key);
    }, ESCAPE_MS);
  }
}
