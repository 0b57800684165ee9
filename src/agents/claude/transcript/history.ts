import { HistoryBuilder, type SessionHistory } from '../../../core/restore/adopted.ts';
import { isObject } from '../../../core/turn/content.ts';
import type { Update } from '../../../core/turn/update.ts';
import { isWhole } from './chain.ts';
import { blocksOf, type Entry, type EntryBlock } from './entries.ts';
import type { Transcript } from './file.ts';
import { isNotice, isPrompt } from './position.ts';
import { TranscriptReader } from './reader.ts';
import { assistantUpdates, resultUpdates, SYNTHETIC_MODEL } from './updates.ts';

/**
 * What was said in a session, as turns. Reads the file twice, because the chain is followed from its end, and a long file does not fit
 * into memory. Null: there is no such file, or it is damaged; then Claude is not asked to open it either.
 */
export async function historyOf(file: Transcript): Promise<SessionHistory | null> {
  const chain = new ChainMembers();
  const reader = new TranscriptReader(file);
  for await (const entries of reader.read()) for (const entry of entries) chain.add(entry);
  const { leaf } = reader.chain;
  if (leaf === null || !isWhole(reader.chain)) return null;
  chain.endsWith(leaf);
  const history = new HistoryBuilder();
  for await (const entries of new TranscriptReader(file).read()) {
    for (const entry of entries) if (chain.has(entry)) addEntry(history, entry);
  }
  return history.history(reader.position);
}

interface Member {
  readonly parent: string | null;
  /** The model's message that it is a part of; null: none. */
  readonly message: string | null;
}

/**
 * The entries that belong to the conversation: those from the leaf to the beginning. Entries from before a compaction are still in the
 * file, and belong to it as well. Tools that were called at once fork the chain, and belong to the message that called them.
 */
class ChainMembers {
  readonly #members = new Map<string, Member>();
  readonly #chain = new Set<string>();
  readonly #messages = new Set<string>();

  add({ uuid, parentUuid, logicalParentUuid, message, type, isSidechain }: Entry): void {
    if (typeof uuid !== 'string' || isSidechain === true) return;
    const parent = parentUuid ?? logicalParentUuid ?? null;
    this.#members.set(uuid, { parent, message: type === 'assistant' ? (message?.id ?? null) : null });
  }

  endsWith(leaf: string): void {
    for (let at: string | null = leaf; at !== null && !this.#chain.has(at); ) {
      const member = this.#members.get(at);
      if (member === undefined) return;
      this.#chain.add(at);
      if (member.message !== null) this.#messages.add(member.message);
      at = member.parent;
    }
  }

  has(entry: Entry): boolean {
    const { uuid, parentUuid, message, type } = entry;
    if (typeof uuid !== 'string') return false;
    if (this.#chain.has(uuid)) return true;
    if (type === 'assistant') return message?.id !== undefined && this.#messages.has(message.id);
    // The result of a tool that was called beside the others.
    const caller = typeof parentUuid === 'string' ? this.#members.get(parentUuid)?.message : null;
    return type === 'user' && typeof caller === 'string' && this.#messages.has(caller) && !isPrompt(entry);
  }
}

/** How Claude records a command that it ran itself (`/model`, `/cost`), and what the command printed. */
const COMMAND = /^<command-(?:name|message)>/;
const COMMAND_NAME = /<command-name>\s*([^<]*?)\s*<\/command-name>/;
const COMMAND_ARGS = /<command-args>([^<]*)<\/command-args>/;
const PRINTED = /^<local-command-std(?:out|err)>([\s\S]*?)<\/local-command-std(?:out|err)>$/;

function addEntry(history: HistoryBuilder, entry: Entry): void {
  const at = Date.parse(entry.timestamp ?? '') || 0;
  const printed = entry.type === 'user' ? PRINTED.exec(textOf(entry)) : null;
  if (entry.subtype === 'compact_boundary') history.condensed();
  else if (isApiError(entry) || isNotice(entry)) history.stopped();
  else if (printed !== null) {
    const content = { type: 'text', text: printed[1] ?? '' };
    history.update({ sessionUpdate: 'agent_message_chunk', content }, at);
  } else {
    // Claude's own prompt (a background task has ended) belongs to the turn before.
    const asked = entry.type === 'user' && entry.promptSource !== 'system' && isPrompt(entry);
    if (asked) history.prompt(promptOf(entry), at);
    for (const update of whatWasDone(entry)) history.update(update, at);
  }
}

function isApiError({ isApiErrorMessage, message }: Entry): boolean {
  return isApiErrorMessage === true && message?.model === SYNTHETIC_MODEL;
}

/** Answers that were made from records have the same model (`synthesise`), so Claude's own are recognised by their text. */
function whatWasDone(entry: Entry): Update[] {
  if (entry.type === 'user') return resultUpdates(entry.message, entry.toolUseResult);
  const own = entry.message?.model === SYNTHETIC_MODEL && textOf(entry) === 'No response requested.';
  return entry.type === 'assistant' && !own ? assistantUpdates(entry.message) : [];
}

function textOf({ message }: Entry): string {
  const blocks = blocksOf(message);
  return blocks
    .map(({ text }) => (typeof text === 'string' ? text : ''))
    .join('\n')
    .trim();
}

/** The blocks of a prompt as we would have sent them. */
function promptOf(entry: Entry): readonly unknown[] {
  const text = textOf(entry);
  if (COMMAND.test(text)) {
    const [name, args] = [COMMAND_NAME, COMMAND_ARGS].map((pattern) => pattern.exec(text)?.[1]?.trim() ?? '');
    return [{ type: 'text', text: `${name} ${args}`.trim() }];
  }
  return blocksOf(entry.message).flatMap((block) => blockOf(block) ?? []);
}

function blockOf(block: EntryBlock): unknown {
  if (block.type === 'text') return { type: 'text', text: block.text };
  const { source } = block;
  if (block.type === 'image' && isObject(source)) {
    return { type: 'image', data: source.data, mimeType: source.media_type };
  }
  return block.type === 'tool_result' ? null : { type: 'text', text: `[${block.type}]` };
}
