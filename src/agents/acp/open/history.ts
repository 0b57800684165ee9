import { ThroughlineError } from '../../../core/errors.ts';
import { HistoryBuilder, type SessionHistory } from '../../../core/restore/adopted.ts';
import { isObject } from '../../../core/turn/content.ts';
import { chunkText, type Update } from '../../../core/turn/update.ts';
import type { Clock } from '../../../ports/clock.ts';
import type { OpenSandbox } from '../../../ports/sandbox.ts';
import type { AgentProgram, Quirks } from '../known/description.ts';
import { withoutMark } from '../session/literal.ts';
import { openSession } from './open.ts';

/** Loads a session only to read the history that the agent repeats. Null: the agent does not load it, or repeats nothing. */
export async function readHistory(
  id: string,
  sandbox: OpenSandbox,
  signal: AbortSignal,
  program: AgentProgram,
  clock: Clock,
): Promise<SessionHistory | null> {
  const repeated: Update[] = [];
  const request = { how: { kind: 'resume', id }, sandbox, noTools: false, signal } as const;
  const opened = await openSession(request, program, (update) => repeated.push(update));
  if (!opened.ok) {
    if (opened.reason !== 'locked') return null;
    throw new ThroughlineError('session_locked', `The session "${id}" is locked: ${opened.message}.`, {
      hint: 'It has to be read before it is adopted. Try again when the other program has released it.',
    });
  }
  await opened.session.close();
  const history = turnsOf(repeated, opened.session.quirks, clock.now());
  return history.turns.length === 0 && !history.unknownBefore ? null : history;
}

/** The repeated history of a session, as turns. The agent does not report their times: all get `at`. */
export function turnsOf(repeated: readonly Update[], { ownWords }: Quirks, at: number): SessionHistory {
  const history = new HistoryBuilder();
  for (const message of messagesIn(repeated)) {
    const { who, updates } = message;
    const speaker =
      who === 'other' ? null : (ownWords?.(who, updates.map((update) => chunkText(update) ?? '').join('')) ?? null);
    if (speaker === 'summary' || (who === 'other' && updates.some(isSummary))) history.condensed();
    else if (speaker === 'note') history.stopped();
    else if (who === 'person') history.prompt(blocksOf(updates), at);
    else for (const update of updates) history.update(update, at);
  }
  return history.history(null);
}

interface Message {
  readonly who: 'person' | 'agent' | 'other';
  readonly updates: Update[];
}

/** Chunks of one message, which come one after another. Everything else stands alone. */
function messagesIn(repeated: readonly Update[]): Message[] {
  const messages: Message[] = [];
  for (const update of repeated) {
    const who = speakerOf(update);
    const last = messages.at(-1);
    const same = who !== 'other' && last?.who === who && idOf(last.updates[0]) === idOf(update);
    if (same) last?.updates.push(update);
    else messages.push({ who, updates: [update] });
  }
  return messages;
}

function speakerOf({ sessionUpdate }: Update): Message['who'] {
  if (sessionUpdate === 'user_message_chunk') return 'person';
  return sessionUpdate === 'agent_message_chunk' ? 'agent' : 'other';
}

function idOf(update: Update | undefined): unknown {
  return (update as { messageId?: unknown } | undefined)?.messageId;
}

function isSummary(update: Update): boolean {
  const { sessionUpdate } = update;
  if (sessionUpdate === 'compaction_update') return (update as { status?: unknown }).status === 'completed';
  return sessionUpdate === 'compaction_summary_chunk';
}

/** The blocks of a prompt. A text comes in one piece or in many. */
function blocksOf(updates: readonly Update[]): unknown[] {
  const blocks: unknown[] = [];
  for (const update of updates) {
    const text = chunkText(update);
    const last = blocks.at(-1);
    if (text !== null && isObject(last) && last.type === 'text') last.text = `${last.text}${text}`;
    else blocks.push(text === null ? (update as { content?: unknown }).content : { type: 'text', text });
  }
  // The session may have been one of ours, with a mark before its prompts.
  for (const block of blocks)
    if (isObject(block) && typeof block.text === 'string') block.text = withoutMark(block.text);
  return blocks;
}
