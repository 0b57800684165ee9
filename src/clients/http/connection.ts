import { ThroughlineError } from '../../core/errors.ts';
import { BASE_PATH, INTERFACE, INTERFACE_HEADER } from '../../wire/operations/operation.ts';
import { Absence, type Patience } from './absence.ts';
import { Away, checkAnswer, closed, lost, unknownOutcome, unreachable } from './faults.ts';
import { Stop } from './stop.ts';
import type { Incoming, Transport } from './transport.ts';

export interface Timing extends Patience {
  /** How long an answer may take; of what looks at programs or at a whole conversation, `longMs`. */
  readonly timeoutMs: number;
  readonly longMs: number;
  /** How long the very first answer may take. */
  readonly meetMs: number;
  /** A stream in which not even a heartbeat was heard for so long is dead. */
  readonly silenceMs: number;
}

export const TIMING: Timing = {
  patienceMs: 30_000,
  firstMs: 50,
  longestMs: 1_000,
  timeoutMs: 30_000,
  longMs: 600_000,
  meetMs: 10_000,
  silenceMs: 45_000,
};

export interface Request {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: object;
  /** How long the answer may take; left out: as usual. */
  readonly withinMs?: number | undefined;
  /** Asking twice is as good as asking once. */
  readonly repeatable: boolean;
  /** Told when a try was lost: it may have been done, and is repeated now. */
  readonly onLost?: () => void;
}

/** The way to one server, shared by everything that is asked of it: repeats what may be repeated, ends with `close`. */
export class Connection {
  readonly transport: Transport;
  readonly timing: Timing;
  readonly #active = new Set<Stop>();
  #closed = false;
  /** It has answered once. Until then it is not waited for: whoever mistypes an address hears of it at once. */
  #met = false;

  constructor(transport: Transport, timing: Timing) {
    this.transport = transport;
    this.timing = timing;
  }

  async ask(request: Request): Promise<unknown> {
    const absence = new Absence(this.transport.where, this.timing);
    for (;;) {
      try {
        return await this.#once(request);
      } catch (error) {
        if (!(error instanceof Away)) throw error;
        if (!error.undone) {
          if (!request.repeatable) throw unknownOutcome(this.transport.where, error);
          request.onLost?.();
        }
        await this.wait(absence, error);
      }
    }
  }

  /** Until the next try. Throws when the server has been away for too long, was never there, or this is closed. */
  async wait(absence: Absence, why: Away, signal?: AbortSignal): Promise<void> {
    if (!this.#met) throw unreachable(this.transport.where, why);
    const ms = absence.pause(why);
    await this.stoppable(signal, (stop) => stop.after(ms));
    if (this.#closed) throw closed();
  }

  /** Does something that `close` ends, and the signal, too. */
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

  /** One try, up to the beginning of a good answer. */
  async send({ method, path, headers, body }: Request, stop: Stop): Promise<Incoming> {
    const type: Record<string, string> = body === undefined ? {} : { 'content-type': 'application/json' };
    const ours = { [INTERFACE_HEADER]: INTERFACE, ...type };
    const text = body === undefined ? null : JSON.stringify(body);
    const request = { method, path: `${BASE_PATH}${path}`, headers: { ...headers, ...ours }, body: text };
    const answer = await this.orAway(stop, () => this.transport.send({ ...request, signal: stop.signal }));
    await this.orAway(stop, () => checkAnswer(answer, this.transport));
    this.#met = true;
    return answer;
  }

  /** What the network says when it fails, as what it means here. */
  async orAway<T>(stop: Stop, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (this.#closed) throw closed();
      if (error instanceof ThroughlineError || error instanceof Away) throw error;
      if (stop.signal.reason instanceof Away) throw stop.signal.reason;
      throw lost(error);
    }
  }

  close(): void {
    this.#closed = true;
    for (const stop of this.#active) stop.abort(closed());
    this.transport.close();
  }

  #once(request: Request): Promise<unknown> {
    return this.stoppable(undefined, async (stop) => {
      stop.within(request.withinMs ?? this.timing.timeoutMs, 'it takes too long');
      const answer = await this.send(request, stop);
      return this.orAway(stop, async () => JSON.parse(await answer.text()));
    });
  }
}
