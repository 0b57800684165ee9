import { isObject } from '../../../core/turn/content.ts';
import type { Usage } from '../../../core/turn/usage.ts';
import type { AgentOutcome } from '../../../ports/agent.ts';
import { asObject } from '../../shared/json.ts';
import type { ClaudeMessage } from '../connection.ts';
import { count, tokensOf } from '../transcript/updates.ts';

/** The prompts that a message is about; null: it names none. */
export function promptsOf(message: ClaudeMessage): readonly string[] | null {
  if (Array.isArray(message.user_message_uuids)) return message.user_message_uuids;
  if (typeof message.command_uuid === 'string') return [message.command_uuid];
  return typeof message.user_message_uuid === 'string' ? [message.user_message_uuid] : null;
}

/**
 * Decided by `is_error` and `terminal_reason`: errors of the API have the subtype `success`. `rewinds`: whether the failed prompt
 * can be dropped from the session. If not, the model would get it twice after a second try.
 */
export function outcomeOf(result: ClaudeMessage, rewinds: boolean): AgentOutcome {
  const reason = typeof result.terminal_reason === 'string' ? result.terminal_reason : '';
  if (reason.startsWith('aborted')) return { kind: 'cancelled' };
  if (result.is_error !== true) return { kind: 'completed' };
  const message = errorOf(result) || reason || 'Claude reported an error without a message';
  const code = isTooLong(reason, message) ? 'too_long' : 'agent_failed';
  if (NO_LOGIN.test(message)) return { kind: 'failed', code: 'signed_out', message, hint: LOG_IN, again: false };
  if (code === 'too_long') return { kind: 'failed', code, message, again: false };
  if (reason === 'max_turns') return { kind: 'failed', code, message, hint: MORE_ROUNDS, again: false };
  const again = rewinds && reason === 'api_error' && mayPassLater(result.api_error_status);
  return { kind: 'failed', code, message, again };
}

/** "Not logged in · Please run /login", "Failed to authenticate. API Error: 401 …" (2.1.325). */
const NO_LOGIN = /not logged in|failed to authenticate|invalid api key|please run \/login/i;
export const LOG_IN =
  '"throughline agents" says how to log in; or set ANTHROPIC_API_KEY in the "env" of the agent. ' +
  'With the option "home": "sandbox" only the key is used.';

/** A hook has stopped a prompt. `kept`: the prompt is in the session nevertheless. */
export interface Stopped {
  readonly reason: string;
  readonly kept: boolean;
}

/** The model has not seen the prompt, or was not asked to answer it. */
export function stoppedByHook({ reason, kept }: Stopped): AgentOutcome {
  const message = `A hook of Claude’s settings (UserPromptSubmit) stopped the prompt: ${reason}`;
  const failed = { kind: 'failed', code: 'agent_failed', message, again: false } as const;
  if (kept) return failed;
  return {
    ...failed,
    hint: 'The prompt is not part of the conversation. Change the prompt or the hook.',
    unsent: true,
  };
}

const MORE_ROUNDS =
  'The option "maxTurns" of the agent limits how often its model is asked in a turn. What was done is kept: send another prompt to ' +
  'continue, or raise it.';

/** Whether the same request may succeed later: not when the API has reported an invalid request or key. */
function mayPassLater(status: unknown): boolean {
  return typeof status !== 'number' || status === 408 || status === 409 || status === 429 || status >= 500;
}

function isTooLong(reason: string, message: string): boolean {
  return reason === 'prompt_too_long' || /prompt is too long|exceeds? the (?:model's )?context/i.test(message);
}

/** The error in Claude's words; empty: none. */
export function errorOf(result: ClaudeMessage): string {
  const errors = Array.isArray(result.errors) ? result.errors.filter((one) => typeof one === 'string') : [];
  return typeof result.result === 'string' && result.result !== '' ? result.result : errors.join('\n');
}

/**
 * The tokens that a result adds. Its own `usage` leaves out subagents and compactions (2.1.325), though it counts their cost. So
 * the usage of all models since the last result is used if Claude reports it.
 */
export function tokensAdded(result: ClaudeMessage): Partial<Usage> {
  const models = result.model_usage_since_last_result;
  const each = isObject(models) ? Object.values(models).filter(isObject) : [];
  if (each.length === 0 || !each.every(({ inputTokens }) => typeof inputTokens === 'number')) return tokensOf(result);
  const sum = (name: string) => each.reduce((total, model) => total + count(model[name]), 0);
  return {
    inputTokens: sum('inputTokens'),
    outputTokens: sum('outputTokens'),
    cacheReadTokens: sum('cacheReadInputTokens'),
    cacheWriteTokens: sum('cacheCreationInputTokens'),
  };
}

/**
 * The window of the model that answers, in tokens; its subagents may use other models. Null: Claude does not report it. For a model that it
 * has no price for, it only guesses (2.1.325), and the models behind a gateway often have less.
 */
export function windowIn({ modelUsage }: ClaudeMessage, model: string | null): number | null {
  if (!isObject(modelUsage) || model === null || !Object.hasOwn(modelUsage, model)) return null;
  const { contextWindow, costBasis } = asObject(modelUsage[model]);
  return costBasis === 'unknown' ? null : count(contextWindow) || null;
}

const MICROS = 1_000_000;

/**
 * What a result adds to the cost, in millionths of a dollar, and the cost so far, in dollars. `total_cost_usd` is a running total. In
 * 2.1.325 it continues over the processes of a session; in 2.1.197 every process started it again. So the cost since the last result is
 * used if Claude reports it. Otherwise, a total that went down has started again.
 */
export function costOf(result: ClaudeMessage, before: number | null): { costMicros: number; soFar: number | null } {
  const total = result.total_cost_usd;
  if (typeof total !== 'number' || !Number.isFinite(total)) return { costMicros: 0, soFar: before };
  const base = before === null || total < before ? 0 : before;
  const added = costSince(result.model_usage_since_last_result) ?? total - base;
  return { costMicros: Math.max(0, Math.round(added * MICROS)), soFar: total };
}

/** Null: this version does not report it. */
function costSince(models: unknown): number | null {
  if (!isObject(models)) return null;
  const costs = Object.values(models).map((one) => (isObject(one) ? one.costUSD : null));
  return costs.every((cost) => typeof cost === 'number') ? costs.reduce((sum, cost) => sum + cost, 0) : null;
}
