import { randomUUID } from 'node:crypto';
import type { Step } from '../core/continuity.ts';
import type { Proof } from '../core/receipt.ts';
import type { Session, SessionState } from '../core/session.ts';
import type { Opened, OpenHow } from '../ports/agent.ts';
import { recordsWithin } from './deliver.ts';
import type { OpenSession, RestoreRequest, StepFailure } from './restore.ts';

type Result = { readonly open: OpenSession; readonly proof: Proof } | StepFailure;

/** Opens the session of a step and proves, as far as the agent allows, that it stands where we left it. */
export function openStep(step: Step, request: RestoreRequest): Promise<Result> {
  switch (step.open.how) {
    case 'live':
      return openLive(step.open.session, request);
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

async function openLive(row: Session, request: RestoreRequest): Promise<Result> {
  const { hold, agent, traits } = request;
  const live = hold.living(agent.name);
  if (live === null) return { failure: 'its process has ended' };
  const position = traits.position ? await live.session.position() : null;
  if (traits.position && position !== row.position) return foreignHands(row, position, request);
  return { open: { ...inLineage(row), session: live.session }, proof: position === null ? 'counted' : 'proved' };
}

async function openResumed(row: Session, request: RestoreRequest): Promise<Result> {
  const { hold, agent, traits } = request;
  await hold.letGo(agent);
  if (row.process) await hold.parts.processes.end(row.process);
  if (traits.position) {
    if (row.position === null) return { failure: 'where it stood was never recorded' };
    const position = await agent.position(row.id, await hold.room());
    if (position === null) return drop(row, 'lost', 'the agent no longer has it', request);
    if (position !== row.position) return foreignHands(row, position, request);
  }
  const opened = await openPatiently({ kind: 'resume', id: row.id }, false, request);
  if ('failure' in opened) return opened;
  if (!opened.ok) {
    const failure = `the agent refused: ${opened.message}`;
    return opened.reason === 'not_found' ? drop(row, 'lost', failure, request) : { failure };
  }
  const proof = await proveOpened(opened, row.position, request);
  if (proof === 'refuted') {
    await opened.session.close();
    return drop(row, 'lost', 'after opening, it was not where we left it', request);
  }
  if (proof === 'none' && request.settings.policy !== 'auto') {
    await opened.session.close();
    return { failure: 'nothing proves that it still has the context' };
  }
  const moved = opened.session.id !== null && opened.session.id !== row.id;
  const open: OpenSession = moved
    ? { ...inLineage(row), ref: null, origin: 'rotated', parent: row.ref, session: opened.session }
    : { ...inLineage(row), session: opened.session };
  return { open, proof };
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
  if (proof === 'none' && request.settings.policy !== 'auto') {
    await opened.session.close();
    return { failure: 'nothing shows what it knows; the policy "auto" takes it all the same' };
  }
  const parent = await previousSession(request);
  return {
    open: { session: opened.session, ref: null, origin: 'adopted', parent, watermark: 0, dropped: 0, position },
    proof,
  };
}

async function openRehydrated(request: RestoreRequest): Promise<Result> {
  const { hold, agent } = request;
  await hold.letGo(agent);
  const { records, dropped } = await recordsWithin(0, request);
  if (records.length === 0) return { failure: 'nothing of the history fits into the budget' };
  const opened = await openPatiently({ kind: 'rehydrate', records }, false, request);
  if ('failure' in opened) return opened;
  if (!opened.ok) return { failure: `the agent refused: ${opened.message}` };
  const position = await opened.session.position();
  const parent = await previousSession(request);
  const open: OpenSession = {
    session: opened.session,
    ref: null,
    origin: 'rehydrated',
    parent,
    watermark: 0,
    dropped,
    position,
  };
  return { open, proof: opened.proof };
}

/** An id that we assign is recorded before the agent hears of it, and opens a session once (R1). */
async function openNew(step: Step, request: RestoreRequest): Promise<Result> {
  const { hold, agent, traits } = request;
  await hold.letGo(agent);
  const parent = await previousSession(request);
  const noTools = step.deliver.what === 'prompts' && traits.noTools;
  const id = traits.id === 'assigned' ? randomUUID() : null;
  const ref = id === null ? null : await recordAssigned(id, parent, request);
  const opened = await openPatiently({ kind: 'new', id }, noTools, request);
  const failure = 'failure' in opened ? opened : opened.ok ? null : { failure: `the agent refused: ${opened.message}` };
  if (failure) {
    if (ref)
      await hold.lease.write({ write: 'change-session', ref, change: { state: 'lost' }, reason: failure.failure });
    return failure;
  }
  const { session } = opened as Opened & { ok: true };
  return {
    open: { session, ref, origin: 'new', parent, watermark: 0, dropped: 0, position: await session.position() },
    proof: step.proof,
  };
}

async function recordAssigned(id: string, parent: string | null, { hold, agent }: RestoreRequest): Promise<string> {
  const ref = randomUUID();
  const unused = { origin: 'new', watermark: 0, dropped: 0, state: 'dormant', position: null, process: null } as const;
  await hold.lease.write({
    write: 'open-session',
    session: { ref, id, agent: agent.name, parent, ...unused },
    turn: null,
  });
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
      hint: 'Nothing was sent. Try again when the other program has let go of it, or raise the lock waits in the settings.',
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

/** Somebody else used the session: it is never used again and never merged (R10). */
async function foreignHands(row: Session, found: string | null, request: RestoreRequest): Promise<StepFailure> {
  if (found === null) return drop(row, 'lost', 'the agent no longer has it', request);
  return drop(row, 'diverged', 'somebody else has used it since: it is not where we left it', request);
}

async function drop(row: Session, state: SessionState, reason: string, request: RestoreRequest): Promise<StepFailure> {
  const { hold, agent } = request;
  const live = hold.live.get(agent.name);
  if (live?.ref === row.ref) {
    hold.live.delete(agent.name);
    await live.session.close();
  }
  await hold.lease.write({ write: 'change-session', ref: row.ref, change: { state, process: null }, reason });
  return { failure: reason };
}

function inLineage(row: Session): Omit<OpenSession, 'session'> {
  const { ref, origin, parent, watermark, dropped, position } = row;
  return { ref, origin, parent, watermark, dropped, position };
}

/** The session that a new one follows in the lineage: the last of the conversation, whoever's it was. */
async function previousSession({ hold }: RestoreRequest): Promise<string | null> {
  const { owner, id } = hold.conversation;
  const [newest] = await hold.parts.store.sessions(owner, id, { limit: 1 });
  return newest?.ref ?? null;
}
