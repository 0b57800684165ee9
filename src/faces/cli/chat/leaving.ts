import { shellWord } from '../../../core/turn/quoted.ts';
import { DONE, EXIT } from '../exit-codes.ts';
import { oneLine } from '../terminal-text.ts';
import { HINT_MS } from './screen.ts';
import type { OpenElsewhere, Talk } from './talk.ts';
import type { Transcript } from './transcript.ts';

/** What leaving needs of the chat. */
interface Leavable {
  readonly transcript: Transcript;
  readonly talk: Talk;
  /** What the engine waits for; null: it does not wait. */
  readonly trouble: string | null;
  /** Cancels what is open. False: nothing is. */
  cancel(): boolean;
  /** Empties the input. */
  clear(): void;
  /** Shown at once, as long as a second Ctrl-C leaves. */
  hint(text: string): void;
  failed(error: unknown): void;
}

/** How a chat ends. The first Ctrl-C cancels, the second leaves. If leaving would interrupt a turn, the person is warned once. */
export class Leaving {
  readonly #chat: Leavable;
  readonly #left = Promise.withResolvers<number>();
  #interruptedAt = Number.NEGATIVE_INFINITY;
  #warned = false;
  /** Open turns of conversations that were left here, when the person last asked to leave. */
  #elsewhere: readonly OpenElsewhere[] = [];
  /** Requests to leave are handled one after another: the second one leaves. */
  #asking: Promise<void> = Promise.resolve();
  /** How long a turn that runs in this process may take to end; undefined: as usual. */
  graceMs: number | undefined;

  constructor(chat: Leavable) {
    this.#chat = chat;
  }

  /** Resolves with the exit code when the person leaves. */
  get code(): Promise<number> {
    return this.#left.promise;
  }

  leave(code: number, graceMs?: number): void {
    this.graceMs = graceMs;
    this.#left.resolve(code);
  }

  /** The person continues: the first Ctrl-C and the warning no longer count. */
  stay(): void {
    this.#warned = false;
    this.#interruptedAt = Number.NEGATIVE_INFINITY;
  }

  interrupt(): void {
    const now = performance.now();
    if (now - this.#interruptedAt < HINT_MS) {
      this.leave(DONE, 0);
      return;
    }
    this.#interruptedAt = now;
    const stops = this.#chat.cancel();
    if (!stops) this.#chat.clear();
    this.#chat.hint(`${stops ? 'Cancelling. ' : ''}Press Ctrl-C again to leave.`);
  }

  ask(): void {
    this.#asking = this.#asking.then(() => this.#ask()).catch((error) => this.#chat.failed(error));
  }

  /** A turn that runs in this process would be interrupted, so the person is warned once. */
  async #ask(): Promise<void> {
    const { transcript, talk, trouble } = this.#chat;
    const { running } = transcript;
    this.#elsewhere = trouble === null ? await talk.openElsewhere() : [];
    const isIdle = running === null && this.#elsewhere.length === 0;
    if (isIdle || talk.served || this.#warned) return this.leave(DONE, isIdle ? undefined : 0);
    this.#warned = true;
    const open = this.#openTurns();
    const runs = open.length === 1 ? 'runs' : 'run';
    const cancels = running === null ? '' : `, Ctrl-C cancels turn ${running.n}`;
    this.#chat.hint(`${open.join(', ')} ${runs} in this process and would be interrupted. Repeat to leave${cancels}.`);
  }

  /** `isShown`: whether the chat is on the terminal. Returns a function that stops listening. */
  onSignals(isShown: () => boolean): () => void {
    // Before the chat is shown, Ctrl-C ends the program as usual.
    const interrupt = () => (isShown() ? this.interrupt() : this.leave(EXIT.cancelled, 0));
    const terminate = () => this.leave(EXIT.interrupted);
    process.on('SIGINT', interrupt).on('SIGTERM', terminate).on('SIGHUP', terminate);
    return () => process.off('SIGINT', interrupt).off('SIGTERM', terminate).off('SIGHUP', terminate);
  }

  /** What was not sent, what continues, and how to come back. */
  farewell(): string[] {
    const { name, conversation, served, unsent } = this.#chat.talk;
    const lost = unsent.map((text) => `Not sent: ${oneLine(text)}`);
    if (conversation === null || name === null)
      return lost.length > 0 ? lost : ['The conversation was not created: nothing was sent.'];
    const goesOn = served ? this.#openTurns().map((turn) => `${turn} continues on the server.`) : [];
    return [...lost, ...goesOn, `To come back: "throughline chat ${shellWord(oneLine(name))}"`];
  }

  #openTurns(): string[] {
    const { running } = this.#chat.transcript;
    const others = this.#elsewhere.map(({ name, n }) => `Turn ${n} of "${oneLine(name)}"`);
    return [...(running === null ? [] : [`Turn ${running.n}`]), ...others];
  }
}
