import type { Editor } from './input/editor.ts';
import { Painter } from './painter.ts';
import { Terminal, type TerminalListener } from './terminal.ts';
import type { Activity, Transcript } from './transcript.ts';
import { view } from './view.ts';

/** What a chat shows now. */
export interface Shown {
  readonly transcript: Transcript;
  /** Null: nothing is being done. */
  readonly activity: Activity | null;
  /** The option that Enter chooses; null: none. */
  readonly selected: number | null;
  readonly editor: Editor;
  /** What the engine waits for; null: it does not wait. */
  readonly trouble: string | null;
}

export interface ScreenOptions {
  readonly input: typeof process.stdin;
  readonly output: typeof process.stdout;
  readonly color: boolean;
}

/** How often a moving part is drawn, and how long changes are collected before they are drawn. */
const TICK_MS = 120;
const GATHER_MS = 25;
/** How long a hint is shown. */
export const HINT_MS = 2_000;

/** The terminal of a chat. Draws when something has changed, and repeatedly while the agent works. */
export class Screen {
  readonly #terminal: Terminal;
  readonly #painter: Painter;
  readonly #shown: Shown;
  #hint: { readonly text: string; readonly until: number } | null = null;
  #paint: NodeJS.Timeout | undefined;
  #tick: NodeJS.Timeout | undefined;

  constructor({ input, output, color }: ScreenOptions, shown: Shown, on: Pick<TerminalListener, 'key' | 'gone'>) {
    const redraw = () => this.redraw();
    this.#shown = shown;
    this.#terminal = new Terminal(input, output, { key: on.key, gone: on.gone, resized: redraw, resumed: redraw });
    const { columns, rows } = this.#terminal;
    this.#painter = new Painter({ color, columns, rows });
  }

  get isEntered(): boolean {
    return this.#terminal.isEntered;
  }

  enter(): void {
    this.#terminal.enter();
  }

  /** Restores the terminal. What was printed stays. */
  leave(): void {
    this.flush();
    this.#terminal.write(this.#painter.clear());
    this.#terminal.leave();
  }

  suspend(): void {
    this.#terminal.write(this.#painter.clear());
    this.#terminal.suspend();
  }

  /** Draws nothing more by itself. */
  stop(): void {
    clearTimeout(this.#paint);
    clearInterval(this.#tick);
  }

  /** A line below the input, for a moment; null: none. */
  hint(text: string | null): void {
    this.#hint = text === null ? null : { text, until: performance.now() + HINT_MS };
    if (text !== null) setTimeout(() => this.soon(), HINT_MS + 10).unref();
  }

  soon(): void {
    this.#paint ??= setTimeout(() => this.now(), GATHER_MS);
  }

  now(): void {
    clearTimeout(this.#paint);
    this.#paint = undefined;
    this.flush();
    const moves = this.#shown.activity !== null;
    if (moves && this.#tick === undefined) this.#tick = setInterval(() => this.soon(), TICK_MS).unref();
    if (!moves) {
      clearInterval(this.#tick);
      this.#tick = undefined;
    }
  }

  /** Prints what does not change any more, and draws the rest below it. */
  flush(): void {
    const { columns, rows, erasable } = this.#painter;
    const width = Math.max(10, columns - 1);
    const flushed = this.#shown.transcript.flush(width, erasable);
    this.#terminal.write(this.#painter.paint(flushed, view(this.#state(width), columns, rows)));
  }

  /** For when the size has changed, or another program has written to the terminal. */
  redraw(): void {
    this.#terminal.write(this.#painter.resize(this.#terminal.columns, this.#terminal.rows));
    this.now();
  }

  #state(width: number): Parameters<typeof view>[0] {
    const { transcript, activity, selected, editor, trouble } = this.#shown;
    const now = Date.now();
    if (this.#hint !== null && this.#hint.until <= performance.now()) this.#hint = null;
    return {
      live: transcript.live(width, now),
      activity,
      agent: transcript.running?.agent ?? null,
      queued: transcript.queued.map(({ text }) => text),
      unsent: transcript.unsent,
      question: transcript.questions[0] ?? null,
      moreQuestions: Math.max(0, transcript.questions.length - 1),
      selected,
      editor,
      hint: this.#hint?.text ?? null,
      trouble,
      now,
    };
  }
}
