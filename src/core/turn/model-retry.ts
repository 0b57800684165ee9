import type { Update } from './update.ts';

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
