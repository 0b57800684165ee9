import { asSentence, type Failure, ThroughlineError, unreachableTurn } from '../core/errors.ts';
import type { PublicEvent } from '../core/public/event.ts';
import type { PublicReceipt } from '../core/public/session.ts';
import type { PublicTool, PublicTurn } from '../core/public/turn.ts';
import type { Denial } from '../core/turn/permission.ts';
import { ReplyStream } from '../core/turn/reply.ts';
import type { Stranded } from '../core/turn/standing.ts';
import { hasEnded } from '../core/turn/turn.ts';
import type { Usage } from '../core/turn/usage.ts';
import type { Engine, Submitted } from '../ports/engine.ts';
import type { Answerer } from './answering.ts';

/**
 * The result of a completed turn.
 *
 * @example
 * import type { TurnResult } from 'throughline';
 *
 * const line = ({ reply, receipt }: TurnResult) => `${reply} (${receipt.rung})`;
 * console.log(line(await chat.ask('Hello')));
 */
export interface TurnResult {
  readonly turn: PublicTurn;
  readonly reply: string;
  /** How the context of the session was restored. */
  readonly receipt: PublicReceipt;
  readonly usage: Usage;
  /** The tools that the agent used, in the order in which they began. */
  readonly tools: readonly PublicTool[];
  /** Questions that were denied because nobody could answer, or nobody did in time. */
  readonly denied: readonly Denial[];
}

/**
 * What is known of a turn that did not complete.
 *
 * @example
 * import { type PartialResult, TurnError } from 'throughline';
 *
 * const soFar = ({ reply, tools }: PartialResult) => `${reply} (${tools.length} tools)`;
 * await chat.ask('Tidy up.').catch((error) => console.error(error instanceof TurnError ? soFar(error) : error));
 */
export type PartialResult = Omit<TurnResult, 'receipt'> & {
  /** Null: it ended before an agent was asked, or its end is not known. */
  readonly receipt: PublicReceipt | null;
};

type Failed = Failure | Pick<ThroughlineError, 'code' | 'message' | 'hint' | 'cause'>;

/**
 * An accepted turn did not complete. `code`, `message` and `hint` say why; the rest is what is known of it.
 *
 * @example
 * import { TurnError } from 'throughline';
 *
 * try {
 *   await chat.ask('Tidy up the notes.');
 * } catch (error) {
 *   if (error instanceof TurnError) console.error(error.code, error.turn.id, error.reply);
 *   else throw error; // the turn was not accepted
 * }
 */
export class TurnError extends ThroughlineError implements PartialResult {
  /** As it ended. When its end is not known (`unreachable`, `closed`): as it was accepted. It may still run. */
  readonly turn: PublicTurn;
  /** What was received of it. */
  readonly reply: string;
  readonly receipt: PublicReceipt | null;
  readonly usage: Usage;
  readonly tools: readonly PublicTool[];
  readonly denied: readonly Denial[];

  constructor(why: Failed, known: PartialResult) {
    super(why.code, why.message, { hint: why.hint, ...('cause' in why && { cause: why.cause }) });
    this.name = 'TurnError';
    this.turn = known.turn;
    this.reply = known.reply;
    this.receipt = known.receipt;
    this.usage = known.usage;
    this.tools = known.tools;
    this.denied = known.denied;
  }
}

/**
 * The answer to a prompt that was sent. Await it for the result, or read it while it arrives. Nothing needs to be read: the turn
 * runs in any case, and there are no unhandled rejections.
 *
 * @example
 * const answer = chat.send('Summarise the log.');
 * for await (const text of answer.textStream) process.stdout.write(text);
 * const { reply, usage } = await answer;
 */
export interface Answer extends PromiseLike<TurnResult> {
  /** The accepted turn. Rejects if the prompt was refused. */
  readonly accepted: Promise<Submitted>;
  /** The same as awaiting the answer. Rejects with a `TurnError` when the turn does not complete. */
  readonly result: Promise<TurnResult>;
  /**
   * The text of the reply, piece by piece. Ends with the turn, and throws a `TurnError` when that does not complete. Text that the
   * agent retracts was already yielded, so its replacement begins a new paragraph. If you can replace shown text, read `replyStream`.
   * Can be read once.
   */
  readonly textStream: AsyncIterable<string>;
  /**
   * The whole reply so far, again after every change; the last one is the `reply` of the result. A slow reader gets only the newest
   * one. Otherwise as `textStream`, and can be read once.
   */
  readonly replyStream: AsyncIterable<string>;
  /** The events of the turn, from `turn.queued` to `turn.ended`, however it ends. Can be read once. */
  readonly events: AsyncIterable<PublicEvent>;
  /**
   * Reports that the answer was delivered to where `deliverTo` says: the turn is no longer in `pending()`. Call it after posting: a
   * program that dies in between posts again.
   */
  delivered(): Promise<PublicTurn>;
}

/** One turn that was submitted. `answerer`: answers its questions; null: somebody else answers them, or nobody does. */
export class SubmittedAnswer implements Answer {
  readonly accepted: Promise<Submitted>;
  readonly textStream: AsyncIterable<string> = once('textStream', () => this.#texts());
  readonly replyStream: AsyncIterable<string> = once('replyStream', () => this.#replies());
  readonly events: AsyncIterable<PublicEvent> = once('events', () => this.#events());
  readonly #engine: Engine;
  readonly #answerer: Answerer | null;
  readonly #signal: AbortSignal | undefined;
  #result: Promise<TurnResult> | null = null;
  /** One of the readers has seen the turn end. */
  #ended = false;
  /** The turn has ended: it need not be cancelled any more. */
  #forgetSignal = () => {};

  /** `signal`: cancels the turn. */
  constructor(engine: Engine, submitted: Promise<Submitted>, answerer: Answerer | null, signal?: AbortSignal) {
    this.#engine = engine;
    this.accepted = submitted.then((accepted) => {
      if (signal !== undefined && !hasEnded(accepted.turn.state)) this.#cancelBy(signal, accepted.turn);
      return accepted;
    });
    this.#answerer = answerer;
    this.#signal = signal;
    this.accepted.catch(() => {}); // everything that is awaited or read throws the error itself
    // Questions are answered also when nobody reads the answer. Its readers get the errors.
    void this.accepted.then(({ turn }) => answerer?.watch(turn.id, this.#events())).catch(() => {});
  }

  get result(): Promise<TurnResult> {
    if (this.#result === null) {
      this.#result = this.#ending();
      this.#result.catch(() => {}); // the streams throw the error as well
    }
    return this.#result;
  }

  // biome-ignore lint/suspicious/noThenProperty: awaiting the answer gives its result
  then<T = TurnResult, E = never>(
    onResult?: ((result: TurnResult) => T | PromiseLike<T>) | null,
    onError?: ((error: unknown) => E | PromiseLike<E>) | null,
  ): Promise<T | E> {
    return this.result.then(onResult, onError);
  }

  async delivered(): Promise<PublicTurn> {
    return this.#engine.delivered((await this.accepted).turn.id);
  }

  /** Cancels also when nobody reads the answer. A turn that has ended meanwhile does not change. */
  #cancelBy(signal: AbortSignal, { id }: PublicTurn): void {
    const cancel = () => void this.#engine.cancel(id).catch(() => {});
    this.#forgetSignal = () => signal.removeEventListener('abort', cancel);
    if (signal.aborted) cancel();
    else signal.addEventListener('abort', cancel, { once: true });
  }

  async #ending(): Promise<TurnResult> {
    const { turn: accepted } = await this.accepted;
    const reply = new ReplyStream();
    try {
      if (!this.#ended && !hasEnded(accepted.state)) for await (const event of this.#events()) reply.see(event);
      const { receipt, ...ended } = await this.#engine.answerOf(accepted.id);
      const known = { ...ended, usage: ended.turn.usage };
      if (this.#answerer?.fault) throw new TurnError(whyCancelled(this.#answerer.fault.error), { ...known, receipt });
      const { state, failure } = ended.turn;
      if (state === 'completed' && receipt !== null) return { ...known, receipt };
      if (state === 'completed') throw notRunHere(accepted);
      const why = failure ?? { code: 'interrupted', message: `The turn ended as ${state}.` };
      const aborted = why.code === 'cancelled' && this.#signal?.aborted ? { cause: this.#signal.reason } : {};
      throw new TurnError({ ...why, ...aborted }, { ...known, receipt });
    } catch (error) {
      throw lost(error, accepted, reply);
    }
  }

  async *#texts(): AsyncGenerator<string> {
    const { turn } = await this.accepted;
    const reply = new ReplyStream();
    try {
      for await (const event of this.#events()) {
        const added = reply.see(event);
        if (added !== '') yield added;
      }
    } catch (error) {
      throw lost(error, turn, reply);
    }
    await this.result;
  }

  async *#replies(): AsyncGenerator<string> {
    const { turn } = await this.accepted;
    const reply = new ReplyStream();
    const over = new AbortController();
    let changed = Promise.withResolvers<void>();
    let isOver = false;
    // Continues while the reader is busy with an earlier text.
    const read = async () => {
      for await (const event of this.#events(over.signal)) {
        reply.see(event);
        changed.resolve();
      }
    };
    const reading = read().finally(() => {
      isOver = true;
      changed.resolve();
    });
    reading.catch(() => {}); // awaited below
    try {
      for (let told = ''; !isOver || told !== reply.text; ) {
        if (told === reply.text) await changed.promise;
        changed = Promise.withResolvers();
        if (told === reply.text) continue;
        told = reply.text;
        yield told;
      }
      await reading;
    } catch (error) {
      throw lost(error, turn, reply);
    } finally {
      over.abort();
    }
    await this.result;
  }

  async *#events(signal?: AbortSignal): AsyncGenerator<PublicEvent> {
    const { turn, seq } = await this.accepted;
    const over = new AbortController();
    const found: { stranded: Stranded | null } = { stranded: null };
    const stopLooking = this.#whenStranded(turn, (stranded) => {
      found.stranded = stranded;
      over.abort();
    });
    const until = signal === undefined ? over.signal : AbortSignal.any([signal, over.signal]);
    try {
      for await (const event of this.#engine.follow(turn.conversationId, { after: seq - 1, signal: until })) {
        if (event.turnId !== turn.id) continue;
        if (event.kind === 'turn.ended') {
          this.#ended = true;
          this.#forgetSignal();
        }
        yield event;
        if (event.kind === 'turn.ended') break;
      }
    } catch (error) {
      throw error instanceof ThroughlineError ? withTurn(error, turn) : error;
    } finally {
      stopLooking();
      over.abort();
    }
    if (found.stranded === null) return;
    const { message, hint } = found.stranded;
    throw unreachableTurn(new ThroughlineError('unreachable', message), turn, hint);
  }

  /** The turn may run at another data home, whose processes end while we wait. Calls back when nobody runs it there any more. */
  #whenStranded({ id }: PublicTurn, onStranded: (stranded: Stranded) => void): () => void {
    const look = async () => {
      // The stream of events reports the same error.
      const stranded = await this.#engine.turn(id).then(
        (turn) => turn.stranded,
        () => null,
      );
      if (stranded?.reason === 'other_home') onStranded(stranded);
    };
    const timer = setInterval(() => void look(), LOOK_MS);
    // It must not keep the process alive. In browsers a timer is a number.
    if (typeof timer === 'object') timer.unref();
    return () => clearInterval(timer);
  }
}

/** The end of the turn could not be seen. `reply`: what was received of it. */
function lost(error: unknown, turn: PublicTurn, reply: ReplyStream): unknown {
  if (!(error instanceof ThroughlineError) || error instanceof TurnError) return error;
  const nothing = { usage: turn.usage, receipt: null, tools: [], denied: [] };
  return new TurnError(error, { turn, reply: reply.text, ...nothing });
}

/** The function that answers questions threw, or returned an invalid answer. */
function whyCancelled(fault: unknown): Failed {
  const why = asSentence(fault instanceof Error ? fault.message : String(fault));
  const { hint } = fault instanceof ThroughlineError ? fault : {};
  return {
    code: 'cancelled',
    message: `The turn was cancelled, because onPermission failed: ${why}`,
    hint,
    cause: fault,
  };
}

/** Adds to an error that the turn was accepted and is stored. */
function withTurn(error: ThroughlineError, turn: PublicTurn): ThroughlineError {
  if (error.code === 'unreachable') return unreachableTurn(error, turn);
  if (error.code !== 'closed') return error;
  return new ThroughlineError('closed', `Throughline was closed before the end of turn ${turn.n} was read.`, {
    hint: 'It is stored, and so is its end if it had ended. Otherwise the next program or server of its data home runs it, or records its end.',
    cause: error,
  });
}

/** The request id was used before: by a tracker, for example. */
function notRunHere({ n, requestId }: PublicTurn): ThroughlineError {
  const message = `The request id "${requestId}" belongs to turn ${n}, which another program ran.`;
  return new ThroughlineError('conflict', message, { hint: 'Use another request id.' });
}

/** How often to check whether the turn is stranded. */
const LOOK_MS = 5_000;

/** Two readers of one stream would each get a part of it, or the second one nothing. */
function once<T>(name: string, read: () => AsyncIterator<T>): AsyncIterable<T> {
  let isRead = false;
  return {
    [Symbol.asyncIterator]() {
      if (isRead) {
        throw new ThroughlineError('invalid', `"${name}" of this answer is being read, or was read, already.`, {
          hint: 'It can be read once. Await the answer for the whole reply, or follow the conversation for its events.',
        });
      }
      isRead = true;
      return read();
    },
  };
}
