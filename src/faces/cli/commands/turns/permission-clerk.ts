import { hasCode } from '../../../../core/errors.ts';
import { warningOf } from '../../../../core/input/warning.ts';
import type { PublicEvent, PublicEventPayloads } from '../../../../core/public/event.ts';
import { type Denial, howToAllow } from '../../../../core/turn/permission.ts';
import type { PermissionMode } from '../../../../core/turn/turn.ts';
import type { Engine } from '../../../../ports/engine.ts';
import type { Handlers } from '../../events.ts';
import { handle } from '../../events.ts';
import type { Output } from '../../output.ts';
import { oneLine } from '../../terminal-text.ts';
import { askPermission, atTerminal, optionList, questionText } from './answers.ts';

/**
 * Shows an agent's questions to the person at this terminal, one at a time. Without a terminal, it says how to answer them with
 * `throughline answer`. An answer from anywhere ends the question here.
 */
export class PermissionClerk {
  readonly #engine: Engine;
  readonly #output: Output;
  readonly #mode: PermissionMode;
  readonly #asking = new Map<string, AbortController>();
  readonly #titles = new Map<string, string>();
  /** Questions that nobody answered. */
  readonly denied: Denial[] = [];
  #queue: Promise<void> = Promise.resolve();

  constructor(engine: Engine, output: Output, mode: PermissionMode) {
    this.#engine = engine;
    this.#output = output;
    this.#mode = mode;
  }

  see(event: PublicEvent): void {
    handle(this.#handlers, event);
  }

  readonly #handlers: Handlers = {
    'permission.asked': ({ payload }) => this.#asked(payload),
    'permission.answered': ({ payload: { permissionId, optionId, by } }) => {
      this.#output.note(`answered: ${optionId}, by ${by}`);
      this.#asking.get(permissionId)?.abort();
    },
    'permission.denied': ({ payload }) => this.#denied(payload),
    'permission.withdrawn': ({ payload: { permissionId, reason } }) => {
      this.#output.note(`question withdrawn: ${reason}`);
      this.#asking.get(permissionId)?.abort();
    },
  };

  #denied({ permissionId, reason }: PublicEventPayloads['permission.denied']): void {
    this.denied.push({ permissionId, title: this.#titles.get(permissionId) ?? '', reason });
    this.#output.note(`permission denied: ${reason}. ${howToAllow(reason)}`);
    this.#asking.get(permissionId)?.abort();
  }

  close(): void {
    for (const asking of this.#asking.values()) asking.abort();
  }

  #asked(question: PublicEventPayloads['permission.asked']): void {
    const { permissionId, title, options } = question;
    this.#titles.set(permissionId, title);
    if (this.#mode === 'deny') this.#output.note(`permission asked: ${questionText(title)}`);
    else if (atTerminal(this.#output)) this.#askHere(question);
    else {
      const known = `${oneLine(optionList(options), 'code')}, or allow, deny`;
      const warning = warningOf([title]);
      if (warning !== null) this.#output.ask(warning);
      this.#output.ask(
        `Waiting for an answer: ${questionText(title)}. Answer with "throughline answer ${permissionId} OPTION": ${known}.`,
      );
    }
  }

  #askHere(question: PublicEventPayloads['permission.asked']): void {
    const asking = new AbortController();
    this.#asking.set(question.permissionId, asking);
    this.#queue = this.#queue
      .then(() => this.#ask(question, asking.signal))
      .catch((error) => this.#answerFailed(error));
  }

  async #ask(question: PublicEventPayloads['permission.asked'], signal: AbortSignal): Promise<void> {
    const optionId = await askPermission(question, { output: this.#output, input: process.stdin, signal });
    process.stdin.pause();
    if (optionId !== null && !signal.aborted)
      await this.#engine.answer(question.permissionId, optionId, { from: 'command_line' });
  }

  /** `conflict`: somebody else answered first, and the event of that answer says so. */
  #answerFailed(error: unknown): void {
    if (hasCode(error, 'conflict')) return;
    this.#output.note(`The answer was not accepted: ${error instanceof Error ? error.message : error}`);
  }
}
