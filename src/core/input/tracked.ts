import { ThroughlineError } from '../errors.ts';
import { type Prompt, parsePrompt } from '../turn/content.ts';
import { parseUsage, type Usage } from '../turn/usage.ts';
import { checkBoolean, checkOptions, given, type OptionNames, shown } from './arguments.ts';
import { checkName } from './names.ts';

/* Checks what the caller of a tracker gives, embedded or over HTTP, so that errors read the same. Each throws `invalid`. */

/** The arguments of `trackRequest`. A repeated request has the same. */
export interface AskedRequest {
  readonly requestId: string;
  readonly agentId: string | null;
  readonly sessionId: string | null;
  /** Empty: not given. */
  readonly prompt: Prompt;
  readonly current: boolean;
  readonly waitMs: number;
  readonly signal: AbortSignal | undefined;
}

interface RequestOptions {
  readonly prompt?: unknown;
  readonly current?: boolean | undefined;
  readonly waitMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

const REQUEST: OptionNames<RequestOptions> = { prompt: true, current: true, waitMs: true, signal: true };

export function parseRequest(
  requestId: string,
  agentId: string | null,
  sessionId: string | null,
  options: RequestOptions,
): AskedRequest {
  checkOptions(options, REQUEST, 'A request');
  checkId(requestId, 'request id');
  if (agentId !== null) checkId(agentId, 'agent id');
  if (sessionId !== null) checkId(sessionId, 'session id');
  const { current = false, waitMs = 0, signal } = options;
  checkBoolean(current, '"current"');
  if (current && sessionId !== null) {
    throw new ThroughlineError('invalid', '"current" and a session id cannot be used together.', {
      hint: 'Give null as the session id: the answer says which one it is.',
    });
  }
  if (typeof waitMs !== 'number' || !(waitMs >= 0)) {
    throw new ThroughlineError('invalid', `"waitMs" must be a number, 0 or more, not ${shown(waitMs)}.`);
  }
  const prompt = options.prompt === undefined ? [] : parsePrompt(options.prompt);
  return { requestId, agentId, sessionId, prompt, current, waitMs, signal };
}

/** An id of a request, an agent or a session. It must fit into the path of a URL. */
export function checkId(id: unknown, what: string): string {
  const name = checkName(id, what);
  if (name !== '.' && name !== '..') return name;
  throw new ThroughlineError('invalid', `The ${what} must not be "${name}".`, {
    hint: 'In the path of a URL it means another place.',
  });
}

export interface ReportedEnd {
  readonly prompt?: Prompt;
  readonly reply?: string;
  readonly usage?: Partial<Usage>;
  readonly reason?: string;
}

type EndOptions = { readonly [Field in keyof ReportedEnd]?: unknown };
const COMPLETED = { prompt: true, reply: true, usage: true } as const;

export function parseCompleted(done: EndOptions): ReportedEnd {
  return parseEnd(done, COMPLETED as OptionNames<EndOptions>, 'The end of a request');
}

export function parseFailed(done: EndOptions): ReportedEnd {
  return parseEnd(done, { ...COMPLETED, reason: true }, 'The failure of a request');
}

function parseEnd(done: EndOptions, known: OptionNames<EndOptions>, what: string): ReportedEnd {
  checkOptions(done, known, what);
  const { prompt, reply, usage, reason } = done;
  for (const [name, text] of Object.entries({ reply, reason })) {
    if (text !== undefined && typeof text !== 'string')
      throw new ThroughlineError('invalid', `A ${name} must be a text.`);
  }
  return given({
    reply: reply as string | undefined,
    reason: reason as string | undefined,
    usage: usage === undefined ? undefined : parseUsage(usage),
    prompt: prompt === undefined ? undefined : parsePrompt(prompt),
  });
}

export function notTracked(requestId: string): ThroughlineError {
  return new ThroughlineError('not_found', `The request "${requestId}" is not tracked.`, {
    hint: 'Call trackRequest first.',
  });
}

/** For a caller whose signal was aborted. */
export function stoppedWaiting({ reason }: AbortSignal): ThroughlineError {
  if (reason instanceof ThroughlineError) return reason;
  return new ThroughlineError('cancelled', 'The caller has stopped waiting for the lock.');
}
