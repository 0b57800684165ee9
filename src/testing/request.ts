import { isObject } from '../core/turn/content.ts';

/* A request to the stand-in model, in the same form for all APIs. */

/**
 * One of the APIs that the stand-in has.
 *
 * @example
 * import type { ModelRequest } from 'throughline/testing';
 *
 * const isClaude = ({ api }: ModelRequest) => api === 'anthropic';
 */
export type ApiName = 'anthropic' | 'openai-responses' | 'openai-chat' | 'gemini';

export type Json = Record<string, unknown>;

/**
 * A call of a tool, as a request has it.
 *
 * @example
 * import type { ToolUse } from 'throughline/testing';
 *
 * const show = (use: ToolUse) => JSON.stringify(use);
 */
export interface ToolUse {
  readonly id: string;
  readonly name: string;
  readonly input: unknown;
}

/**
 * The result of a tool, as a request has it.
 *
 * @example
 * import type { ToolResult } from 'throughline/testing';
 *
 * const show = (result: ToolResult) => JSON.stringify(result);
 */
export interface ToolResult {
  /** The id of the tool use that it answers. */
  readonly id: string;
  readonly text: string;
  readonly isError: boolean;
}

/**
 * A message of a request, as its API had it.
 *
 * @example
 * import type { ModelRequest } from 'throughline/testing';
 *
 * const roles = ({ messages }: ModelRequest) => messages.map(({ role }) => role);
 */
export interface ModelMessage {
  /** Claude also sends instructions in the middle of the conversation: those have the role `system`. */
  readonly role: 'user' | 'assistant' | 'system';
  /** The text blocks, one by one: agents put reminders, records and the person's own words into one message. */
  readonly texts: readonly string[];
  /** All text blocks, joined by newlines. */
  readonly text: string;
  readonly toolUses: readonly ToolUse[];
  readonly toolResults: readonly ToolResult[];
}

/**
 * What an answer cost, as the stand-in counts it.
 *
 * @example
 * import type { Model } from 'throughline/testing';
 *
 * const served = (model: Model) => JSON.stringify(model.served);
 */
export interface ModelUsage {
  readonly inputTokens: number;
  readonly outputTokens: number;
}

/**
 * An answer of the stand-in. A failure has its status and message. An answer that broke off has the whole text that was planned.
 *
 * @example
 * import type { ModelRequest } from 'throughline/testing';
 *
 * const answered = ({ answer }: ModelRequest) => JSON.stringify(answer);
 */
export interface ModelAnswer {
  readonly status: number;
  readonly text: string;
  readonly toolUses: readonly ToolUse[];
  /** Null: it failed or broke off, or the caller disconnected; nothing is counted. */
  readonly usage: ModelUsage | null;
  readonly broken: boolean;
}

/** The part of a request that is read from its body. */
export interface RequestBody {
  readonly model: string;
  /** All instructions: the system prompt, and messages with the role system or developer. */
  readonly system: string;
  /** In the order of the body. */
  readonly messages: readonly ModelMessage[];
  readonly tools: readonly string[];
  readonly stream: boolean;
  /** The schema that the answer has to follow; null: none. */
  readonly schema: Json | null;
}

/**
 * A request that the stand-in was sent, and its answer.
 *
 * @example
 * import type { Model, ModelRequest } from 'throughline/testing';
 *
 * const byPeople = (model: Model): ModelRequest[] => model.requests.filter(({ side }) => !side);
 */
export interface ModelRequest extends RequestBody {
  /** 1, 2, 3… in the order of arrival. */
  readonly n: number;
  /** Milliseconds since 1970. */
  readonly at: number;
  /** With its query. */
  readonly path: string;
  readonly api: ApiName;
  /** Whether it is a side call of the agent (for a title, a topic, a probe), and not part of the conversation. */
  readonly side: boolean;
  /** The body as it was sent. */
  readonly raw: Json;
  /** Null: not answered yet. */
  readonly answer: ModelAnswer | null;
}

/** A message of these text blocks and tools. */
export function message(
  role: ModelMessage['role'],
  texts: readonly string[],
  toolUses: readonly ToolUse[] = [],
  toolResults: readonly ToolResult[] = [],
): ModelMessage {
  return { role, texts, text: texts.join('\n'), toolUses, toolResults };
}

/** The objects of a list. Anything else is skipped: a stand-in does not check its requests. */
export function objects(value: unknown): Json[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}

export function str(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
