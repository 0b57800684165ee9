import { hasCode } from '../../../core/errors.ts';
import type { Engine } from '../../../ports/engine.ts';
import type { Key } from './input/keys.ts';
import { type Span, span } from './text/cells.ts';
import type { Transcript } from './transcript.ts';
import { firstChoice, optionFor } from './view.ts';

/** What answering needs of the chat. */
interface Asked {
  readonly transcript: Transcript;
  readonly engine: Engine;
  say(line: readonly Span[]): void;
  hint(text: string): void;
  failed(error: unknown): void;
}

/** The questions of agents. Keys or a slash command answer the first one. */
export class Questions {
  readonly #asked: Asked;
  #selected: { readonly id: string; readonly index: number | null } | null = null;

  constructor(asked: Asked) {
    this.#asked = asked;
  }

  /** The option that Enter chooses; null: none. */
  get choice(): number | null {
    const [question] = this.#asked.transcript.questions;
    if (question === undefined) return null;
    return this.#selected?.id === question.permissionId ? this.#selected.index : firstChoice(question);
  }

  /** True: the key was used for the question. */
  onKey(key: Key): boolean {
    const [question] = this.#asked.transcript.questions;
    if (question === undefined) return false;
    const { permissionId: id, options } = question;
    if (key.name === 'text' && /^[1-9]$/.test(key.text) && Number(key.text) <= options.length) {
      this.#selected = { id, index: Number(key.text) - 1 };
      return true;
    }
    if (key.name === 'left' || key.name === 'right') {
      const step = key.name === 'left' ? options.length - 1 : 1;
      this.#selected = { id, index: ((this.choice ?? -1) + step + options.length) % options.length };
      return true;
    }
    if (key.name !== 'enter') return false;
    const chosen = this.choice === null ? undefined : options[this.choice];
    if (chosen === undefined) this.#asked.hint('Choose an answer by its number first.');
    else this.#answer(id, chosen.optionId);
    return true;
  }

  answerBy(word: 'allow' | 'deny'): void {
    const [question] = this.#asked.transcript.questions;
    const optionId = question === undefined ? null : optionFor(word, question);
    if (question === undefined) this.#asked.say([span('No question is open.', 'dim')]);
    else if (optionId === null)
      this.#asked.say([span('The question has no such answer. Choose one by its number.', 'yellow')]);
    else this.#answer(question.permissionId, optionId);
  }

  #answer(permissionId: string, optionId: string): void {
    const { transcript, engine } = this.#asked;
    transcript.answersHere(permissionId);
    engine.answer(permissionId, optionId, { from: 'command_line' }).catch((error) => {
      this.#asked.transcript.answeredElsewhere(permissionId);
      // Somebody else was first; the event says who.
      if (!hasCode(error, 'conflict')) this.#asked.failed(error);
    });
  }
}
