import { RequestError } from '@agentclientprotocol/sdk';
import type { ContentBlock, Prompt } from '../../../core/turn/content.ts';
import type { AgentOutcome } from '../../../ports/agent.ts';
import { type Refusal, refused } from '../../shared/flight.ts';
import { asObject } from '../../shared/json.ts';
import type { Quirks } from '../known/description.ts';
import type { Capabilities } from './capabilities.ts';
import { AgentGone } from './connection.ts';

/*
 * What the answers of agents mean. The protocol has a code for "no such session" (-32002), but half of the agents use another one.
 * So the words of an error count as well.
 */
const NOT_FOUND = -32002;
const AUTH_REQUIRED = -32000;
/** Codes that agents use for a session that they do not have. */
const MAY_BE_NOT_FOUND = [NOT_FOUND, -32602, -32603, -32000, 404];

const SAYS_NOT_FOUND =
  /not found|no (?:such |conversation|session|\w+ found (?:for|with) .*\bid\b)|does(?: not|n't) (?:exist|match any)|(?:unknown|invalid) (?:session|uuid)|not a uuid|unable to (?:find|load)/i;
const SAYS_LOCKED = /\block(?:ed)?\b|already (?:open|active|running|loaded|in use)|in use by|another process|busy/i;
const SAYS_TOO_LONG =
  /context[ _-]?(?:window|length)|too long|too large|maximum context|token limit|exceeds? the (?:maximum length|.*tokens)/i;
const SAYS_LOGGED_OUT = /\b(?:authenticat|unauthori[sz]ed|not logged in|log ?in required)/i;

/** The agent answers, but cannot do what the settings ask for. `hint`: which setting that is; left out: it is none of ours. */
export class Unsuitable extends Error {
  readonly hint: string | undefined;

  constructor(message: string, hint?: string) {
    super(message);
    this.hint = hint;
  }
}

/** Why a session was not opened. */
export function refusalOf(error: unknown): Refusal {
  const message = wordsOf(error);
  if (!(error instanceof RequestError)) {
    return refused('refused', message, error instanceof Unsuitable ? error.hint : undefined);
  }
  if (error.code === NOT_FOUND) return refused('not_found', message);
  if (SAYS_LOCKED.test(message)) return refused('locked', message);
  const notFound = MAY_BE_NOT_FOUND.includes(error.code) && SAYS_NOT_FOUND.test(message);
  return refused(notFound ? 'not_found' : 'refused', message);
}

/** Whether a person has to log in, or to set the agent up, before it opens any session. */
export function isAuthRequired(error: unknown, { saysNotSetUp }: Quirks): boolean {
  if (!(error instanceof RequestError)) return false;
  const words = wordsOf(error);
  if (saysNotSetUp?.test(words)) return true;
  if (SAYS_NOT_FOUND.test(words)) return false;
  return error.code === AUTH_REQUIRED || SAYS_LOGGED_OUT.test(error.message);
}

/** How a prompt ended that the agent has answered. `stopped`: we asked the agent to stop before that. */
export function outcomeOf(stopReason: unknown, stopped: boolean): AgentOutcome {
  if (stopReason === 'cancelled' || (stopReason === 'end_turn' && stopped)) return { kind: 'cancelled' };
  if (stopReason === 'end_turn') return { kind: 'completed' };
  const message = STOPPED.get(stopReason) ?? `the agent stopped: ${JSON.stringify(stopReason) ?? 'it gave no reason'}`;
  return { kind: 'failed', code: 'agent_failed', message, again: false };
}

const STOPPED: ReadonlyMap<unknown, string> = new Map([
  ['max_tokens', 'the answer was cut off: the model reached its limit of tokens for one turn'],
  ['max_turn_requests', 'the agent stopped: it reached its limit of model requests for one turn'],
  ['refusal', 'the agent refused to answer'],
]);

/**
 * How a prompt ended that was answered with an error. We do not send it again: agents repeat requests to their model themselves, and a
 * prompt that failed stays in their session. Sent again, the session would contain it twice.
 */
export function failureOf(error: unknown): AgentOutcome {
  const message = wordsOf(error);
  if (error instanceof AgentGone) return { kind: 'lost', message };
  const failed = (code: Extract<AgentOutcome, { kind: 'failed' }>['code'], again = false) =>
    ({ kind: 'failed', code, message, again }) as const;
  // The kind of the error may be in a field of the agent's own.
  const data = error instanceof RequestError ? Object.values(asObject(error.data)) : [];
  if ([message, ...data].some((text) => typeof text === 'string' && SAYS_TOO_LONG.test(text)))
    return failed('too_long');
  if (error instanceof RequestError && SAYS_LOCKED.test(message)) return failed('session_locked', true);
  return failed('agent_failed');
}

/**
 * Why the agent cannot be sent this prompt; null: it can. Agents drop content that they do not support, or fail because of it.
 * Nothing of the prompt was sent.
 */
export function unsupported(prompt: Prompt, can: Capabilities): AgentOutcome | null {
  const kind = prompt.map(({ type }) => NEEDS_SUPPORT[type]?.(can) ?? null).find((name) => name !== null);
  if (kind === undefined) return null;
  return {
    kind: 'failed',
    code: 'agent_failed',
    message: `this agent does not support ${kind}; nothing was sent`,
    hint: 'Remove it from the prompt, send a link or a description instead, or use another agent.',
    again: false,
    unsent: true,
  };
}

/** Kinds of content that an agent must declare as supported, and their names for messages. */
const NEEDS_SUPPORT: Partial<Record<ContentBlock['type'], (can: Capabilities) => string | null>> = {
  image: ({ image }) => (image ? null : 'images'),
  audio: ({ audio }) => (audio ? null : 'audio'),
  resource: ({ embeddedContext }) => (embeddedContext ? null : 'embedded resources'),
};

const LONGEST = 1_000;

/** The message of an error, on one line. */
export function wordsOf(error: unknown): string {
  const said = error instanceof Error ? error.message : String(error);
  const more = error instanceof RequestError ? detailsOf(error.data) : '';
  const words = more === '' || said.includes(more) ? said : `${said}: ${more}`;
  return words.replace(/\s+/g, ' ').trim().slice(0, LONGEST);
}

function detailsOf(data: unknown): string {
  if (data === undefined || data === null) return '';
  if (typeof data === 'string') return data;
  const { message, details, error } = asObject(data);
  const texts = [message, details, error].filter((value) => typeof value === 'string');
  return texts.length > 0 ? texts.join(' ') : JSON.stringify(data);
}
