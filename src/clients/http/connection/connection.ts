import { ThroughlineError } from '../../../core/errors.ts';
import { EXEC_MS } from '../../../core/sandbox/sandbox.ts';
import { BASE_PATH, INTERFACE, INTERFACE_HEADER } from '../../../wire/operations/operation.ts';
import { type Backoff, type BackoffSettings, createBackoff } from './backoff.ts';
import {
  away,
  checkAnswer,
  closed,
  hiddenFrom,
  lost,
  ServerAway,
  stoppedWaiting,
  unknownOutcome,
  unreachable,
} from './faults.ts';
import type { Incoming, Outgoing, Transport } from './transport.ts';

export interface Timing extends BackoffSettings {
  /** How long an answer may take; `longMs`: when programs are started or a whole conversation is read. */
  readonly timeoutMs: number;
  readonly longMs: number;
  /** How long the very first answer may take. */
  readonly firstAnswerMs: number;
  /** A stream without even a heartbeat for so long is dead. */
  readonly silenceMs: number;
}

export const TIMING: Timing = {
  giveUpMs: 30_000,
  firstMs: 50,
  longestMs: 1_000,
  timeoutMs: 30_000,
  // The server ends a command after this time, and then still has to answer.
  longMs: EXEC_MS + 60_000,
  firstAnswerMs: 10_000,
  silenceMs: 45_000,
};

/** A restart is often shorter than this, and is not reported. */
const AWAY_MS = 1_000;

export interface Request {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: object;
  /** How long the answer may take. */
  readonly withinMs: number;
  /** Sending it twice has the same effect as once. */
  readonly repeatable: boolean;
  /** Aborted: the caller has stopped waiting. Throws `cancelled`. */
  readonly signal?: AbortSignal | undefined;
  /** Called when a reply was lost: the request may have been carried out, and is repeated now. */
  readonly onLost?: () => void;
}

/** The connection to one server, shared by all requests. Repeats what may be repeated; `close` ends everything. */
export class Connection {
  readonly transport: Transport;
  readonly timing: Timing;
  readonly #active = new Set<Stop>();
  #closed = false;
  readonly #onAway: (trouble: ThroughlineError) => void;
  /** The server has answered once. Before that, we do not wait for it, so that a wrong address fails at once. */
  #hasAnswered = false;
  /** Since when it does not answer, infinite once that was reported; null: it answers. */
  #awaySince: number | null = null;

  /** `onAway`: called once whenever the server has not answered for a second and is still waited for. */
  constructor(transport: Transport, timing: Timing, onAway: (trouble: ThroughlineError) => void = () => {}) {
    this.transport = transport;
    this.timing = timing;
    this.#onAway = onAway;
  }

  async ask(request: Request): Promise<unknown> {
    const backoff = createBackoff(this.transport.where, this.timing);
    for (;;) {
      try {
        return await this.#once(request, backoff);
      } catch (error) {
        if (request.signal?.aborted) throw stoppedWaiting(error);
        if (!(error instanceof ServerAway)) throw error;
        if (!error.nothingDone) {
          if (!request.repeatable) throw unknownOutcome(this.transport.where, error);
          request.onLost?.();
        }
        await this.wait(backoff, error, request.signal);
      }
    }
  }

  /** Waits until the next try. Throws when the server has been away for too long or never answered, and when closed. */
  async wait(backoff: Backoff, why: ServerAway, signal?: AbortSignal): Promise<void> {
    const ms = await this.#pauseAfter(backoff, why);
    this.#reportAway(why);
    await this.stoppable(signal, (stop) => stop.sleep(ms));
    if (this.#closed) throw closed();
  }

  /**
   * Limits the time until an answer. A server that is away gets no more than is left until it is given up; but an answer that may take longer
   * than that gets its whole time.
   */
  limitAnswer(stop: Stop, { withinMs }: Request, backoff: Backoff): void {
    const ms = withinMs > this.timing.giveUpMs ? withinMs : Math.min(withinMs, backoff.leftMs());
    stop.limit(ms, 'it took too long', ms);
  }

  /** Runs work that `close` and the signal can stop. */
  async stoppable<T>(signal: AbortSignal | undefined, work: (stop: Stop) => Promise<T>): Promise<T> {
    const stop = this.begin(signal);
    try {
      return await work(stop);
    } finally {
      this.end(stop);
    }
  }

  begin(signal?: AbortSignal): Stop {
    if (this.#closed) throw closed();
    const stop = new Stop(signal);
    this.#active.add(stop);
    return stop;
  }

  end(stop: Stop): void {
    this.#active.delete(stop);
    stop.release();
  }

  /** One try, up to the beginning of a successful answer. */
  async send({ method, path, headers, body }: Request, stop: Stop): Promise<Incoming> {
    const type: Record<string, string> = body === undefined ? {} : { 'content-type': 'application/json' };
    const ours = { [INTERFACE_HEADER]: INTERFACE, ...type };
    const text = body === undefined ? null : JSON.stringify(body);
    const answer = await this.#exchange(stop, {
      method,
      path: `${BASE_PATH}${path}`,
      headers: { ...headers, ...ours },
      body: text,
    });
    this.#hasAnswered = true;
    this.#awaySince = null;
    return answer;
  }

  /** Reads a file of the server. Throws if it is incomplete. Not repeated, because the next file may differ. The first byte may take long. */
  async *file(path: string, headers: Request['headers'], signal?: AbortSignal): AsyncGenerator<Uint8Array> {
    const stop = this.begin(signal);
    try {
      stop.limit(this.timing.longMs, 'it took too long');
      const ours = { ...headers, [INTERFACE_HEADER]: INTERFACE };
      const answer = await this.#exchange(stop, { method: 'GET', path, headers: ours, body: null });
      let missing = Number(answer.header('content-length'));
      const chunks = answer.chunks()[Symbol.asyncIterator]();
      for (;;) {
        stop.limit(this.timing.silenceMs, 'nothing arrived for too long');
        const { done, value } = await this.orAway(stop, () => chunks.next());
        if (done) break;
        missing -= value.length;
        yield value;
      }
      if (missing !== 0) throw new ServerAway('the connection was cut', { nothingDone: false });
    } catch (error) {
      if (signal?.aborted) throw stoppedWaiting(error);
      if (!(error instanceof ServerAway)) throw error;
      throw new ThroughlineError('unreachable', `The file did not arrive completely: ${error.message}.`, {
        hint: 'Try again.',
        cause: error,
      });
    } finally {
      this.end(stop);
    }
  }

  async #exchange(stop: Stop, request: Omit<Outgoing, 'signal'>): Promise<Incoming> {
    const answer = await this.orAway(stop, () => this.transport.send({ ...request, signal: stop.signal }));
    await this.orAway(stop, () => checkAnswer(answer, this.transport));
    return answer;
  }

  /** Translates network errors. */
  async orAway<T>(stop: Stop, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (this.#closed) throw closed();
      if (error instanceof ThroughlineError || error instanceof ServerAway) throw error;
      if (stop.signal.reason instanceof ServerAway) throw stop.signal.reason;
      throw lost(error);
    }
  }

  close(): void {
    this.#closed = true;
    for (const stop of this.#active) stop.abort(closed());
    this.transport.close();
  }

  /** How long to wait before the next try. Throws when the server is given up, with the reason if it can be found. */
  async #pauseAfter(backoff: Backoff, why: ServerAway): Promise<number> {
    try {
      if (!this.#hasAnswered) throw unreachable(this.transport.where, why);
      return backoff.next(why);
    } catch (error) {
      const seen = (await this.transport.lookFromPage?.()) ?? null;
      throw seen === null ? error : hiddenFrom(this.transport.where, seen);
    }
  }

  #reportAway(why: ServerAway): void {
    const now = performance.now();
    this.#awaySince ??= now;
    if (now - this.#awaySince < AWAY_MS) return;
    this.#awaySince = Number.POSITIVE_INFINITY;
    this.#onAway(away(this.transport.where, why, this.timing.giveUpMs));
  }

  #once(request: Request, backoff: Backoff): Promise<unknown> {
    return this.stoppable(request.signal, async (stop) => {
      this.limitAnswer(stop, request, backoff);
      const answer = await this.send(request, stop);
      return this.orAway(stop, async () => JSON.parse(await answer.text()));
    });
  }
}

/** Stops a request: when the caller's signal aborts, when the connection closes, or after a time limit. */
export class Stop {
  readonly #controller = new AbortController();
  readonly #signal: AbortSignal | undefined;
  readonly #follow = () => this.#controller.abort(this.#signal?.reason);
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(signal?: AbortSignal) {
    this.#signal = signal;
    if (signal?.aborted) this.#follow();
    else signal?.addEventListener('abort', this.#follow);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  abort(reason?: unknown): void {
    this.#controller.abort(reason);
  }

  /** Sets the time limit, counted from now; replaces an earlier one. `silentMs`: of an answer that was waited for in vain. */
  limit(ms: number, why: string, silentMs = 0): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.abort(new ServerAway(why, { nothingDone: false, silentMs })), ms);
  }

  /** Removes the time limit. */
  noLimit(): void {
    clearTimeout(this.#timer);
  }

  /** Resolves after this time, or when stopped. */
  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.#timer = setTimeout(resolve, ms);
      if (this.signal.aborted) resolve();
      this.signal.addEventListener('abort', () => resolve());
    });
  }

  /** Frees the timer and the listener. */
  release(): void {
    clearTimeout(this.#timer);
    this.#signal?.removeEventListener('abort', this.#follow);
  }
}
