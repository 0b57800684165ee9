import { hash } from 'node:crypto';
import type { RepeatedMessage } from '../../../core/restore/repeated-exchange.ts';
import { isObject } from '../../../core/turn/content.ts';
import type { Update } from '../../../core/turn/update.ts';
import { asObject } from '../../shared/json.ts';
import type { Quirks } from '../known/description.ts';
import { withoutMark } from '../session/literal.ts';

const BLOCK_BEGINS = /<conversation-record ([0-9a-f]+)>/g;
/** How many blocks are looked for in one message. We put one block before a prompt. */
const MOST_BLOCKS = 100;

interface Message {
  who: 'person' | 'agent' | 'summary';
  texts: string[];
  media: number;
  messageId: unknown;
}

const SPEAKERS: Readonly<Record<string, Message['who']>> = {
  user_message_chunk: 'person',
  agent_message_chunk: 'agent',
  compaction_summary_chunk: 'summary',
};

/** Gathers the history that an agent repeats while it loads a session. */
export class RepeatedHistory {
  readonly #messages: Message[] = [];
  readonly #ownWords: Quirks['ownWords'];
  /** How many updates were added. */
  updates = 0;
  /** The next chunk begins a new message. */
  #closed = true;

  constructor({ ownWords }: Quirks = {}) {
    this.#ownWords = ownWords;
  }

  add(update: Update): void {
    this.updates += 1;
    const { sessionUpdate: kind } = update;
    const isSummary = update.sessionUpdate === 'compaction_update' && update.status === 'completed';
    const who = isSummary ? 'summary' : SPEAKERS[kind];
    if (who !== undefined) this.#chunk(who, asObject(update));
    else if (kind === 'tool_call' || kind === 'agent_thought_chunk') this.#closed = true;
  }

  get empty(): boolean {
    return this.#messages.length === 0;
  }

  messages(): RepeatedMessage[] {
    return this.#messages.map(({ who, texts, media }) => {
      const text = withoutMark(texts.join(''));
      const blocks = who === 'person' ? [...blocksIn(text)] : [];
      const beside = blocks.reduce((rest, block) => rest.replace(block, () => ''), text);
      const speaker = who === 'summary' ? who : (this.#ownWords?.(who, text) ?? who);
      return { who: speaker, text, blocks: blocks.map((block) => hash('sha256', block)), beside, media };
    });
  }

  #chunk(who: Message['who'], { content, messageId }: Readonly<Record<string, unknown>>): void {
    const last = this.#messages.at(-1);
    const same = !this.#closed && last?.who === who && last.messageId === messageId;
    this.#closed = false;
    const media = isMedia(content) ? 1 : 0;
    if (same && last) {
      last.texts.push(textOf(content));
      last.media += media;
    } else this.#messages.push({ who, texts: [textOf(content)], media, messageId });
  }
}

function* blocksIn(text: string): Generator<string> {
  let [from, tries] = [0, 0];
  for (const { index, 0: mark, 1: nonce } of text.matchAll(BLOCK_BEGINS)) {
    if (index < from) continue;
    const closing = `</conversation-record ${nonce}>`;
    const at = text.indexOf(closing, index + mark.length);
    if (at !== -1) {
      from = at + closing.length;
      yield text.slice(index, from);
    }
    tries += 1;
    if (tries === MOST_BLOCKS) return;
  }
}

/** An image or a sound; some agents repeat it as a link to a file that they made. */
function isMedia(content: unknown): boolean {
  if (!isObject(content)) return false;
  if (content.type === 'image' || content.type === 'audio') return true;
  const file = isObject(content.resource) ? content.resource : content;
  return MEDIA_TYPE.test(String(file.mimeType ?? '')) || MEDIA_FILE.test(String(file.uri ?? ''));
}

const MEDIA_TYPE = /^(?:image|audio)\//;
const MEDIA_FILE = /\.(?:png|jpe?g|gif|webp|wav|mp3)$/i;

function textOf(content: unknown): string {
  if (!isObject(content)) return '';
  if (typeof content.text === 'string') return content.text;
  const { resource } = content;
  return isObject(resource) && typeof resource.text === 'string' ? resource.text : '';
}
