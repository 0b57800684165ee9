import { isObject } from '../../../core/turn/content.ts';
import type { ToolCallFields, Update } from '../../../core/turn/update.ts';
import { addUsage, NO_USAGE, type Usage } from '../../../core/turn/usage.ts';
import { changedDiffs } from './diffs.ts';
import { blocksOf, type Entry, type EntryBlock, type EntryMessage, isMessage } from './entries.ts';

/** The model in answers that Claude itself has written: errors of the API, "No response requested." */
export const SYNTHETIC_MODEL = '<synthetic>';

/**
 * What the agent did, as updates. Prompts, subagents, and Claude's own notes are left out. A tool without a result stays open, because
 * its outcome is not known.
 */
export function updatesOf(entries: Iterable<Entry>): Update[] {
  const updates: Update[] = [];
  for (const entry of entries) {
    if (entry.isSidechain === true) continue;
    if (entry.type === 'assistant' && isOfModel(entry)) updates.push(...assistantUpdates(entry.message));
    if (entry.type === 'user') updates.push(...resultUpdates(entry.message, entry.toolUseResult));
    if (entry.subtype === 'compact_boundary') updates.push(compactionUpdate(entry.compactMetadata));
    const title = entry.type === 'ai-title' ? entry.aiTitle : entry.type === 'custom-title' ? entry.customTitle : null;
    if (typeof title === 'string') updates.push({ sessionUpdate: 'session_info_update', title });
  }
  return updates;
}

/** Claude has replaced everything before by a summary. */
export function compactionUpdate(metadata: unknown): Update {
  return { sessionUpdate: 'compaction_update', status: 'completed', metadata: metadata ?? null };
}

/** Whether the model wrote it, not Claude itself and not the API. */
function isOfModel({ message, isApiErrorMessage }: Entry): boolean {
  return isApiErrorMessage !== true && message?.model !== SYNTHETIC_MODEL;
}

const ENDS: readonly unknown[] = ['end_turn', 'stop_sequence'];

/**
 * Whether the turn of these entries came to its end: the last message is a final answer of the model, with a text, and every tool has its
 * result. Any other last message is no end: an error of the API, a notice of an interruption, the words of a hook.
 */
export function cameToItsEnd(entries: Iterable<Entry>): boolean {
  const messages = [...entries].filter(isMessage);
  const last = messages.at(-1);
  if (last?.type !== 'assistant' || !isOfModel(last) || !ENDS.includes(last.message?.stop_reason)) return false;
  // An answer has several entries, one for each of its blocks. Its thoughts may be written without the text after them.
  const answer = messages.filter(({ message }) => message?.id === last.message?.id);
  const hasText = answer.some(({ message }) => blocksOf(message).some((block) => block.type === 'text' && block.text));
  const open = new Set<unknown>();
  for (const block of messages.flatMap(({ message }) => blocksOf(message))) {
    if (block.type === 'tool_use') open.add(block.id);
    if (block.type === 'tool_result') open.delete(block.tool_use_id);
  }
  return hasText && open.size === 0;
}

/** What the model's answers used, as far as the entries show: they have no costs, and subagents have files of their own. */
export function usageIn(entries: Iterable<Entry>): Partial<Usage> {
  const calls = new Map<unknown, Partial<Usage>>();
  for (const entry of entries) {
    if (entry.type === 'assistant' && isOfModel(entry)) calls.set(entry.message?.id, tokensOf(entry.message ?? {}));
  }
  return { ...calls.values().reduce(addUsage, NO_USAGE), modelCalls: calls.size };
}

/** The tokens in a message's `usage`. */
export function tokensOf({ usage }: Readonly<Record<string, unknown>>): Partial<Usage> {
  if (!isObject(usage)) return {};
  return {
    inputTokens: count(usage.input_tokens),
    outputTokens: count(usage.output_tokens),
    cacheReadTokens: count(usage.cache_read_input_tokens),
    cacheWriteTokens: count(usage.cache_creation_input_tokens),
  };
}

export function count(value: unknown): number {
  return typeof value === 'number' && Number.isFinite(value) && value > 0 ? Math.round(value) : 0;
}

/** A whole message of the model: its text, its thoughts, and the tools that it calls. */
export function assistantUpdates(message: EntryMessage | undefined): Update[] {
  return blocksOf(message).flatMap((block) => blockUpdate(block) ?? []);
}

function blockUpdate(block: EntryBlock): Update | null {
  if (block.type === 'text') return chunk('agent_message_chunk', block.text);
  if (block.type === 'thinking') return chunk('agent_thought_chunk', block.thinking);
  if (block.type === 'tool_use' && typeof block.id === 'string') {
    const name = typeof block.name === 'string' ? block.name : 'tool';
    return { sessionUpdate: 'tool_call', ...toolCallFields(block.id, name, block.input), status: 'pending' };
  }
  return null;
}

function chunk(sessionUpdate: 'agent_message_chunk' | 'agent_thought_chunk', text: unknown): Update | null {
  return typeof text === 'string' && text !== '' ? { sessionUpdate, content: { type: 'text', text } } : null;
}

/**
 * The results of tools in a message of the role `user`. `result`: what Claude notes beside a message with one result. Of a change of a
 * file, it has the lines, and the message only says that it was made.
 */
export function resultUpdates(message: EntryMessage | undefined, result: unknown): Update[] {
  const blocks = blocksOf(message).filter(
    ({ type, tool_use_id: id }) => type === 'tool_result' && typeof id === 'string',
  );
  return blocks.map((block): Update => {
    const diffs = blocks.length === 1 && block.is_error !== true ? changedDiffs(result) : [];
    const text = diffs.length > 0 ? '' : resultText(block.content);
    const content = text === '' ? diffs : [{ type: 'content', content: { type: 'text', text } }];
    return {
      sessionUpdate: 'tool_call_update',
      toolCallId: block.tool_use_id as string,
      status: block.is_error === true ? 'failed' : 'completed',
      ...(content.length > 0 && { content }),
    };
  });
}
function resultText(content: unknown): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  return content
    .map((part) => (isObject(part) ? partText(part) : ''))
    .filter(Boolean)
    .join('\n');
}

function partText(part: Record<string, unknown>): string {
  if (typeof part.text === 'string') return part.text;
  return typeof part.type === 'string' ? `[${part.type}]` : '';
}

/** The kinds of tools in the Agent Client Protocol, and which tools of Claude are of each. */
const KINDS: Readonly<Record<string, readonly string[]>> = {
  read: ['Read', 'NotebookRead', 'LS'],
  edit: ['Edit', 'MultiEdit', 'Write', 'NotebookEdit'],
  execute: ['Bash', 'BashOutput', 'KillShell'],
  search: ['Glob', 'Grep', 'ToolSearch'],
  fetch: ['WebFetch', 'WebSearch'],
  think: ['Agent', 'Task', 'TodoWrite'],
  switch_mode: ['ExitPlanMode'],
};

function toolKind(name: string): string {
  return Object.entries(KINDS).find(([, tools]) => tools.includes(name))?.[0] ?? 'other';
}

const PATHS = ['file_path', 'notebook_path', 'path'];

/**
 * A call of one of Claude's tools. The title is the tool's name: records keep it, and a transcript that is made from records calls
 * the tool by it.
 */
export function toolCallFields(id: string, name: string, input: unknown): ToolCallFields {
  const path = isObject(input) ? PATHS.map((field) => input[field]).find((value) => typeof value === 'string') : null;
  return {
    toolCallId: id,
    title: name,
    kind: toolKind(name),
    ...(typeof path === 'string' ? { locations: [{ path }] } : {}),
    rawInput: input ?? {},
  };
}
