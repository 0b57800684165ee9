import { RequestError } from '@agentclientprotocol/sdk';
import type { AgentOutcome, Opened } from '../../../ports/agent.ts';
import { asObject } from './capabilities.ts';
import { AgentGone } from './connection.ts';

/*
 * What agents mean by their errors. The protocol has a code for "no such session" (-32002), and agents that use others:
 * -32602 (pi), -32603 (gemini, opencode, codex-acp of 2.6.0). So the words count as well.
 */
const NOT_FOUND = -32002;
const AUTH_REQUIRED = -32000;

const SAYS_NOT_FOUND =
  /not found|no (?:such |conversation|rollout|session)|does(?: not|n't) (?:exist|match any)|(?:unknown|invalid) (?:session|uuid)|not a uuid|unable to (?:find|load)/i;
const SAYS_LOCKED = /\block(?:ed)?\b|already (?:open|active|running|loaded|in use)|in use by|another process|busy/i;
const SAYS_TOO_LONG =
  /context[ _-]?(?:window|length)|too long|too large|maximum context|token limit|exceeds? the .*tokens/i;

/** The agent answers, and cannot do what the settings ask of it. */
export class Unfit extends Error {}

/** Codes that agents have used for a session which they do not have; any other one is something else. */
const MAY_BE_NOT_FOUND = [NOT_FOUND, -32602, -32603, -32000, 404];

export function refusalOf(error: unknown): Extract<Opened, { ok: false }> {
  const message = wordsOf(error);
  if (!(error instanceof RequestError)) return { ok: false, reason: 'refused', message };
  if (error.code === NOT_FOUND) return { ok: false, reason: 'not_found', message };
  if (SAYS_LOCKED.test(message)) return { ok: false, reason: 'locked', message };
  const notFound = MAY_BE_NOT_FOUND.includes(error.code) && SAYS_NOT_FOUND.test(message);
  return { ok: false, reason: notFound ? 'not_found' : 'refused', message };
}

/** goose has no login: somebody has to tell it which model it is to use, and with which key. */
const SAYS_NOT_SET_UP = /failed to resolve provider|no provider (?:is )?(?:set|configured)/i;

/** Whether somebody has to log in, or to set it up, before it opens any session. */
export function isAuthRequired(error: unknown): boolean {
  if (!(error instanceof RequestError)) return false;
  if (SAYS_NOT_SET_UP.test(wordsOf(error))) return true;
  if (SAYS_NOT_FOUND.test(wordsOf(error))) return false;
  return (
    error.code === AUTH_REQUIRED ||
    /\b(?:authenticat|unauthori[sz]ed|not logged in|log ?in required)/i.test(error.message)
  );
}

/**
 * How a prompt ended that was answered with an error. It is not sent again by us: agents ask their model again themselves, and
 * what they gave up on stays in their session, where a second time would be said twice.
 */
export function failureOf(error: unknown): AgentOutcome {
  const message = wordsOf(error);
  if (error instanceof AgentGone) return { kind: 'lost', message };
  const failed = (code: Extract<AgentOutcome, { kind: 'failed' }>['code'], again = false) =>
    ({ kind: 'failed', code, message, again }) as const;
  if (SAYS_TOO_LONG.test(message)) return failed('too_long');
  if (error instanceof RequestError && SAYS_LOCKED.test(message)) return failed('session_locked', true);
  return failed('agent_failed');
}

const LONGEST = 1_000;

/** All that the agent said about it, on one line. */
export function wordsOf(error: unknown): string {
  const said = error instanceof Error ? error.message : String(error);
  const more = error instanceof RequestError ? detailsOf(error.data) : '';
  const words = more === '' || said.includes(more) ? said : `${said}: ${more}`;
  return words.replace(/\s+/g, ' ').trim().slice(0, LONGEST);
}

function detailsOf(data: unknown): string {
  if (data === undefined || data === null) return '';
  if (typeof data === 'string') return data;
  const { message, details, error, codex_error_info: kind } = asObject(data);
  const texts = [message, details, error, kind].filter((value) => typeof value === 'string');
  return texts.length > 0 ? texts.join(' ') : JSON.stringify(data);
}
