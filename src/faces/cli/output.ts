import { asSentence, type Failure } from '../../core/errors.ts';
import { jsonLine } from '../../core/input/visible.ts';
import { ControlStripper, stripControls } from './terminal-text.ts';

/** A stream of this process to write to. */
export interface Sink {
  readonly isTTY?: boolean;
  write(text: string): unknown;
  on(event: 'error', listener: (error: NodeJS.ErrnoException) => void): unknown;
}

const CODES = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33, cyan: 36 } as const;
export type Style = keyof typeof CODES;

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
}

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
  #progressShown = false;

  constructor(options: OutputOptions) {
    this.#options = options;
    this.json = options.json;
    options.stdout.on('error', () => this.#gone.abort());
  }

  /** Aborted when nobody reads stdout any more (`| head`). */
  get gone(): AbortSignal {
    return this.#gone.signal;
  }

  /** A piece of the answer, as it arrives. */
  text(chunk: string): void {
    const clean = this.#stripper.push(chunk);
    if (clean === '') return;
    this.#clearProgress();
    this.#write(this.#options.stdout, clean);
    this.#midLine = !clean.endsWith('\n');
  }

  /** Ends the answer with a newline; what comes next is another text. */
  endText(): void {
    const rest = this.#stripper.end();
    if (rest !== '' || this.#midLine) this.#write(this.#options.stdout, `${rest}\n`);
    this.#midLine = false;
  }

  /** A line of the result. */
  line(...pieces: readonly Piece[]): void {
    this.#clearProgress();
    this.#write(this.#options.stdout, `${this.#render(pieces, this.#options.stdout)}\n`);
  }

  /** One line of JSON of the result. */
  value(value: unknown): void {
    this.#write(this.#options.stdout, `${jsonLine(value)}\n`);
  }

  /** The result: a value with `--json`, else a line. */
  result(value: unknown, ...pieces: readonly Piece[]): void {
    if (this.json) this.value(value);
    else this.line(...pieces);
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
    if (!this.#options.quiet && !this.json) this.#aside(pieces);
  }

  /** What we wait for, and what to do about it. With `--json`, a line `{"waiting": …}` on stderr. */
  waiting({ code, message, hint }: Failure): void {
    if (this.json)
      this.#write(this.#options.stderr, `${jsonLine({ waiting: { code, message, ...(hint && { hint }) } })}\n`);
    else this.note(`Waiting: ${asSentence(message)}${hint === undefined ? '' : ` ${hint}`}`);
  }

  /** What went wrong and what to do. Never left out. */
  failure(failure: Failure): void {
    if (this.json) {
      const { code, message, hint } = failure;
      this.#write(this.#options.stderr, `${jsonLine({ error: { code, message, ...(hint ? { hint } : {}) } })}\n`);
    } else {
      const { message, hint } = failure;
      this.#aside([styled('red', 'throughline: '), hint ? `${asSentence(message)} ${hint}` : message]);
    }
  }

  /** A line that the next output replaces; only at a terminal. */
  progress(text: string): void {
    const { stderr, quiet } = this.#options;
    if (quiet || this.json || !stderr.isTTY || this.#midLine) return;
    this.#write(stderr, `\r\u001b[K${stripControls(text)}`);
    this.#progressShown = true;
  }

  /** A line of a question. Never left out: somebody waits for the answer. */
  ask(text: string): void {
    this.#aside([styled('yellow', text)]);
  }

  #aside(pieces: readonly Piece[]): void {
    const { stdout, stderr } = this.#options;
    this.#clearProgress();
    if (this.#midLine && stdout.isTTY && stderr.isTTY) this.#write(stderr, '\n');
    this.#write(stderr, `${this.#render(pieces, stderr)}\n`);
  }

  #render(pieces: readonly Piece[], sink: Sink): string {
    return pieces
      .map((piece) => {
        if (typeof piece === 'string') return stripControls(piece);
        const text = stripControls(piece.text);
        return this.#options.color && sink.isTTY ? `\u001b[${CODES[piece.style]}m${text}\u001b[0m` : text;
      })
      .join('');
  }

  #clearProgress(): void {
    if (this.#progressShown) this.#write(this.#options.stderr, '\r\u001b[K');
    this.#progressShown = false;
  }

  #write(sink: Sink, text: string): void {
    if (sink === this.#options.stdout && this.#gone.signal.aborted) return;
    sink.write(text);
  }
}
