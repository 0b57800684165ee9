import { createHash } from 'node:crypto';
import { isObject } from '../../core/content.ts';
import type { RepeatedMessage } from '../../core/told.ts';

/** How Claude begins the message that stands for everything it has compacted. */
const CLAUDE_SUMMARY = 'This session is being continued from a previous conversation';
const BLOCK = /<conversation-record ([0-9a-f]+)>[\s\S]*?<\/conversation-record \1>/g;

interface Open {
  who: 'person' | 'agent' | 'summary';
  texts: string[];
  messageId: unknown;
}

/** Gathers the history that an agent repeats while it loads a session. */
export class RepeatedHistory {
  readonly #messages: Open[] = [];
  /** What comes next belongs to no message before it. */
  #closed = true;

  add(update: Readonly<Record<string, unknown>>): void {
    switch (update.sessionUpdate) {
      case 'user_message_chunk':
        this.#chunk('person', update);
        break;
      case 'agent_message_chunk':
        this.#chunk('agent', update);
        break;
      case 'compaction_update':
      case 'compaction_summary_chunk':
        this.#chunk('summary', update);
        break;
      case 'tool_call':
      case 'agent_thought_chunk':
        this.#closed = true;
    }
  }

  get empty(): boolean {
    return this.#messages.length === 0;
  }

  messages(): RepeatedMessage[] {
    return this.#messages.map(({ who, texts }) => {
      const text = texts.join('');
      const blocks = who === 'person' ? [...text.matchAll(BLOCK)].map(([block]) => hashOf(block)) : [];
      return { who: text.startsWith(CLAUDE_SUMMARY) ? 'summary' : who, text, blocks };
    });
  }

  #chunk(who: Open['who'], { content, messageId }: Readonly<Record<string, unknown>>): void {
    const last = this.#messages.at(-1);
    const same = !this.#closed && last?.who === who && last.messageId === messageId;
    this.#closed = false;
    if (same) last?.texts.push(textOf(content));
    else this.#messages.push({ who, texts: [textOf(content)], messageId });
  }
}

function textOf(content: unknown): string {
  if (!isObject(content)) return '';
  if (typeof content.text === 'string') return content.text;
  const { resource } = content;
  return isObject(resource) && typeof resource.text === 'string' ? resource.text : '';
}

function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
