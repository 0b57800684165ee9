import { randomUUID } from 'node:crypto';
import type { Failure } from '../../core/errors.ts';
import { ofCompleted, withUnknownCost } from '../../core/limits/budget.ts';
import { aside, type Session } from '../../core/restore/session.ts';
import { type Prompt, parsePrompt } from '../../core/turn/content.ts';
import type { TurnRecord } from '../../core/turn/record.ts';
import type { Sent, Turn, TurnEnd } from '../../core/turn/turn.ts';
import { addUsage, NO_USAGE, type Usage } from '../../core/turn/usage.ts';
import type { SessionChange } from '../../ports/store/sessions.ts';
import type { Write } from '../../ports/store/writes.ts';

/** How a tracked request ended, as its program reports it. */
export interface Outcome {
  readonly outcome: TurnEnd;
  readonly failure: Failure | null;
  readonly prompt?: Prompt;
  readonly reply?: string;
  readonly usage?: Partial<Usage>;
}

/**
 * Records that a request was sent. Its program sends it, so it may have reached the agent as soon as it is tracked (R6). This is
 * written when the id of the session is known, or else at the end. `known`: the conversation has used the session before.
 */
export function sendWrites(turn: Turn, session: string | null, known: boolean, at: number): Write[] {
  if (turn.sent !== null) return [];
  const rung = known || turn.options.session !== undefined ? 'resume' : 'new';
  const sent: Sent = {
    attempt: turn.attempt,
    prompt: null,
    session,
    position: null,
    rung,
    delivered: null,
    process: null,
    at,
  };
  return [{ write: 'send', turn: turn.id, sent }];
}

/**
 * The writes that give a turn the session `id`. The session before it has no process any more. If the conversation returns to an
 * earlier session (`known`, but not the `newest`), that is a new entry of the lineage, and the old entry is closed.
 */
export function openSessionWrites(
  turn: Turn,
  id: string,
  agent: string,
  { newest, known }: { newest: Session | null; known: Session | null },
): { ref: string; writes: Write[] } {
  if (newest?.id === id) {
    const { ref } = newest;
    const reason = 'its program continues in it';
    return { ref, writes: [{ write: 'change-session', ref, change: { state: 'live' }, reason }] };
  }
  const ref = randomUUID();
  const origin = newest === null ? 'new' : 'rotated';
  const parent = newest?.ref ?? null;
  const told = { watermark: 0, dropped: 0, position: null, process: null };
  const open: Write = {
    write: 'open-session',
    session: { ref, id, agent, origin, parent, ...told, state: 'live' },
    turn: turn.id,
  };
  const left: Write[] = [];
  if (newest?.state === 'live') {
    const reason = `the agent continued as ${id}`;
    left.push({ write: 'change-session', ref: newest.ref, change: aside('dormant'), reason });
  }
  if (known !== null) {
    left.push({ write: 'change-session', ref: known.ref, change: aside('closed'), reason: 'used again later' });
  }
  return { ref, writes: [...left, open] };
}

/** Its program ended before it could report what the request has cost. */
function cutOff({ outcome, usage }: Outcome): boolean {
  return outcome === 'interrupted' && usage === undefined;
}

/** The prompt of a record is never empty, even if its program does not report it. */
const NOT_RECORDED = parsePrompt('[not recorded]');

/** The end of a tracked turn. Only a completed one moves its session's watermark. */
export function endWrites(turn: Turn, session: Session | null, done: Outcome, now: number): Write[] {
  const { outcome, failure, reply, prompt = turn.prompt } = done;
  const reported = addUsage(NO_USAGE, done.usage ?? {});
  const usage = outcome === 'completed' ? ofCompleted(reported) : cutOff(done) ? withUnknownCost(reported) : reported;
  const record: TurnRecord = {
    version: 1,
    n: turn.n,
    agent: turn.agent,
    sessionId: turn.sessionId,
    outcome,
    prompt: prompt.length === 0 ? NOT_RECORDED : prompt,
    parts: reply === undefined || reply === '' ? [] : [{ type: 'text', text: reply.toWellFormed() }],
    failure,
    usage,
    startedAt: turn.startedAt ?? turn.createdAt,
    endedAt: now,
  };
  const writes: Write[] = [];
  if (session) {
    const change: SessionChange =
      outcome === 'completed' ? { state: 'dormant', watermark: turn.n } : { state: 'unsettled' };
    writes.push({ write: 'change-session', ref: session.ref, change, reason: null });
  }
  const end = { outcome, failure, record, session: session?.ref ?? null, usage };
  return [...sendWrites(turn, null, false, now), ...writes, { write: 'end', turn: turn.id, end }];
}

/** The end of a request that could not be tracked and is not sent: it is not part of the history. */
export function refusedWrites(turn: Turn): Write[] {
  const failure = { code: 'refused', message: 'The request could not be tracked. Nothing was sent.' } as const;
  const end = { outcome: 'failed', failure, record: null, session: null, usage: NO_USAGE } as const;
  return [{ write: 'end', turn: turn.id, end }];
}
