import type { Failure } from '../plan.ts';
import type { Json, ModelMessage } from '../request.ts';

/* What both APIs of OpenAI have in common. */

export function openaiError({ status, message, tooLong }: Failure): Json {
  const code = tooLong ? 'context_length_exceeded' : (CODES[status] ?? null);
  return { message, type: status < 500 ? 'invalid_request_error' : 'server_error', param: null, code };
}

const CODES: Record<number, string> = {
  429: 'rate_limit_exceeded',
  500: 'server_error',
  503: 'server_is_overloaded',
  529: 'server_is_overloaded',
};

export function roleOf(role: unknown): ModelMessage['role'] {
  if (role === 'assistant') return 'assistant';
  return role === 'system' || role === 'developer' ? 'system' : 'user';
}
