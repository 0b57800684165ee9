import type { Failure } from '../../../core/errors.ts';
import type { PublicEvent, PublicEventPayloads } from '../../../core/public/event.ts';
import type { PublicReceipt } from '../../../core/public/session.ts';
import { modelRetryIn, retryText, showsAnswer, type Update } from '../../../core/turn/update.ts';
import type { Handlers } from '../events.ts';
import { handle } from '../events.ts';
import { RECOVERED, receiptLine, stalledLine, turns } from '../lines.ts';
import { oneLine } from '../terminal-text.ts';
import { type EntryKind, type Flushed, Scene } from './scene.ts';
import { type Described, describedLines, type Line, type Span, span } from './text/cells.ts';

/** A prompt that was accepted and has not begun. */
interface QueuedPrompt {
  readonly turnId: string;
  readonly text: string;
}

/** What the conversation is doing. `since`: milliseconds since 1970. */
export interface Activity {
  readonly what: string;
  readonly since: number;
}

export type Question = PublicEventPayloads['permission.asked'];

/**
 * The conversation on the screen: events in, lines out. Lines are printed for good as soon as nothing can change them; the rest is
 * drawn again and again. It does no I/O and reads no clock.
 */
export class Transcript {
  readonly #runnable: (text: string) => string;
  /** Paths below this directory are shown relative to it. */
  cwd: string | null = null;
  /** Turns that have begun, and notes between them, until they are printed. */
  #scenes: Scene[] = [];
  /** What was printed last, of scenes that are gone. */
  #before: EntryKind | null = null;
  queued: QueuedPrompt[] = [];
  /** By request id: prompts of this terminal that are on their way. */
  readonly #sent = new Map<string, string>();
  activity: Activity | null = null;
  #lastSeam = '';
  #begunAt: number | null = null;
  /** The agent asks its model again, and nothing of an answer has come since. */
  #retries = false;
  /** The turn that runs, or is next; null: none is open. */
  running: { readonly id: string; readonly n: number; readonly agent: string } | null = null;
  readonly #agents = new Map<string, string>();
  readonly questions: Question[] = [];
  /** Questions that were answered here. */
  readonly #answeredHere = new Set<string>();

  /** `runnable`: a text of ours with commands in double quotes, as they can be run here. */
  constructor(runnable = (text: string) => text) {
    this.#runnable = runnable;
  }

  /** Prompts of this terminal that are not accepted yet. */
  get unsent(): readonly string[] {
    return [...this.#sent.values()];
  }

  /** This terminal sends a prompt; it is not accepted yet. */
  sends(requestId: string, text: string): void {
    this.#sent.set(requestId, text);
  }

  /** It was not accepted. */
  notSent(requestId: string): void {
    this.#sent.delete(requestId);
  }

  answersHere(permissionId: string): void {
    this.#answeredHere.add(permissionId);
  }

  /** The answer from here came too late. */
  answeredElsewhere(permissionId: string): void {
    this.#answeredHere.delete(permissionId);
  }

  /** A line beside what is said. */
  note(...spans: readonly Span[]): void {
    this.#last().note(spans);
  }

  /** Names and what they are, beside what is said. */
  list(rows: readonly Described[]): void {
    this.#last().note((width) => describedLines(rows, width));
  }

  /** A turn of the past, whole. `failure`: why it did not complete. */
  past(prompt: string, reply: string, failure: Failure | null): void {
    const scene = new Scene(this.cwd);
    scene.prompt(prompt);
    scene.update({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: reply } }, 0);
    scene.end();
    if (failure !== null) scene.note([span(oneLine(failure.message), 'dim')]);
    this.#scenes.push(scene);
  }

  see(event: PublicEvent): void {
    handle(this.#handlers, event);
  }

  readonly #handlers: Handlers = {
    'turn.queued': (event) => this.#queue(event),
    'turn.started': (event) => this.#start(event),
    'turn.requeued': ({ at }) => this.#does('waiting for a process that runs it', at),
    'turn.sent': ({ at }) => this.#does('working', at),
    'turn.update': ({ payload, at }) => this.#update(payload.update, at),
    'turn.retrying': ({ payload, at }) => this.#retry(payload, at),
    'turn.stalled': ({ payload }) => this.note(span(`${stalledLine(payload)}; Ctrl-C cancels the turn`, 'yellow')),
    'turn.cancel_requested': ({ at }) => this.#does('being cancelled', at),
    'turn.ended': (event) => this.#end(event),
    'session.locked': ({ at }) => this.#does('waiting: another program is using the session', at),
    'restore.started': ({ payload: { rung, total }, at }) =>
      this.#does(`restoring the context by ${rung}: ${turns(total)}`, at),
    'restore.progress': ({ payload: { rung, done, total }, at }) =>
      this.#does(`restoring by ${rung}: ${done} of ${turns(total)}`, at),
    'restore.receipt': ({ payload }) => this.#seam(payload),
    'permission.asked': ({ payload }) => this.questions.push(payload),
    'permission.answered': ({ payload }) => this.#answered(payload),
    'permission.denied': ({ payload: { permissionId, reason } }) =>
      this.#closed(permissionId, `denied: ${reason}`, 'red'),
    'permission.withdrawn': ({ payload: { permissionId, reason } }) =>
      this.#closed(permissionId, `question withdrawn: ${reason}`, 'dim'),
  };

  // ── lines ──

  /** Lines to print for good. `erasable`: how many of those printed last can still be erased. */
  flush(width: number, erasable: number): Flushed {
    const lines: Line[] = [];
    let erase = 0;
    for (let left = erasable; this.#scenes.length > 0; ) {
      const [scene] = this.#scenes as [Scene];
      const flushed = scene.flush(width, left, this.#before);
      erase += flushed.erase;
      lines.push(...flushed.lines);
      left = 0; // what follows was printed just now
      if (!scene.isPrinted) break;
      this.#before = scene.lastKind;
      this.#scenes.shift();
    }
    return { erase, lines };
  }

  /** Lines that may still change. */
  live(width: number, now: number): Line[] {
    return this.#scenes.flatMap((scene) => scene.live(width, now));
  }

  // ── turns ──

  #queue({ turnId, payload }: PublicEvent & { kind: 'turn.queued' }): void {
    const { n, agent, requestId, preview } = payload;
    const text = (requestId === null ? undefined : this.#sent.get(requestId)) ?? preview;
    if (requestId !== null) this.#sent.delete(requestId);
    this.#agents.set(turnId ?? '', agent);
    this.queued.push({ turnId: turnId ?? '', text });
    // No turn is before it: it begins at once, or an event says why not.
    if (this.running === null) this.#begin(turnId ?? '', n);
  }

  #start({ turnId, payload, at }: PublicEvent & { kind: 'turn.started' }): void {
    if (this.running?.id !== turnId) this.#begin(turnId ?? '', payload.n);
    this.#does('starting', at);
  }

  #begin(id: string, n: number): void {
    const prompt = this.queued.find(({ turnId }) => turnId === id);
    this.queued = this.queued.filter((one) => one !== prompt);
    const scene = new Scene(this.cwd);
    if (prompt !== undefined) scene.prompt(prompt.text);
    this.#scenes.push(scene);
    this.running = { id, n, agent: this.#agents.get(id) ?? 'the agent' };
  }

  #update(update: Update, at: number): void {
    const retry = modelRetryIn(update);
    if (retry !== null) this.#retries = true;
    else if (showsAnswer(update)) this.#retries = false;
    const thinks = update.sessionUpdate === 'agent_thought_chunk';
    const condenses = update.sessionUpdate === 'compaction_update' && update.status === 'in_progress';
    if (retry !== null) this.#does(oneLine(retryText(retry)), at);
    else if (!this.#retries)
      this.#does(thinks ? 'thinking' : condenses ? 'condensing the conversation' : 'working', at);
    this.#last().update(update, at);
  }

  /** What the failed attempt had said is taken back. */
  #retry({ failure }: PublicEventPayloads['turn.retrying'], at: number): void {
    this.#last().restart();
    this.note(span(`trying again: ${oneLine(failure.message)}`, 'dim'));
    this.#does('trying again', at);
  }

  #end({ turnId, payload }: PublicEvent & { kind: 'turn.ended' }): void {
    const { n, outcome, failure, reply, recovered } = payload;
    this.#agents.delete(turnId ?? '');
    if (this.queued.some((one) => one.turnId === turnId)) {
      this.queued = this.queued.filter((one) => one.turnId !== turnId);
      this.note(span(`Turn ${n} was ${outcome} before it began.`, 'dim'));
      return;
    }
    const scene = this.#last();
    scene.complete(reply);
    scene.end();
    if (recovered) scene.note([span(RECOVERED, 'dim')]);
    if (outcome === 'cancelled') scene.note([span('Cancelled.', 'yellow')]);
    else if (failure !== null) {
      const hint = failure.hint === undefined ? '' : ` ${oneLine(this.#runnable(failure.hint))}`;
      const style = outcome === 'interrupted' ? 'yellow' : 'red';
      scene.note([span(`Turn ${n} ${outcome}: `, style), span(`${oneLine(failure.message)}${hint}`)]);
    }
    this.running = null;
    this.#rests();
  }

  /** There is no seam where the same session continues, and before the first session of a conversation. */
  #seam(receipt: PublicReceipt): void {
    if (receipt.turn === null) this.#rests();
    if (receipt.rung === 'live' || receipt.rung === 'new') return;
    // The receipt comes again when the turn has ended, with the final proof.
    const seam = [receipt.turn, receipt.attempt, receipt.rung].join();
    if (receipt.turn !== null && seam === this.#lastSeam) return;
    this.#lastSeam = seam;
    this.#last().seam([span('┄┄ ', 'dim'), span(receiptLine(receipt), 'dim'), span(' ┄┄', 'dim')]);
  }

  // ── permissions ──

  #answered({ permissionId, optionId, by }: PublicEventPayloads['permission.answered']): void {
    const option = this.questions
      .find((one) => one.permissionId === permissionId)
      ?.options.find((one) => one.optionId === optionId);
    const chosen = oneLine(option?.name ?? optionId, 'code');
    const where = this.#answeredHere.delete(permissionId) ? '' : `, elsewhere, by ${oneLine(by)}`;
    this.#closed(permissionId, `answered: ${chosen}${where}`, option?.kind.startsWith('allow') ? 'green' : 'red');
  }

  #closed(permissionId: string, how: string, style: 'green' | 'red' | 'dim'): void {
    const at = this.questions.findIndex((one) => one.permissionId === permissionId);
    const [question] = at === -1 ? [] : this.questions.splice(at, 1);
    const title = question === undefined ? '' : `${oneLine(question.title, 'code')} `;
    this.#last().note([span('? ', 'yellow'), span(title), span(`· ${oneLine(how)}`, style)], true);
  }

  #does(what: string, at: number): void {
    // Of a turn: since it began.
    this.#begunAt ??= at;
    this.activity = { what, since: this.#begunAt };
  }

  #rests(): void {
    this.#retries = false;
    this.activity = null;
    this.#begunAt = null;
  }

  #last(): Scene {
    const last = this.#scenes.at(-1);
    if (last !== undefined && !last.isOver) return last;
    const scene = new Scene(this.cwd);
    if (this.running === null) scene.end();
    this.#scenes.push(scene);
    return scene;
  }
}
