import { writeSync } from 'node:fs';
import type { ReadStream, WriteStream } from 'node:tty';
import { type Key, KeyReader } from './input/keys.ts';

/** Pastes are marked, and a key is told with its modifiers where the terminal can (kitty's way, and xterm's). */
const ENTER = '\u001b[?2004h\u001b[>1u\u001b[>4;1m';
const LEAVE = '\u001b[>4;0m\u001b[<u\u001b[?2004l\u001b[?25h\u001b[0m';

const STDOUT = 1;

/** A sequence comes in one piece, or nearly so; a lone Escape is the key. */
const ESCAPE_MS = 50;
/** A program that is stopped runs no timer; this one has not been. */
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
 * The terminal itself: every key comes to us instead of being echoed and gathered into lines. However this process ends, short of being
 * killed, the terminal is as it was before.
 */
export class Terminal {
  readonly #input: ReadStream;
  readonly #output: WriteStream;
  readonly #listener: TerminalListener;
  readonly #reader = new KeyReader();
  #timer: NodeJS.Timeout | undefined;
  isEntered = false;
  /** Keys come to us: the terminal was told so, and not yet that it is over. */
  #grabbed = false;
  readonly #restore = () => this.leave();
  readonly #onData = (chunk: string) => this.#read(chunk);
  readonly #onResize = () => this.#listener.resized();
  readonly #onGone = () => this.#listener.gone();
  readonly #onContinue = () => {
    // Who has stopped us from outside may have changed the terminal meanwhile.
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
    // Before anybody prints the error.
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

  /** Idempotent. Writes at once: nothing may come after it. */
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

  /** Stops this program, as Ctrl-Z does elsewhere, with everything that the shell waits for. */
  suspend(): void {
    this.#release();
    process.kill(0, 'SIGTSTP');
    // Without a shell that could continue us (in a container, as the only program of a window) nothing stops.
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
