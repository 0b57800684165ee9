import type { ContextUse } from '../restore/session.ts';
import { isObject } from './content.ts';

/**
 * What an agent does during a turn, as Agent Client Protocol `session/update` values: one vocabulary for every adapter.
 * Only the kinds that our records are made of have types; every other kind is stored and passed on unchanged.
 *
 * @example
 * for await (const event of chat.send('Hello').events) {
 *   if (event.kind === 'turn.update') console.log(event.payload.update.sessionUpdate);
 * }
 */
export type Update =
  | { readonly sessionUpdate: 'user_message_chunk'; readonly content: UpdateContent }
  | { readonly sessionUpdate: 'agent_message_chunk'; readonly content: UpdateContent; readonly messageId?: string }
  | { readonly sessionUpdate: 'agent_thought_chunk'; readonly content: UpdateContent; readonly messageId?: string }
  | ({ readonly sessionUpdate: 'tool_call' } & ToolCallFields)
  | ({ readonly sessionUpdate: 'tool_call_update' } & ToolCallFields)
  | { readonly sessionUpdate: 'session_info_update'; readonly title?: string | null }
  | { readonly sessionUpdate: OtherUpdate; readonly [field: string]: unknown };

/** Kinds that records do not read: plans, modes, commands, notices, and whatever a later protocol adds. */
export type OtherUpdate =
  | 'plan'
  | 'available_commands_update'
  | 'current_mode_update'
  | 'config_option_update'
  | 'usage_update'
  | 'notice'
  | 'compaction_update'
  | 'compaction_summary_chunk'
  | `_${string}`;

/**
 * Our own kind, `{ messageId }`: retracts what was streamed under that id; null: all text and thoughts since the last tool, for an
 * agent that gives no ids. The agent's stream broke off, and it sends the text again, under another id if it gives any. With
 * `characters`: only so many at the beginning of the message (UTF-16 code units), for an agent that continues under the same id.
 */
export const RETRACTED = '_throughline/retracted';

/**
 * Our own kind, with the tokens of a `Usage`: what the turn has used so far, from agents that report it during a turn. The end of
 * the turn has the final figures.
 */
export const SPENT = '_throughline/spent';

/** The version of the protocol that the update values in our events follow. */
export const UPDATE_VERSION = 1;

export type UpdateContent = { readonly type: string; readonly text?: string };

export type ToolStatus = 'pending' | 'in_progress' | 'completed' | 'failed';

export interface ToolCallFields {
  readonly toolCallId: string;
  readonly title?: string | null;
  readonly kind?: string | null;
  readonly status?: ToolStatus | null;
  readonly locations?: readonly { readonly path: string }[] | null;
  readonly rawInput?: unknown;
  readonly rawOutput?: unknown;
  readonly content?: readonly unknown[] | null;
}

/** The text of a message chunk; null: the update is not a chunk of text. */
export function chunkText(update: Update): string | null {
  if (!('content' in update)) return null;
  const content = update.content as UpdateContent | undefined;
  return content?.type === 'text' && typeof content.text === 'string' ? content.text : null;
}

/**
 * What a tool has printed since the last update of it; null: the update does not report it. Agents that run commands themselves send
 * this in `_meta`, in pieces: a convention beside the protocol. The end of a terminal that printed nothing counts as an empty text.
 */
export function printedText(update: Update | ToolCallFields): string | null {
  const { _meta: meta } = update as { readonly _meta?: unknown };
  if (!isObject(meta)) return null;
  const printed = meta.terminal_output_delta ?? meta.terminal_output;
  if (isObject(printed) && typeof printed.data === 'string') return printed.data;
  return isObject(meta.terminal_exit) ? '' : null;
}

/** How full the context of the session is; null: the update does not report it. */
export function contextUse(update: Update): ContextUse | null {
  if (update.sessionUpdate !== 'usage_update') return null;
  const { used, size } = update as Readonly<Record<string, unknown>>;
  const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;
  return isCount(used) && isCount(size) && size > 0 ? { used, size } : null;
}

const TOKENS = ['inputTokens', 'outputTokens', 'cacheReadTokens', 'cacheWriteTokens'] as const;

/** How many tokens, of every kind together, the turn has used so far; null: the update does not report it. */
export function tokensSpent(update: Update): number | null {
  if (update.sessionUpdate !== SPENT) return null;
  const counts = TOKENS.map((kind) => (update as Readonly<Record<string, unknown>>)[kind]);
  return counts.reduce<number>((sum, count) => sum + (typeof count === 'number' ? count : 0), 0);
}

// ── an API that does not answer ────────────────────────────────────────────────────────────────────────────────────────────

/** Our own kind of update, with a `ModelRetry`: the API of the agent's model did not answer, and the agent will ask it again. */
const MODEL_RETRY = '_throughline/model_retry';

/** What an agent reports of such a retry. Null: it does not report that. */
export interface ModelRetry {
  /** The number of the retry, and how many the agent makes at most. */
  readonly attempt: number | null;
  readonly of: number | null;
  /** When it asks again. */
  readonly inMs: number | null;
  /** The HTTP status of the answer; null also where there was no answer at all. */
  readonly status: number | null;
  /** In the agent's words. */
  readonly reason: string | null;
}

export function retryUpdate({ attempt, of, inMs, status, reason }: ModelRetry): Update {
  return { sessionUpdate: MODEL_RETRY, attempt, of, inMs, status, reason };
}

/** Null: the update does not report a retry. */
export function modelRetryIn(update: Update): ModelRetry | null {
  return update.sessionUpdate === MODEL_RETRY ? (update as unknown as ModelRetry) : null;
}

/** Whether the API answers again: the update shows a part of its answer. */
export function showsAnswer({ sessionUpdate }: Update): boolean {
  return ANSWER.includes(sessionUpdate);
}

const ANSWER: readonly string[] = [
  'agent_message_chunk',
  'agent_thought_chunk',
  'tool_call',
  'tool_call_update',
  'plan',
];

/** For people: "The model’s API does not answer (529 overloaded, attempt 4 of 10, next in 35 s)". */
export function retryText({ attempt, of, inMs, status, reason }: ModelRetry): string {
  const why = [status, reason].filter((part) => part !== null && part !== '').join(' ');
  const which = attempt === null ? '' : `attempt ${attempt}${of === null ? '' : ` of ${of}`}`;
  const when = inMs === null ? '' : `next in ${Math.max(1, Math.round(inMs / 1000))} s`;
  const details = [why, which, when].filter((part) => part !== '').join(', ');
  return `The model’s API does not answer${details === '' ? '' : ` (${details})`}`;
}

/**
 * Whether the API refuses the login, so that asking again is of no use. The first refusal may be of a login that has expired: agents
 * renew it before their first retry.
 */
export function refusesLogin({ status, attempt }: ModelRetry): boolean {
  return (status === 401 || status === 403) && attempt !== 1;
}
