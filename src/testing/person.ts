import { DIRECTIVE_LINE } from './directives.ts';
import type { ModelMessage, ModelRequest, RequestBody } from './request.ts';

/*
 * What the person said, without what agents and Throughline put around it. Only directives of the person count: those in a conversation
 * record were followed before, and those in the result of a tool are not the person's.
 */

const RECORD = /<conversation-record ([^>\s]*)>[\s\S]*?(?:<\/conversation-record \1>|$)/g;
/** Marks where a record was; no agent and no person writes it. */
const SEAM = '\uE000';

/** What agents add. Removed after the records, which may contain anything, also the closing tags of these. */
const ADDED_BY_AGENTS = [
  /<(system-reminder|context|environment_context|user_instructions|INSTRUCTIONS)\b[^>]*>[\s\S]*?<\/\1>/g,
  /<(session_context|current_datetime|turn-context)\b[^>]*>[\s\S]*?<\/\1>/g,
  /^# AGENTS\.md instructions for .*$/gm,
  /^\[Request interrupted by user[^\]]*\]$/gm,
  // The frame that goose puts around an embedded record.
  new RegExp(`^--- Resource: \\S+ ---\\s+(?=${SEAM}\\s+---$)`, 'gm'),
  new RegExp(`(?<=^${SEAM}\\s+)---$`, 'gm'),
];

/**
 * The text after the last record, if there is one. Text before it was said earlier: it had no answer, so the agent has joined it to this
 * prompt.
 */
function ownWords(text: string): string {
  const left = ADDED_BY_AGENTS.reduce((soFar, added) => soFar.replaceAll(added, ''), text.replaceAll(RECORD, SEAM));
  const said = left.split(SEAM).map((words) => words.trim());
  return said.findLast((words) => words !== '') ?? '';
}

/**
 * The person's last prompt, and how many tool results have come since. Each text block is one prompt: agents join unanswered prompts into
 * one message.
 */
export function lastOfPerson({ messages }: Pick<RequestBody, 'messages'>): { text: string; results: number } {
  let results = 0;
  for (const { role, texts, toolResults } of messages.toReversed()) {
    if (role !== 'user') continue;
    const text = texts.map(ownWords).findLast((words) => words !== '');
    if (text !== undefined) return { text, results };
    results += toolResults.length;
  }
  return { text: '', results };
}

/**
 * The messages of user and assistant, in order, without an agent's reminders and without results of tools. A conversation record stays:
 * it is part of what the model was told.
 *
 * @example
 * import { conversationOf, type ModelRequest } from 'throughline/testing';
 *
 * const said = (request: ModelRequest) => conversationOf(request).map(({ role, text }) => `${role}: ${text}`);
 */
export function conversationOf(
  request: Pick<ModelRequest, 'messages'>,
): { readonly role: 'user' | 'assistant'; readonly text: string }[] {
  return request.messages.flatMap(({ role, texts }) => {
    if (role === 'system') return [];
    const text = texts.map((block) => (role === 'user' ? withoutReminders(block) : block).trim()).filter(Boolean);
    return text.length > 0 ? [{ role, text: text.join('\n') }] : [];
  });
}

/**
 * Removes a block that is only a reminder, and what agents put at the ends of a block (Copilot before it, goose after it). The same words
 * inside of a record or a question are part of that.
 */
function withoutReminders(block: string): string {
  if (/^\s*<(system-reminder|environment_context|user_instructions|session_context)\b[\s\S]*<\/\1>\s*$/.test(block))
    return '';
  return block
    .replace(/^\s*<current_datetime>[^<]*<\/current_datetime>/, '')
    .replace(/<turn-context>(?:(?!<turn-context>)[\s\S])*<\/turn-context>\s*$/, '');
}

const CODEWORD = /\bcodeword(?: is|:)\s+([A-Za-z0-9][\w-]*)/gi;

/**
 * Every `codeword is X` of user, assistant and tools, in order, once each. Instructions and directives do not count: a codeword that a
 * directive lets the model say or a tool print counts when the answer or the result arrives.
 *
 * @example
 * import { codewordsIn, type ModelRequest } from 'throughline/testing';
 *
 * const knows = (request: ModelRequest, word: string) => codewordsIn(request).includes(word);
 */
export function codewordsIn(request: Pick<ModelRequest, 'messages'>): string[] {
  const words = request.messages.flatMap((said) => (said.role === 'system' ? [] : codewordsOf(said)));
  return [...new Set(words)];
}

function codewordsOf({ role, texts, toolResults }: ModelMessage): string[] {
  const said = role === 'user' ? texts.map((text) => text.replaceAll(DIRECTIVE_LINE, '')) : texts;
  const all = [...toolResults.map((result) => result.text), ...said];
  return all.flatMap((text) => [...text.matchAll(CODEWORD)].flatMap(([, word]) => word ?? []));
}
