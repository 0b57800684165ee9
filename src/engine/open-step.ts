import { randomUUID } from 'node:crypto';
import type { Step } from '../core/continuity.ts';
import type { Proof } from '../core/receipt.ts';
import { PartsBuilder } from '../core/record.ts';
import { isUsable, type Session, type SessionState } from '../core/session.ts';
import type { Opened, OpenHow } from '../ports/agent.ts';
import { recordsWithin } from './deliver.ts';
import type { OpenSession, RestoreRequest, StepFailure } from './restore.ts';
import { toldTo } from './told.ts';
import { notNew, wasUsed } from './used-before.ts';

type Result = { readonly open: OpenSession; readonly proof: Proof } | StepFailure;

/** Opens the session of a step and proves, as far as the agent allows, that it stands where we left it. */
export function openStep(step: Step, request: RestoreRequest): Promise<Result> {
  switch (step.open.how) {
    case 'live':
      return openLive(step, step.open.session, request);
    case 'resume':
      return openResumed(step.open.session, request);
    case 'adopt':
      return openAdopted(step.open.id, request);
    case 'rehydrate':
      return openRehydrated(request);
    case 'new':
      return openNew(step, request);
  }
}

async function openLive(step: Step, row: Session, request: RestoreRequest): Promise<Result> {
  const { hold, agent, traits } = request;
  const live = hold.living(agent.name);
  if (live === null) return { failure: 'its process has ended' };
  const position = traits.position ? await live.session.position() : null;
  if (traits.position && position !== row.position) {
    const alone = await wentOnAlone(row, position, request);
    if (alone === null) return foreignHands(row, position, request);
    // What it did is in its storage; in its process there may be more to come that nobody asked for.
    await hold.letGo(agent);
    return { failure: alone.did };
  }
  const proof = position !== null ? 'proved' : traits.position ? 'counted' : step.proof;
  if (tooWeak(proof, request)) return { failure: 'nothing shows that it has the context, or takes it along' };
  return { open: { ...inLineage(row), session: live.session }, proof };
}

async function openResumed(recorded: Session, request: RestoreRequest): Promise<Result> {
  const { hold, agent, traits } = request;
  let row = recorded;
  await hold.letGo(agent);
  if (row.process) await hold.parts.processes.end(row.process);
  if (traits.position) {
    if (row.position === null) return { failure: 'where it stood was never recorded' };
    const position = await agent.position(row.id, await hold.room());
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
  const moved = opened.session.id !== null && opened.session.id !== row.id;
  const open: OpenSession = moved
    ? {
        ...inLineage(row),
        ref: null,
        origin: 'rotated',
        parent: row.ref,
        mirrored: 0,
        position,
        session: opened.session,
      }
    : { ...inLineage(row), position, session: opened.session };
  return { open: { ...open, unsettled: row !== recorded }, proof };
}

/**
 * Whether the session has moved by its agent's own doing, without anybody's prompt, and what it did then; null: it was not the
 * agent alone.
 */
async function wentOnAlone(
  row: Session,
  position: string | null,
  { hold, agent }: RestoreRequest,
): Promise<{ readonly did: string } | null> {
  if (position === null || row.position === null) return null;
  const tail = await agent.tail(row.id, { prompt: null, position: row.position }, await hold.room());
  if (tail === null || tail.position !== position) return null;
  const parts = new PartsBuilder();
  for (const update of tail.updates) parts.add(update);
  const tools = parts.parts().flatMap((part) => (part.type === 'tool' ? [part.name] : []));
  const ran = tools.length === 0 ? 'no tool ran' : `these tools ran: ${tools.join(', ')}`;
  return { did: `it went on by itself after its last turn, unasked; ${ran}` };
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

/** A native session that somebody else made: read first, and taken into the lineage when the prompt is sent. */
async function openAdopted(id: string, request: RestoreRequest): Promise<Result> {
  const { hold, agent, traits } = request;
  await hold.letGo(agent);
  const position = traits.position ? await agent.position(id, await hold.room()) : null;
  if (traits.position && position === null) return { failure: 'the agent has no such session here' };
  const opened = await openPatiently({ kind: 'resume', id }, false, request);
  if ('failure' in opened) return opened;
  if (!opened.ok) return { failure: `the agent refused: ${opened.message}` };
  const proof = await proveOpened(opened, position, request);
  if (proof === 'refuted') {
    await opened.session.close();
    return { failure: 'after opening, it was not where its storage stood' };
  }
  if (tooWeak(proof, request)) {
    await opened.session.close();
    return { failure: 'nothing shows what it knows; the policy "auto" takes it all the same' };
  }
  const parent = await previousSession(request);
  return {
    open: {
      session: opened.session,
      ref: null,
      origin: 'adopted',
      parent,
      watermark: 0,
      dropped: 0,
      position,
      mirrored: 0,
    },
    proof,
  };
}

/** The agent's own file as it was, when our copy of it reaches the head; else one made from the records. */
async function openRehydrated(request: RestoreRequest): Promise<Result> {
  await request.hold.letGo(request.agent);
  return (await openMirrored(request)) ?? openSynthesised(request);
}

/** Null: there is no copy that would do. */
async function openMirrored(request: RestoreRequest): Promise<Result | null> {
  const { hold, agent } = request;
  const { owner, id: conversation, head } = hold.conversation;
  const [row] = await hold.parts.store.sessions(owner, conversation, { agent: agent.name, limit: 1 });
  const usable = row !== undefined && row.state !== 'diverged' && row.state !== 'closed';
  if (!usable || row.watermark !== head || row.position === null || row.mirrored === 0) return null;
  const transcript = await hold.parts.store.transcript(owner, conversation, row.ref);
  if (transcript === null) return null;
  if (isUsable(row)) await drop(row, 'lost', 'its file is put back from our copy', request);
  const how = { kind: 'rehydrate', id: row.id, from: { transcript, memo: row.memo } } as const;
  const opened = await openPatiently(how, false, request);
  if ('failure' in opened) return opened.final ? opened : null;
  if (!opened.ok) return null;
  if ((await opened.session.position()) !== row.position) {
    await opened.session.close();
    return null;
  }
  const { watermark, dropped, position } = row;
  const open = {
    session: opened.session,
    ref: null,
    origin: 'rehydrated',
    parent: row.ref,
    watermark,
    dropped,
  } as const;
  return { open: { ...open, position, mirrored: 0 }, proof: 'proved' };
}

async function openSynthesised(request: RestoreRequest): Promise<Result> {
  const { records, dropped } = await recordsWithin(0, request);
  if (records.length === 0) return { failure: 'nothing of the history fits into the budget' };
  const parent = await previousSession(request);
  const id = randomUUID();
  const ref = await recordAssigned(id, parent, 'rehydrated', request);
  const opened = await openPatiently({ kind: 'rehydrate', id, from: { records } }, false, request);
  const failure = whyNot(opened);
  if (failure) {
    await hopeless(ref, failure, request);
    return failure;
  }
  const { session, proof } = opened as Opened & { ok: true };
  const open = { session, ref, origin: 'rehydrated', parent, watermark: 0, dropped, mirrored: 0 } as const;
  return { open: { ...open, position: await session.position() }, proof };
}

/** An id that we assign is recorded before the agent hears of it, and opens a session once (R1). */
async function openNew(step: Step, request: RestoreRequest): Promise<Result> {
  const { hold, agent, traits } = request;
  await hold.letGo(agent);
  const parent = await previousSession(request);
  const noTools = step.deliver.what === 'prompts' && traits.noTools;
  const id = traits.id === 'assigned' ? randomUUID() : null;
  const ref = id === null ? null : await recordAssigned(id, parent, 'new', request);
  const opened = await openAssigned(id, noTools, request);
  const failure = whyNot(opened);
  if (failure) {
    if (ref !== null) await hopeless(ref, failure, request);
    return failure;
  }
  const { session } = opened as Opened & { ok: true };
  if (id === null && session.id !== null && traits.position && (await wasUsed(session.id, hold, agent))) {
    await session.close();
    return { failure: notNew(session.id) };
  }
  const open = { session, ref, origin: 'new', parent, watermark: 0, dropped: 0, mirrored: 0 } as const;
  return { open: { ...open, position: await session.position() }, proof: step.proof };
}

/** An id that is in use, and that nobody but us can know, was opened by an earlier attempt: from then on it is resumed (R1). */
async function openAssigned(
  id: string | null,
  noTools: boolean,
  request: RestoreRequest,
): Promise<Opened | StepFailure> {
  const opened = await openPatiently({ kind: 'new', id }, noTools, request);
  if (id === null || 'failure' in opened || opened.ok || opened.reason !== 'in_use') return opened;
  return openPatiently({ kind: 'resume', id }, noTools, request);
}

function whyNot(opened: Opened | StepFailure): StepFailure | null {
  if ('failure' in opened) return opened;
  return opened.ok ? null : { failure: `the agent refused: ${opened.message}` };
}

/** An assigned id whose session never came to be. */
async function hopeless(ref: string, { failure }: StepFailure, { hold }: RestoreRequest): Promise<void> {
  await hold.lease.write({ write: 'change-session', ref, change: { state: 'lost' }, reason: failure });
}

async function recordAssigned(
  id: string,
  parent: string | null,
  origin: 'new' | 'rehydrated',
  { hold, agent }: RestoreRequest,
): Promise<string> {
  const ref = randomUUID();
  const unused = { watermark: 0, dropped: 0, state: 'dormant', position: null, process: null } as const;
  const storage = await hold.storage(agent);
  const session = { ref, id, agent: agent.name, storage, parent, origin, ...unused };
  await hold.lease.write({ write: 'open-session', session, turn: null });
  return ref;
}

/** Opens, and waits for a locked session as long as the settings allow. */
async function openPatiently(how: OpenHow, noTools: boolean, request: RestoreRequest): Promise<Opened | StepFailure> {
  const { hold, agent, lock, signal } = request;
  for (;;) {
    signal.throwIfAborted();
    const opened = await agent.open({ how, room: await hold.room(), noTools, signal });
    if (opened.ok || opened.reason !== 'locked') return opened;
    if (!(await lock.wait(signal))) return lockedOut(opened.message, request);
    const payload = { id: how.kind === 'resume' ? how.id : null, waits: lock.count, ms: lock.ms };
    await hold.lease.write({
      write: 'event',
      event: { kind: 'session.locked', turn: request.turn?.id ?? null, payload },
    });
  }
}

function lockedOut(message: string, { lock }: RestoreRequest): StepFailure {
  return {
    failure: `locked: ${message}`,
    final: {
      code: 'session_locked',
      message: `The agent's session stayed locked through ${lock.count} waits (${lock.ms} ms): ${message}`,
      hint: 'Nothing was sent. Try again when the other program has let go of it, or raise "lock" in the settings.',
    },
  };
}

async function proveOpened(
  opened: Opened & { ok: true },
  expected: string | null,
  request: RestoreRequest,
): Promise<Proof> {
  if (!request.traits.position || expected === null) return opened.proof;
  return (await opened.session.position()) === expected ? 'proved' : 'refuted';
}

/** A step with no proof is taken under the policy "auto" only. */
function tooWeak(proof: Proof, { settings }: RestoreRequest): boolean {
  return proof === 'none' && settings.policy !== 'auto';
}

/** Somebody else used the session: it is never used again and never merged (R10). */
async function foreignHands(row: Session, found: string | null, request: RestoreRequest): Promise<StepFailure> {
  if (found === null) return drop(row, 'lost', 'the agent no longer has it', request);
  return drop(row, 'diverged', 'somebody else has used it since: it is not where we left it', request);
}

export async function drop(
  row: Session,
  state: SessionState,
  reason: string,
  request: RestoreRequest,
): Promise<StepFailure> {
  const { hold, agent } = request;
  const live = hold.live.get(agent.name);
  if (live?.ref === row.ref) {
    hold.live.delete(agent.name);
    await live.session.close();
  }
  await hold.lease.write({ write: 'change-session', ref: row.ref, change: { state, process: null }, reason });
  return { failure: reason, dropped: row.ref };
}

export function inLineage(row: Session): Omit<OpenSession, 'session'> {
  const { ref, origin, parent, watermark, dropped, position, mirrored } = row;
  return { ref, origin, parent, watermark, dropped, position, mirrored };
}

/** The session that a new one follows in the lineage: the last of the conversation, whoever's it was. */
async function previousSession({ hold }: RestoreRequest): Promise<string | null> {
  const { owner, id } = hold.conversation;
  const [newest] = await hold.parts.store.sessions(owner, id, { limit: 1 });
  return newest?.ref ?? null;
}
