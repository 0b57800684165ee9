// What every store decides about sessions, and about the questions that they ask.

import { asSentence, ThroughlineError } from '../../core/errors.ts';
import type { PermissionOption } from '../../core/turn/permission.ts';
import { addUsage, type Usage } from '../../core/turn/usage.ts';
import type { SessionChange } from '../../ports/store/sessions.ts';
import type { PermissionRow, SessionRow } from './rows.ts';

export interface SessionName {
  readonly no: number;
  readonly id: string;
  readonly agent: string;
  readonly usage: string;
}

export function sessionOpened(): ThroughlineError {
  return new ThroughlineError('conflict', 'The session was already opened.');
}

export function noSession(): ThroughlineError {
  return new ThroughlineError('not_found', 'There is no such session in this conversation.');
}

/** A usable session with this id exists already, in another conversation or in this one (R1). */
export function sessionTaken(id: string, cause: unknown): ThroughlineError {
  return new ThroughlineError('conflict', `The session "${id}" is in use elsewhere.`, { cause });
}

/** A turn is answered by the agent that it was accepted for. */
export function checkAgent(session: Pick<SessionName, 'agent'>, agent: string): void {
  if (session.agent === agent) return;
  throw new ThroughlineError('conflict', `The session belongs to the agent "${session.agent}", not to "${agent}".`);
}

export function addedUsage(session: Pick<SessionName, 'usage'>, usage: Usage): string {
  return JSON.stringify(addUsage(usage, JSON.parse(session.usage)));
}

/** The columns of a session after a change. The file of a mirror grows at its end, so each turn adds one piece. */
export function changedSession(session: SessionRow, change: SessionChange) {
  const { mirror } = change;
  if (mirror !== undefined && mirror.from !== session.mirrored && mirror.from !== 0) {
    throw new ThroughlineError(
      'invalid',
      `The mirror has ${session.mirrored} bytes; the next piece cannot begin at ${mirror.from}.`,
    );
  }
  return {
    state: change.state ?? session.state,
    watermark: change.watermark ?? session.watermark,
    dropped: change.dropped ?? session.dropped,
    omitted: change.omitted === undefined ? session.omitted : JSON.stringify(change.omitted),
    condensedTo: change.condensedTo ?? session.condensedTo,
    position: change.position === undefined ? session.position : change.position,
    process: change.process === undefined ? session.process : change.process && JSON.stringify(change.process),
    memo: change.memo === undefined ? session.memo : change.memo,
    mirrored: mirror === undefined ? session.mirrored : mirror.from + mirror.bytes.byteLength,
  };
}

// ── questions ──

export function permissionTaken(): ThroughlineError {
  return new ThroughlineError('conflict', 'A permission with this id exists already.');
}

/** The first answer wins, and it is one of the options. */
export function checkAnswer(row: Pick<PermissionRow, 'state' | 'reason' | 'options'>, optionId: string): void {
  if (row.state !== 'open') {
    const what =
      row.state === 'answered' ? 'was already answered' : `was ${row.state}: ${row.reason ?? 'its turn ended'}`;
    throw new ThroughlineError('conflict', asSentence(`The permission ${what}`));
  }
  const options: PermissionOption[] = JSON.parse(row.options);
  if (options.some((option) => option.optionId === optionId)) return;
  throw new ThroughlineError('invalid', `There is no option "${optionId}".`, {
    hint: `Options: ${options.map((option) => option.optionId).join(', ')}.`,
  });
}

/** The holder of the lease reads the answer as an event; without a holder it is refused. */
export function nobodyWaits(): ThroughlineError {
  return new ThroughlineError('conflict', 'Nobody waits for the answer: the process that ran the turn has ended.', {
    hint: 'The next prompt, or "throughline serve", ends the turn as interrupted; "throughline retry" then sends the prompt again.',
  });
}
