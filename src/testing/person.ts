import { DIRECTIVE_LINE } from './directives.ts';
import type { ModelMessage, ModelRequest, RequestBody } from './request.ts';

/**
 * What the person said, apart from what agents and Throughline put around it. Only the person gives directives: those in a
 * conversation record have been followed long ago, and those in a tool's result were never the person's.
 */

const RECORD = /<conversation-record ([^>\s]*)>[\s\S]*?(?:<\/conversation-record \1>|$)/g;
/** Stands where a record was; no agent and no person writes it. */
const SEAM = '\uE000';

/** Removed whole, after the records: those may hold anything, also the closing tags of these. */
const AROUND = [
  /<(system-reminder|context|environment_context|user_instructions|INSTRUCTIONS)\b[^>]*>[\s\S]*?<\/\1>/g,
  /<(session_context|current_datetime|turn-context)\b[^>]*>[\s\S]*?<\/\1>/g,
  /^# AGENTS\.md instructions for .*$/gm,
  /^\[Request interrupted by user[^\]]*\]$/gm,
  // What is left of goose's frame around an embedded record.
  new RegExp(`^--- Resource: \\S+ ---\\s+(?=${SEAM}\\s+---$)`, 'gm'),
  new RegExp(`(?<=^${SEAM}\\s+)---$`, 'gm'),
];

/**
 * What comes after the last record, if there is one: whatever stands before it was said earlier, and the agent has joined it
 * to this prompt because it had not been answered.
 */
function ownWords(text: string): string {
  const left = AROUND.reduce((soFar, around) => soFar.replaceAll(around, ''), text.replaceAll(RECORD, SEAM));
  const said = left.split(SEAM).map((words) => words.trim());
  return said.findLast((words) => words !== '') ?? '';
}

/**
 * The last thing that the person said, and how many tools have answered since. A text block is one saying: agents join unanswered
 * prompts into one message.
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
 * Who said what, in order: user and assistant, without an agent's reminders and without what only tools said. A conversation
 * record stays where it is: it is a part of what the model was told.
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
 * Only a block that is nothing but a reminder, and what agents put at its very ends (Copilot before, goose after it): inside of
 * a record or a question the words belong to it.
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
 * Every `codeword is X` of user, assistant and tools, in order, once each. Never from instructions, and not from directives:
 * what a prompt has the model say or a tool print is seen only when the answer or the result arrives.
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
