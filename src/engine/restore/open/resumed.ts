import type { Session } from '../../../core/session.ts';
import type { Opened } from '../../../ports/agent.ts';
import type { RestoreRequest } from '../restore.ts';
import { toldTo } from '../told.ts';
import { foreignHands, wentOnAlone } from './foreign-hands.ts';
import { drop, inLineage } from './lineage.ts';
import { openPatiently, proveOpened, tooWeak } from './patiently.ts';
import type { Result } from './step.ts';

/** The agent opens its own session again, once its storage is where we left it, or it was the agent alone that went on. */
export async function openResumed(recorded: Session, request: RestoreRequest): Promise<Result> {
  const { hold, agent, traits } = request;
  let row = recorded;
  await hold.letGo(agent);
  if (row.process) await hold.parts.processes.end(row.process);
  if (traits.position) {
    if (row.position === null) return { failure: 'where it stood was never recorded' };
    const position = await agent.position(row.id, await hold.openSandbox());
    if (position === null) return drop(row, 'lost', 'the agent no longer has it', request);
    if (position !== row.position) {
      const alone = await wentOnAlone(row, position, request);
      if (alone === null) return foreignHands(row, position, request);
      row = await markUnsettled(row, position, alone.did, request);
    }
  }
  const rewind = request.rewind?.ref === row.ref ? request.rewind : null;
  const told = () => toldTo(row, hold);
  const how = { kind: 'resume', id: row.id, memo: row.memo, rewind, told } as const;
  const opened = await openPatiently(how, false, request);
  if ('failure' in opened) return opened;
  if (!opened.ok) return notResumed(row, opened, request);
  const position = rewind?.position ?? row.position;
  const proof = await proveOpened(opened, position, request);
  if (proof === 'refuted') {
    await opened.session.close();
    return drop(row, 'lost', 'after opening, it was not where we left it', request);
  }
  if (tooWeak(proof, request)) {
    await opened.session.close();
    return { failure: 'nothing proves that it still has the context' };
  }
  const same = { ...inLineage(row), position, session: opened.session, unsettled: row !== recorded };
  const moved = opened.session.id !== null && opened.session.id !== row.id;
  return { open: moved ? { ...same, ref: null, origin: 'rotated', parent: row.ref, mirrored: 0 } : same, proof };
}

/** It knows more than the history does: nobody saw what it did. It says so in the lineage, and on the receipt. */
async function markUnsettled(
  row: Session,
  position: string,
  reason: string,
  { hold }: RestoreRequest,
): Promise<Session> {
  const change = { state: 'unsettled', position, process: null } as const;
  await hold.lease.write({ write: 'change-session', ref: row.ref, change, reason });
  return { ...row, ...change };
}

function notResumed(row: Session, { reason, message }: Opened & { ok: false }, request: RestoreRequest) {
  if (reason === 'lacking') return drop(row, 'lost', message, request);
  if (reason === 'diverged') return drop(row, 'diverged', `somebody else has used it since: ${message}`, request);
  const failure = `the agent refused: ${message}`;
  return reason === 'not_found' ? drop(row, 'lost', failure, request) : { failure };
}
