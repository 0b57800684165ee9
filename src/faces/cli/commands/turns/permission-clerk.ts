import { ThroughlineError } from '../../../../core/errors.ts';
import type { PublicEvent, PublicEventPayloads } from '../../../../core/public/event.ts';
import type { PermissionMode } from '../../../../core/turn/turn.ts';
import type { Engine } from '../../../../ports/engine.ts';
import type { Output } from '../../output.ts';
import { askPermission, atTerminal, optionList } from './answers.ts';

/**
 * Brings an agent's questions to somebody who can answer: the person at this terminal, one question at a time, or somebody
 * with `throughline answer` elsewhere. An answer from anywhere ends the question here.
 */
export class PermissionClerk {
  readonly #engine: Engine;
  readonly #output: Output;
  readonly #mode: PermissionMode;
  readonly #asking = new Map<string, AbortController>();
  #queue: Promise<void> = Promise.resolve();

  constructor(engine: Engine, output: Output, mode: PermissionMode) {
    this.#engine = engine;
    this.#output = output;
    this.#mode = mode;
  }

  see(event: PublicEvent): void {
    switch (event.kind) {
      case 'permission.asked':
        this.#asked(event.payload);
        break;
      case 'permission.answered':
        this.#output.note(`answered: ${event.payload.optionId}, by ${event.payload.by}`);
        this.#asking.get(event.payload.permissionId)?.abort();
        break;
      case 'permission.withdrawn':
        this.#output.note(`permission denied: ${event.payload.reason}`);
        this.#asking.get(event.payload.permissionId)?.abort();
        break;
    }
  }

  close(): void {
    for (const asking of this.#asking.values()) asking.abort();
  }

  #asked(question: PublicEventPayloads['permission.asked']): void {
    const { permissionId, title, options } = question;
    if (this.#mode === 'deny') this.#output.note(`permission asked: ${title}`);
    else if (atTerminal(this.#output)) this.#askHere(question);
    else {
      const known = `${optionList(options)}, or allow, deny`;
      this.#output.ask(
        `Waiting for an answer: ${title}. Answer with "throughline answer ${permissionId} OPTION": ${known}.`,
      );
    }
  }

  #askHere(question: PublicEventPayloads['permission.asked']): void {
    const asking = new AbortController();
    this.#asking.set(question.permissionId, asking);
    this.#queue = this.#queue.then(() => this.#ask(question, asking.signal)).catch((error) => this.#couldNot(error));
  }

  async #ask(question: PublicEventPayloads['permission.asked'], signal: AbortSignal): Promise<void> {
    const optionId = await askPermission(question, { output: this.#output, input: process.stdin, signal });
    process.stdin.pause();
    if (optionId !== null && !signal.aborted) await this.#engine.answer(question.permissionId, optionId);
  }

  /** `conflict`: somebody else answered first, and the event of that answer says so. */
  #couldNot(error: unknown): void {
    if (error instanceof ThroughlineError && error.code === 'conflict') return;
    this.#output.note(`Cannot give the answer: ${error instanceof Error ? error.message : error}`);
  }
}
