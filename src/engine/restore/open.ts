import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { condensedWhenOpened } from '../../core/restore/condensed.ts';
import type { Step } from '../../core/restore/continuity.ts';
import { afterLockWait, type LockWaits, nextLockWait } from '../../core/restore/lock-wait.ts';
import { NOTHING_OMITTED, type Proof } from '../../core/restore/receipt.ts';
import { WHEN_UNPROVED } from '../../core/restore/restore-settings.ts';
import { isUsable, type Session, type UnusableState } from '../../core/restore/session.ts';
import { PartsBuilder } from '../../core/turn/record.ts';
import type { Opened, OpenHow } from '../../ports/agent.ts';
import { starts } from '../starts.ts';
import { readableTail } from '../too-deep.ts';
import { notNew } from '../worker/held.ts';
import {
  inLineage,
  type OpenResult,
  type OpenSession,
  type RestoreRequest,
  type Restoring,
  type StepFailure,
} from './request.ts';
import { toldTo } from './told.ts';

/*
 * One function for each way to open a session: use the living process, resume the agent's own session, adopt a native session that the
 * caller named, open a new one. Each proves, as far as the agent allows, that the session is at the recorded position.
 * (rehydrate.ts first restores the agent's own file.)
 */

/** Uses the process that we hold, if its storage is at the recorded position. */
export async function openLive(step: Step, row: Session, request: RestoreRequest): Promise<OpenResult> {
  const { held, agent, traits } = request;
  const live = held.living(agent.name);
  if (live === null) return { failure: 'its process has ended' };
  const position = traits.position ? await live.session.position() : null;
  if (traits.position && position !== row.position) {
    const moved = await movedByAgent(row, position, request);
    if (moved === null) return movedByOthers(row, position);
    // What it did by itself is in its storage. Its process is ended, because it may do more that nobody asked for.
    await held.endLive(agent);
    return { failure: moved.how };
  }
  const proof = position !== null ? 'proved' : traits.position ? 'counted' : step.proof;
  if (isTooWeak(proof, request)) {
    return { failure: 'nothing shows that it has the context, or passes it to the next session', hint: WHEN_UNPROVED };
  }
  return { open: { ...inLineage(row), session: live.session }, proof };
}

/** The agent reopens its own session, if its storage is at the recorded position, or if only the agent itself moved it. */
export async function openResumed(recorded: Session, request: Restoring): Promise<OpenResult> {
  const { held, agent, traits } = request;
  let row = recorded;
  await held.endLive(agent);
  if (row.process) await held.parts.sandboxes.end(row.process);
  if (traits.position) {
    if (row.position === null) return { failure: 'its position was never recorded' };
    const position = await agent.position(row.id, await held.openSandbox());
    if (position === null) return unusable(row, 'lost', 'the agent no longer has it');
    if (position !== row.position) {
      const moved = await movedByAgent(row, position, request);
      if (moved === null) return movedByOthers(row, position);
      // It has more than the history: the lineage and the receipt record that.
      const condensedTo = moved.condensed ? row.watermark : row.condensedTo;
      const change = { state: 'unsettled', position, process: null, condensedTo } as const;
      await held.lease.write({ write: 'change-session', ref: row.ref, change, reason: moved.how });
      row = { ...row, ...change };
    }
  }
  const rewind = request.rewind?.ref === row.ref ? request.rewind : null;
  const told = () => toldTo(row, held);
  const opened = await openWithLockRetry({ kind: 'resume', id: row.id, memo: row.memo, rewind, told }, request);
  if ('failure' in opened) return opened;
  if (!opened.ok) return notResumed(row, opened);
  const position = rewind?.position ?? row.position;
  const proof = await proveOpened(opened, position, request);
  if (proof === 'refuted') {
    await opened.session.close();
    return unusable(row, 'lost', 'after opening, its position was not the recorded one');
  }
  if (isTooWeak(proof, request)) {
    await opened.session.close();
    return { failure: 'nothing proves that it still has the context', hint: WHEN_UNPROVED };
  }
  const condensedTo = await noteCondensed(row, condensedWhenOpened(row, opened.condensed), request);
  const same = { ...inLineage(row), condensedTo, position, session: opened.session, unsettled: row !== recorded };
  const moved = opened.session.id !== null && opened.session.id !== row.id;
  return { open: moved ? { ...same, ref: null, origin: 'rotated', parent: row.ref, mirrored: 0 } : same, proof };
}

/** Records in the lineage up to which turn the agent has only its own summary, if that has changed. */
export async function noteCondensed(
  known: Pick<OpenSession, 'ref' | 'condensedTo'>,
  condensedTo: number,
  { held }: RestoreRequest,
): Promise<number> {
  if (condensedTo !== known.condensedTo && known.ref !== null) {
    const reason =
      condensedTo === 0 ? 'its agent has all of it again' : `its agent has turns up to ${condensedTo} as a summary`;
    await held.lease.write({ write: 'change-session', ref: known.ref, change: { condensedTo }, reason });
  }
  return condensedTo;
}

function notResumed(row: Session, opened: Opened & { ok: false }): StepFailure {
  const { reason, message } = opened;
  if (reason === 'lacking') return unusable(row, 'lost', message);
  if (reason === 'diverged') return unusable(row, 'diverged', `somebody else has used it since: ${message}`);
  const failed = whyNotOpen(opened);
  return reason === 'not_found' ? unusable(row, 'lost', failed.failure) : failed;
}

/** The recorded state of a session that was told nothing of the conversation. */
export const KNOWS_NOTHING = { watermark: 0, dropped: 0, omitted: NOTHING_OMITTED, condensedTo: 0, mirrored: 0 };

/** Opens a native session that somebody else made. It enters the lineage when the prompt is sent. */
export async function openAdopted(id: string, request: Restoring): Promise<OpenResult> {
  const { held, agent, traits } = request;
  await held.endLive(agent);
  const position = traits.position ? await agent.position(id, await held.openSandbox()) : null;
  if (traits.position && position === null) return { failure: 'the agent has no such session here' };
  const opened = await openWithLockRetry({ kind: 'resume', id }, request);
  if (!isOpen(opened)) return whyNotOpen(opened);
  const { session } = opened;
  const proof = await proveOpened(opened, position, request);
  if (proof === 'refuted' || isTooWeak(proof, request)) {
    await session.close();
    return proof === 'refuted'
      ? { failure: 'after opening, its position was not the one in its storage' }
      : { failure: 'nothing proves which context it has', hint: WHEN_UNPROVED };
  }
  const parent = await previousSession(request);
  // Its own history could not be read: otherwise it would be in the lineage, and would be resumed.
  return { open: { session, ref: null, origin: 'adopted', parent, position, ...KNOWS_NOTHING, unread: true }, proof };
}

/** Opens a new session. An id that we assign is recorded before the agent gets it, and opens a session once (R1). */
export async function openNew(step: Step, request: Restoring): Promise<OpenResult> {
  const { held, agent, traits } = request;
  await held.endLive(agent);
  const parent = await previousSession(request);
  const noTools = step.deliver.what === 'prompts' && traits.noTools;
  const assigned = traits.id === 'assigned' ? await assign(parent, 'new', request) : null;
  if (assigned !== null && 'failure' in assigned) return assigned;
  const { id, ref } = assigned ?? { id: null, ref: null };
  const opened = await openAssigned(assigned, noTools, request);
  if (!isOpen(opened)) return neverOpened(ref, whyNotOpen(opened));
  const { session } = opened;
  if (id === null && session.id !== null && traits.position && (await held.hasUsed(agent, session.id))) {
    await session.close();
    return { failure: notNew(session.id) };
  }
  const open = { session, ref, origin: 'new', parent, ...KNOWS_NOTHING } as const;
  return { open: { ...open, position: await session.position() }, proof: step.proof };
}

/**
 * If an id that we made is in use, an earlier attempt has opened the session, and it is resumed (R1). An id that the caller chose may be
 * that of somebody else's session.
 */
async function openAssigned(assigned: Assigned | null, noTools: boolean, request: Restoring) {
  const id = assigned?.id ?? null;
  const opened = await openWithLockRetry({ kind: 'new', id }, request, noTools);
  if (id === null || 'failure' in opened || opened.ok || opened.reason !== 'in_use') return opened;
  if (id === request.newSession && !assigned?.again) return { failure: 'the agent already has a session with this id' };
  return openWithLockRetry({ kind: 'resume', id }, request, noTools);
}

// ── asking the agent ───────────────────────────────────────────────────────────────────────────────────────────────────

/** Opens a session. Waits for a locked one as long as the settings allow. */
export async function openWithLockRetry(
  how: OpenHow,
  restoring: Restoring,
  noTools = false,
): Promise<Opened | StepFailure> {
  const { held, agent, signal, turn, heard, choices = {} } = restoring;
  for (;;) {
    signal.throwIfAborted();
    const sandbox = await held.openSandbox();
    const opened = await starts.run(signal, agent.open.bind(agent, { how, sandbox, noTools, signal, choices }));
    if (opened.ok || opened.reason !== 'locked') return opened;
    const waitMs = nextLockWait(held.parts.settings.lock, restoring.lockWaits);
    if (waitMs === null) return stayedLocked(opened.message, restoring.lockWaits);
    const waits = afterLockWait(restoring.lockWaits, waitMs);
    restoring.lockWaits = waits;
    if (!(await delay(waitMs, true, { signal }).catch(() => false))) return stayedLocked(opened.message, waits);
    heard?.();
    const payload = { id: how.kind === 'resume' ? how.id : null, waits: waits.count, ms: waits.ms };
    await held.lease.write({ write: 'event', event: { kind: 'session.locked', turn: turn?.id ?? null, payload } });
  }
}

function stayedLocked(message: string, { count, ms }: LockWaits): StepFailure {
  return {
    failure: `locked: ${message}`,
    final: {
      code: 'session_locked',
      message: `The agent's session stayed locked through ${count} waits (${ms} ms): ${message}`,
      hint: 'Nothing was sent. Try again when the other program has released it, or raise "lock" in the settings.',
    },
  };
}

export function isOpen(opened: Opened | StepFailure): opened is Extract<Opened, { ok: true }> {
  return 'ok' in opened && opened.ok;
}

export function whyNotOpen(opened: Extract<Opened, { ok: false }> | StepFailure): StepFailure {
  if ('failure' in opened) return opened;
  const { message, hint } = opened;
  return { failure: `the agent refused: ${message}`, ...(hint !== undefined && { hint }) };
}

/** Whether the opened session is at the expected position. If positions cannot be read, the proof of the adapter counts. */
export async function proveOpened(
  opened: Opened & { ok: true },
  expected: string | null,
  request: RestoreRequest,
): Promise<Proof> {
  if (!request.traits.position || expected === null) return opened.proof;
  return (await opened.session.position()) === expected ? 'proved' : 'refuted';
}

/** A step without proof is used only with the policy "auto". */
export function isTooWeak(proof: Proof, { settings }: RestoreRequest): boolean {
  return proof === 'none' && settings.policy !== 'auto';
}

// ── the lineage ────────────────────────────────────────────────────────────────────────────────────────────────────────

/** The step failed, and its session must not be used again. */
function unusable({ ref }: Session, state: UnusableState, failure: string): StepFailure {
  return { failure, aside: { ref, state } };
}

/** The failure of a step whose new session could not be opened. `ref`: of the id that we had assigned to it; null: none. */
export function neverOpened(ref: string | null, failure: StepFailure): StepFailure {
  return ref === null ? failure : { ...failure, aside: { ref, state: 'lost' } };
}

/** Somebody else used the session: it is never used again, and never merged (R10). */
function movedByOthers(row: Session, found: string | null): StepFailure {
  if (found === null) return unusable(row, 'lost', 'the agent no longer has it');
  return unusable(row, 'diverged', 'somebody else has used it since: its position is not the recorded one');
}

/** What the agent did by itself since its last turn; null: somebody else may have used the session. */
async function movedByAgent(
  row: Session,
  position: string | null,
  { held, agent }: RestoreRequest,
): Promise<{ readonly how: string; readonly condensed: boolean } | null> {
  if (position === null || row.position === null) return null;
  const sent = { prompt: null, position: row.position };
  const tail = await readableTail(agent, row.id, sent, await held.openSandbox());
  if (tail === null || tail.position !== position) return null;
  const parts = new PartsBuilder();
  for (const update of tail.updates) parts.add(update);
  const tools = parts.parts().flatMap((part) => (part.type === 'tool' ? [part.name] : []));
  const ran = tools.length === 0 ? 'no tool ran' : `these tools ran: ${tools.join(', ')}`;
  return { how: `it continued after its last turn without a prompt; ${ran}`, condensed: parts.condensed !== null };
}

/** The session that a new one follows in the lineage: the last of the conversation, of any agent. */
export async function previousSession({ held }: RestoreRequest): Promise<string | null> {
  const { owner, id } = held.conversation;
  const [newest] = await held.parts.store.sessions(owner, id, { limit: 1 });
  return newest?.ref ?? null;
}

/** The id that a new session is given, and our reference to it. `again`: an earlier attempt of the turn has recorded it. */
interface Assigned {
  readonly id: string;
  readonly ref: string;
  readonly again: boolean;
}

/** Chooses the id of a new session, and records it before the agent gets it (R1). */
export async function assign(
  parent: string | null,
  origin: 'new' | 'rehydrated',
  { held, agent, newSession }: RestoreRequest,
): Promise<Assigned | StepFailure> {
  const id = newSession ?? randomUUID();
  if (newSession !== null) {
    const { owner, id: conversation } = held.conversation;
    const known = (await held.parts.store.findSessions(owner, id)).find((one) => one.conversation === conversation);
    if (known !== undefined && isUsable(known)) return { id, ref: known.ref, again: true };
    if (known !== undefined) return { failure: 'an earlier step has used its id' };
  }
  const ref = randomUUID();
  const unused = { watermark: 0, dropped: 0, state: 'dormant', position: null, process: null } as const;
  const session = { ref, id, agent: agent.name, storage: await held.storage(agent), parent, origin, ...unused };
  await held.lease.write({ write: 'open-session', session, turn: null });
  return { id, ref, again: false };
}
