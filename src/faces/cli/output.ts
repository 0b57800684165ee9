import { asSentence, type Failure } from '../../core/errors.ts';
import { jsonLine } from '../../core/input/visible.ts';
import { ControlStripper, cutTo, stripControls } from './terminal-text.ts';

/** A stream of this process to write to. */
export interface Sink {
  readonly isTTY?: boolean;
  /** The width of the terminal. */
  readonly columns?: number;
  write(text: string): unknown;
  on(event: 'error', listener: (error: NodeJS.ErrnoException) => void): unknown;
}

/** The numbers of the escape sequences that begin them. */
export const STYLES = {
  bold: 1,
  dim: 2,
  italic: 3,
  underline: 4,
  inverse: 7,
  strike: 9,
  red: 31,
  green: 32,
  yellow: 33,
  cyan: 36,
} as const;
export type Style = keyof typeof STYLES;

/** A text, or a text with a style. Styles are added after the text was cleaned: they are the only escape codes written. */
export type Piece = string | { readonly style: Style; readonly text: string };

export function styled(style: Style, text: string): Piece {
  return { style, text };
}

export interface OutputOptions {
  readonly stdout: Sink;
  readonly stderr: Sink;
  readonly json: boolean;
  readonly quiet: boolean;
  readonly color: boolean;
  /** How the shell runs one of our commands for the same data, from its words (`send KEY PROMPT`). Left out: `throughline` before them. */
  readonly command?: (words: string) => string;
}

/** A command of ours in a text. */
const COMMAND = /"throughline ([^"]*)/g;

/** How often the line about a wait is updated, and after how long without other output it appears. */
const TICK_MS = 250;
const IDLE_MS = 750;

/**
 * Everything that the command line writes. Results go to stdout, everything else to stderr. No control character of any text
 * reaches either.
 */
export class Output {
  readonly json: boolean;
  readonly #options: OutputOptions;
  readonly #stripper = new ControlStripper();
  readonly #gone = new AbortController();
  #midLine = false;
  /** What we wait for, and since when nothing else was shown; null: we do not wait. */
  #wait: { text: string; since: number } | null = null;
  #waitShown = false;
  #ticker: NodeJS.Timeout | undefined;

  constructor(options: OutputOptions) {
    this.#options = options;
    this.json = options.json;
    options.stdout.on('error', () => this.#gone.abort());
  }

  /** Of the terminal that shows the result, in columns; null: there is no terminal. */
  get width(): number | null {
    const { stdout } = this.#options;
    // A pseudo-terminal without a window may have zero columns.
    return stdout.isTTY ? stdout.columns || null : null;
  }

  /** Aborted when nobody reads stdout any more (`| head`). */
  get gone(): AbortSignal {
    return this.#gone.signal;
  }

  /** A piece of the answer, as it arrives. */
  text(chunk: string): void {
    const clean = this.#stripper.push(chunk);
    if (clean === '') return;
    this.#clearWait();
    this.#write(this.#options.stdout, clean);
    this.#midLine = !clean.endsWith('\n');
  }

  /** Ends the answer with a newline; what comes next is another text. */
  endText(): void {
    const rest = this.#stripper.end();
    if (rest !== '' || this.#midLine) this.#write(this.#options.stdout, `${rest}\n`);
    this.#midLine = false;
  }

  /** What a command has written to its standard error. Never left out. */
  errorText(text: string): void {
    const clean = stripControls(text);
    if (clean === '') return;
    this.#clearWait();
    this.#write(this.#options.stderr, clean);
  }

  /** A line of the result. */
  line(...pieces: readonly Piece[]): void {
    this.#clearWait();
    this.#write(this.#options.stdout, `${this.#render(pieces, this.#options.stdout)}\n`);
  }

  /** One line of JSON of the result. */
  value(value: unknown): void {
    this.#clearWait();
    this.#write(this.#options.stdout, `${jsonLine(value)}\n`);
  }

  /** The result: a value with `--json`, else a line. */
  result(value: unknown, ...pieces: readonly Piece[]): void {
    if (this.json) this.value(value);
    else this.line(...pieces);
  }

  /** The same, where `show` writes the lines. */
  show(value: unknown, show: () => void): void {
    if (this.json) this.value(value);
    else show();
  }

  /** Every item as a value with `--json`, else as `show` does it; a note when there is none. */
  async each<T>(items: AsyncIterable<T> | Iterable<T>, show: (item: T) => void, none: string): Promise<void> {
    let empty = true;
    for await (const item of items) {
      empty = false;
      if (this.json) this.value(item);
      else show(item);
    }
    if (empty) this.note(none);
  }

  /** A line beside the result: receipts, tools. Left out with `--json`, where events say the same. */
  note(...pieces: readonly Piece[]): void {
    if (this.#options.quiet || this.json) return;
    this.#toStderr(
      pieces.map((piece) =>
        typeof piece === 'string' ? this.runnable(piece) : { ...piece, text: this.runnable(piece.text) },
      ),
    );
  }

  /** A text of ours with commands in double quotes, as they can be run here. */
  runnable(text: string): string {
    return text.replaceAll(COMMAND, (_, words: string) => `"${this.command(words)}`);
  }

  /** How the shell runs one of our commands for the same data. */
  command(words: string): string {
    return this.#options.command?.(words) ?? `throughline ${words}`;
  }

  /** What we wait for, and what to do about it. With `--json`, a line `{"waiting": …}` on stderr. */
  waiting({ code, message, ...more }: Failure): void {
    const hint = more.hint && this.runnable(more.hint);
    if (this.json) this.#report({ waiting: { code, message, ...(hint && { hint }) } });
    else this.note(`Waiting: ${asSentence(message)}${hint === undefined ? '' : ` ${hint}`}`);
  }

  /** Why it takes long: at a terminal in the line about the wait, elsewhere as a note. */
  explainWait(why: string): void {
    if (this.#options.stderr.isTTY) this.progress(`Waiting: ${why}`);
    else this.note(`Waiting: ${why}`);
  }

  /** What went wrong and what to do. Never left out. */
  failure({ code, message, ...more }: Failure): void {
    const hint = more.hint && this.runnable(more.hint);
    if (this.json) this.#report({ error: { code, message, ...(hint && { hint }) } });
    else this.#toStderr([styled('red', 'throughline: '), hint ? `${asSentence(message)} ${hint}` : message]);
  }

  #report(value: object): void {
    this.#write(this.#options.stderr, `${jsonLine(value)}\n`);
  }

  /**
   * Shows what we wait for, only at a terminal. Any other output replaces this line. It comes back, with the seconds, when nothing
   * else was shown for a moment. Null: we do not wait any more.
   */
  progress(text: string | null): void {
    this.waitFor(text);
    if (this.#wait !== null) this.#showWait();
  }

  /** The same, but not shown at once: most waits are too short to be noticed. */
  waitFor(text: string | null): void {
    const { stderr, quiet } = this.#options;
    if (quiet || this.json || !stderr.isTTY) return;
    this.#clearWait();
    this.#wait = text === null ? null : { text, since: performance.now() };
    clearInterval(this.#ticker);
    this.#ticker = this.#wait === null ? undefined : setInterval(() => this.#tick(), TICK_MS).unref();
  }

  #tick(): void {
    if (this.#wait !== null && performance.now() - this.#wait.since >= IDLE_MS) this.#showWait();
  }

  #showWait(): void {
    const { stdout, stderr } = this.#options;
    if (this.#wait === null || (this.#midLine && stdout.isTTY)) return;
    const seconds = Math.floor((performance.now() - this.#wait.since) / 1_000);
    const text = `${stripControls(this.#wait.text)}${seconds < 2 ? '' : ` ${seconds} s`}`;
    this.#write(stderr, `\r\u001b[K${cutTo(text, (stderr.columns || 80) - 1)}`);
    this.#waitShown = true;
  }

  /** A line of a question. Never left out: somebody waits for the answer. */
  ask(text: string): void {
    this.waitFor(null);
    this.#toStderr([styled('yellow', text)]);
  }

  #toStderr(pieces: readonly Piece[]): void {
    const { stdout, stderr } = this.#options;
    this.#clearWait();
    if (this.#midLine && stdout.isTTY && stderr.isTTY) this.#write(stderr, '\n');
    this.#write(stderr, `${this.#render(pieces, stderr)}\n`);
  }

  #render(pieces: readonly Piece[], sink: Sink): string {
    return pieces
      .map((piece) => {
        if (typeof piece === 'string') return stripControls(piece);
        const text = stripControls(piece.text);
        return this.#options.color && sink.isTTY ? `\u001b[${STYLES[piece.style]}m${text}\u001b[0m` : text;
      })
      .join('');
  }

  /** Something else is shown: the wait begins again. */
  #clearWait(): void {
    if (this.#waitShown) this.#write(this.#options.stderr, '\r\u001b[K');
    this.#waitShown = false;
    if (this.#wait !== null) this.#wait.since = performance.now();
  }

  #write(sink: Sink, text: string): void {
    if (sink === this.#options.stdout && this.#gone.signal.aborted) return;
    sink.write(text);
  }
}
