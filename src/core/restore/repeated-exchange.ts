import { UNSPACED_MARK } from '../turn/shorten.ts';

/** One message of the history that an agent repeats. */
export interface RepeatedMessage {
  /** `summary`: the agent's summary of everything before. `note`: a text that the agent wrote in the person's place. */
  readonly who: 'person' | 'agent' | 'summary' | 'note';
  readonly text: string;
  /** The hashes of the transcript blocks in it. */
  readonly blocks: readonly string[];
  /** The text without these blocks. */
  readonly beside: string;
  /** How many images and sounds are in it. */
  readonly media: number;
}

/** A message in the person's place and the answers to it. Texts are normalised only if they differ, because there may be many. */
export class Exchange {
  #message: RepeatedMessage;
  readonly #replies: string[] = [];
  #normalised: { readonly prompt: string; readonly reply: string } | null = null;

  constructor(message: RepeatedMessage) {
    this.#message = message;
  }

  /** Whether the next message is a part of this one: some agents repeat the images of a message separately. */
  isContinuedBy(next: RepeatedMessage): boolean {
    return !this.own && this.#replies.length === 0 && (isOnlyMedia(this.#message) || isOnlyMedia(next));
  }

  add(part: RepeatedMessage): void {
    const media = this.#message.media + part.media;
    this.#message = { ...(isOnlyMedia(part) ? this.#message : part), media };
  }

  answer(text: string): void {
    this.#replies.push(text);
  }

  get text(): string {
    return this.#message.text;
  }
  get beside(): string {
    return this.#message.beside;
  }
  get blocks(): readonly string[] {
    return this.#message.blocks;
  }
  get media(): number {
    return this.#message.media;
  }
  get summary(): boolean {
    return this.#message.who === 'summary';
  }
  /** The agent itself wrote it. */
  get own(): boolean {
    return this.#message.who !== 'person';
  }
  get isAnswered(): boolean {
    return this.#replies.some(hasWords);
  }

  /** Whether it contains all of the texts, in this order. */
  holds(texts: readonly string[]): boolean {
    return (texts.length === 1 && texts[0] === this.text) || inOrder(this.#plain.prompt, texts.map(unspaced));
  }

  contains(text: string): boolean {
    return this.#plain.prompt.includes(unspaced(text));
  }

  /** Whether it is a shortened form of the text, with our marks for what was left out. */
  isShortOf(text: string): boolean {
    const kept = this.#plain.prompt.split(UNSPACED_MARK);
    return kept.length > 1 && kept.every(hasWords) && inOrder(unspaced(text), kept);
  }

  /** An agent whose stream broke sends the beginning twice and keeps it once. An agent may also keep more than it sent. */
  replies(told: string): boolean {
    if (this.#replies.length === 1 && this.#replies[0] === told) return true;
    const [a, b] = [this.#plain.reply, unspaced(told)];
    return b === '' || a.includes(b) || (a !== '' && b.endsWith(a));
  }

  get #plain() {
    this.#normalised ??= { prompt: unspaced(this.text), reply: unspaced(this.#replies.join('')) };
    return this.#normalised;
  }
}

export function exchangesOf(repeated: readonly RepeatedMessage[]): Exchange[] {
  const exchanges: Exchange[] = [];
  for (const message of repeated) {
    const last = exchanges.at(-1);
    if (message.who === 'agent') last?.answer(message.text);
    else if (last && message.who === 'person' && last.isContinuedBy(message)) last.add(message);
    else exchanges.push(new Exchange(message));
  }
  return exchanges;
}

function isOnlyMedia({ text, media }: RepeatedMessage): boolean {
  return media > 0 && !hasWords(text);
}

function inOrder(whole: string, texts: readonly string[]): boolean {
  let from = 0;
  for (const text of texts) {
    const at = whole.indexOf(text, from);
    if (at === -1) return false;
    from = at + text.length;
  }
  return true;
}

export function hasWords(text: string): boolean {
  return /\S/.test(text);
}

export function unspaced(text: string): string {
  return text.replace(/\s+/g, '');
}
