import type { ModelRetry } from '../../core/turn/update.ts';
import { asObject } from './json.ts';

/** A retry as the Agent SDK reports it, in a message `api_retry`. */
export function sdkRetry(message: unknown): ModelRetry {
  const { attempt, max_retries, retry_delay_ms, error_status, error } = asObject(message);
  return {
    attempt: numberIn(attempt),
    of: numberIn(max_retries),
    inMs: numberIn(retry_delay_ms),
    status: numberIn(error_status),
    // Without an answer of the API, the SDK reports "unknown".
    reason: typeof error === 'string' && error !== 'unknown' ? error : null,
  };
}

export function numberIn(value: unknown): number | null {
  return typeof value === 'number' && Number.isFinite(value) ? value : null;
}

/** The end of a turn whose agent would ask again although the API refuses its login. */
export function loginRefused({ status, reason }: ModelRetry, hint: string) {
  const why = [status, reason].filter((part) => part !== null).join(' ');
  return { code: 'signed_out', message: `The model’s API refused the login (${why})`, hint } as const;
}
