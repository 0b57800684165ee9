import type { Failure } from '../../core/errors.ts';
import { unknownBefore } from '../../core/restore/adopted.ts';
import { condensedWhenTold, type TurnCounts, turnCounts } from '../../core/restore/condensed.ts';
import type { Plan, Step } from '../../core/restore/continuity.ts';
import {
  addOmissions,
  NOTHING_OMITTED,
  type Omissions,
  type Proof,
  type Receipt,
  type Tried,
} from '../../core/restore/receipt.ts';
import type { ReceiptRung, Rung } from '../../core/restore/restore-settings.ts';
import type { Held } from '../worker/held.ts';
import { deliverBlock, progress } from './deliver.ts';
import { noteCondensed, openAdopted, openLive, openNew, openResumed } from './open.ts';
import { planFor } from './plan.ts';
import { openRehydrated } from './rehydrate.ts';
import { replay } from './replay.ts';
import {
  addSpent,
  type Delivered,
  NOTHING_DELIVERED,
  NOTHING_SPENT,
  type NotRestored,
  type OpenResult,
  type OpenSession,
  type Restored,
  type RestoreRequest,
  type Restoring,
  type Spent,
  type StepFailure,
} from './request.ts';

/**
 * Brings one session to the head of the conversation by the best step that works, and returns a receipt (never silently fresh).
 * A step opens a session and delivers what it lacks. If a step fails, that is recorded, and the next one is tried.
 */
export async function restore(asked: RestoreRequest): Promise<Restored | NotRestored> {
  const { held, explicit, newSession, earlier } = asked;
  const named = explicit ?? newSession;
  const { tried, lockWaits } = earlier;
  const request: Restoring = { ...asked, startedAt: held.parts.clock.monotonic(), tried: [...tried], lockWaits };
  /** The cost of the steps that failed. */
  let spent = NOTHING_SPENT;
  const fail = (failure: Failure): NotRestored => {
    const counts = { carried: 0, condensed: 0, dropped: held.conversation.historyCount };
    const delivery = { ...NOTHING_DELIVERED, ...spent };
    const nothing = { rung: 'none', sessionId: null, before: 'none', omitted: NOTHING_OMITTED, unknown: null } as const;
    return { failure, receipt: receiptOf(request, { ...nothing, counts, delivery }) };
  };
  const plan = await planFor(request);
  if (named !== null && (await isElsewhere(named, request))) {
    return fail(refusal(request, 'it belongs to another conversation'));
  }
  if (plan.refusal !== null) {
    // The failure of a turn is stored with the turn. Of a warm-up there is only the receipt.
    if (request.turn === null) request.tried.push(refusedRung(request, plan.refusal));
    return fail(refusal(request, plan.refusal, plan.hint));
  }
  if (plan.replaces) await replaceSession(plan.replaces, request);

  const unusable = new Set<string>();
  const hints = new Set<string>();
  for (const step of plan.steps) {
    if ('session' in step.open && unusable.has(step.open.session.ref)) continue;
    const taken = await takeStep(step, request);
    if (!('failure' in taken)) return restoredBy(step, taken, spent, request);
    if (taken.aside !== undefined) {
      await held.putAside(asked.agent, { ...taken.aside, reason: taken.failure });
      unusable.add(taken.aside.ref);
    }
    // If it was stopped, it did not fail: only a step that has cost something is recorded.
    if (taken.spent === undefined) request.signal.throwIfAborted();
    else spent = addSpent(spent, taken.spent);
    const attempt: Tried = { rung: step.rung, sessionId: sessionIdOf(step), failure: taken.failure };
    if (request.signal.aborted) {
      request.tried.push(attempt);
      return fail(STOPPED);
    }
    await noteTried(attempt, request);
    if (taken.final) return fail(taken.final);
    if (explicit !== null) return fail(refusal(request, taken.failure, taken.hint));
    if (taken.hint !== undefined) hints.add(taken.hint);
  }
  return fail(nothingLeft(request, plan, [...hints]));
}

/** What the attempt needs of the step that worked, with the receipt. `spent`: by the steps that failed before it. */
async function restoredBy(step: Step, taken: Taken, spent: Spent, request: Restoring): Promise<Restored> {
  const { open, proof } = taken;
  const delivery = { ...taken.delivery, ...addSpent(spent, taken.delivery) };
  const counts = await countsOf(open, request.held);
  const { omitted } = open;
  const unknown = await unknownTo(open, request);
  const before = unknown === null ? proof : atMostCounted(proof);
  const facts = { rung: step.rung, sessionId: open.session.id, before, delivery, counts, omitted, unknown };
  const { cutTurns, images } = open.made ?? {
    cutTurns: delivery.dropped + delivery.omitted.shortened,
    images: delivery.images,
  };
  const receipt = receiptOf(request, facts);
  const told = [...(open.told ?? []), ...delivery.told];
  return { open, receipt, preface: delivery.preface, told, delivered: delivery.sent, cutTurns, images };
}

/** Opens and delivers. If the delivery fails, the opened session is closed again. */
async function takeStep(step: Step, request: Restoring): Promise<Taken | StepFailure> {
  const { held, agent, signal } = request;
  const rung = slowRung(step);
  if (rung !== null) announce(rung, request);
  const opened = await openStep(step, request);
  if ('failure' in opened) return opened;
  const { open, proof } = opened;
  const delivery = await deliver(step, open, request);
  if ('failure' in delivery) {
    if (step.open.how === 'live') await held.endLive(agent);
    else if (signal.aborted) await open.session.kill();
    else await open.session.close();
    return delivery;
  }
  // A session that is told all turns but its own lacks only what was left out of these.
  const before = 'except' in step.deliver ? 0 : open.dropped;
  const dropped = step.rung === 'fresh' ? held.conversation.historyCount : before + delivery.dropped;
  if (rung !== null && rung !== 'replay') {
    const restored = held.conversation.historyCount - dropped;
    held.lease.note(progress(rung, restored, restored, request));
  }
  const omitted = addOmissions(open.omitted, delivery.omitted);
  const { parent } = delivery;
  const current = parent === null ? open : ({ ...open, ref: null, origin: 'rotated', parent, mirrored: 0 } as const);
  const condensedTo = await condensedAfter(step, current, delivery, request);
  const session = delivery.session ?? open.session;
  // A replay has moved the position. What the session said in it is no part of the next turn.
  const position = step.deliver.what === 'prompts' ? await session.position() : open.position;
  return {
    open: { ...current, session, position, dropped, omitted, condensedTo },
    delivery: { ...delivery, unsettled: delivery.unsettled || open.unsettled === true },
    proof: delivery.proof ?? proof,
  };
}

/** The last condensed turn of a session after the delivery. An adopted session is given turns that come before its own. */
async function condensedAfter(step: Step, open: OpenSession, delivery: Delivered, request: RestoreRequest) {
  const dropped = 'except' in step.deliver ? 0 : delivery.dropped;
  const before = condensedWhenTold(open, dropped, delivery.sent?.from ?? request.held.conversation.head + 1);
  const condensedTo = Math.max(before, delivery.condensedTo);
  return condensedTo > open.condensedTo ? noteCondensed(open, condensedTo, request) : condensedTo;
}

/** The rung of a step that starts a process to restore a history; null: the process runs already, or there is no history. */
function slowRung({ rung, open }: Step): Rung | null {
  return open.how === 'live' || rung === 'new' || rung === 'fresh' || rung === 'none' ? null : rung;
}

/**
 * Tells followers that a step has begun, so that they see what they wait for. It is stored while the process starts. If it cannot be stored,
 * the lease is aborted, and with it the restore.
 */
function announce(rung: Rung, { held, turn }: RestoreRequest): void {
  const payload = { rung, total: held.conversation.historyCount };
  const event = { kind: 'restore.started', turn: turn?.id ?? null, payload } as const;
  held.lease.note({ write: 'event', event });
}

type Taken = { readonly open: OpenSession; readonly delivery: Delivered; readonly proof: Proof };

function openStep(step: Step, request: Restoring): Promise<OpenResult> {
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

async function deliver(step: Step, open: OpenSession, request: RestoreRequest): Promise<Delivered | StepFailure> {
  try {
    switch (step.deliver.what) {
      case 'nothing':
        return { ...NOTHING_DELIVERED, unsettled: staysUnsettled(step, request) };
      case 'records':
        return await deliverBlock(step.deliver, request);
      case 'prompts':
        return await replay(open, request);
    }
  } catch (error) {
    // It was stopped, or the lease is lost. Only this process can end the process that was just started.
    if (step.open.how !== 'live') await open.session.kill();
    throw error;
  }
}

function staysUnsettled(step: Step, { rewind }: RestoreRequest): boolean {
  return rewind === null && 'session' in step.open && step.open.session.state === 'unsettled';
}

/** Whether the session belongs to another conversation, of any agent or owner: it is identified by its storage (R1). */
async function isElsewhere(id: string, { held, agent }: RestoreRequest): Promise<boolean> {
  const { owner, id: conversation } = held.conversation;
  return held.parts.store.sessionIsElsewhere(owner, conversation, { storage: await held.storage(agent), id });
}

/** Closes a usable session that the plan replaces. The receipt and the lineage have the reason. */
async function replaceSession({ session, reason }: NonNullable<Plan['replaces']>, request: Restoring): Promise<void> {
  const { held, agent } = request;
  if (session.process && held.live.get(agent.name)?.ref !== session.ref)
    await held.parts.sandboxes.end(session.process);
  await noteTried({ rung: 'resume', sessionId: session.id, failure: reason }, request);
  await held.putAside(agent, { ref: session.ref, state: 'closed', reason });
}

async function noteTried(payload: Tried, { held, turn, tried }: Restoring): Promise<void> {
  tried.push(payload);
  await held.lease.write({ write: 'event', event: { kind: 'restore.tried', turn: turn?.id ?? null, payload } });
}

function refusedRung({ settings: { rung } }: Restoring, failure: string): Tried {
  return { rung: rung ?? 'none', sessionId: null, failure };
}

function sessionIdOf(step: Step): string | null {
  if (step.open.how === 'adopt') return step.open.id;
  return 'session' in step.open ? step.open.session.id : null;
}

// ── receipts and failures ──────────────────────────────────────────────────────────────────────────────────────────────

/** What a receipt says, as far as it is known before the prompt. */
interface ReceiptFacts {
  readonly rung: ReceiptRung;
  readonly sessionId: string | null;
  readonly before: Proof;
  readonly delivery: Delivered;
  readonly counts: TurnCounts;
  readonly unknown: number | null;
  readonly omitted: Omissions;
}

/** How much of the history an opened session has, as it stands before the prompt. */
async function countsOf({ condensedTo, dropped }: OpenSession, held: Held): Promise<TurnCounts> {
  const { owner, id, historyCount } = held.conversation;
  const since = condensedTo === 0 ? historyCount : await held.parts.store.countRecordsAfter(owner, id, condensedTo);
  return turnCounts(historyCount, dropped, historyCount - since);
}

/** The last turn before which the session lacks something that nobody could read; null: it lacks nothing. */
async function unknownTo({ session, origin, parent }: OpenSession, { held, agent }: RestoreRequest) {
  const parts = await held.unknownParts();
  if (parts.length === 0) return null;
  const { owner, id } = held.conversation;
  const lineage = new Map((await held.parts.store.sessions(owner, id)).map((row) => [row.ref, row]));
  // A new session may have the id of one that is gone.
  const ids = session.id === null || origin === 'new' ? [] : [session.id];
  for (let from = origin === 'rotated' ? parent : null; from !== null; ) {
    const row = lineage.get(from);
    if (row !== undefined) ids.push(row.id);
    from = row?.origin === 'rotated' ? row.parent : null;
  }
  return unknownBefore(parts, agent.name, ids);
}

function atMostCounted(proof: Proof): Proof {
  return proof === 'proved' || proof === 'consistent' ? 'counted' : proof;
}

function receiptOf(request: Restoring, facts: ReceiptFacts): Receipt {
  const { held, agent, traits, settings, turn, attempt, tried, lockWaits, startedAt } = request;
  const { rung, sessionId, before, delivery, counts, omitted, unknown } = facts;
  return {
    turn: turn?.n ?? null,
    attempt,
    agent: agent.name,
    rung,
    sessionId,
    ...counts,
    ...omitted,
    unknownBefore: unknown,
    delivered: delivery.turns,
    deliveredTokens: delivery.tokens,
    window: settings.budgetTokens === null ? { tokens: traits.window, from: traits.windowFrom } : null,
    ...held.filesLeftBefore(turn?.n ?? null),
    unsettled: delivery.unsettled,
    modelCalls: delivery.usage.modelCalls,
    usage: delivery.usage,
    toolsRan: delivery.toolsRan,
    proof: before,
    before,
    after: null,
    tried: [...tried],
    lockWaits,
    ms: Math.round(held.parts.clock.monotonic() - startedAt),
  };
}

const STOPPED: Failure = { code: 'interrupted', message: 'Stopped while the context was being restored.' };

/** No step has worked. `hints`: what to do about those that failed. */
function nothingLeft(request: Restoring, { unplanned }: Plan, hints: readonly string[]): Failure {
  const failed = request.tried.map(({ rung, failure }) => `${rung}: ${failure}`);
  const reasons = [...failed, ...(unplanned ? [unplanned.reason] : [])].join('; ');
  const known = [...hints, ...(unplanned ? [unplanned.hint] : [])].join(' ');
  if (request.newSession !== null) return refusal(request, reasons, known === '' ? undefined : known);
  return {
    code: 'restore_failed',
    message: `The context could not be restored: ${reasons}.`,
    hint: `Nothing was sent. ${known || 'Correct what the agent reports, or name another agent.'}`,
  };
}

function refusal({ explicit, newSession, agent }: RestoreRequest, reason: string, hint?: string): Failure {
  if (newSession !== null) {
    return {
      code: 'refused',
      message: `A new session ${newSession} of ${agent.name} cannot be opened: ${reason}.`,
      hint: `Nothing was sent. ${hint ?? 'Choose another id, or leave it out.'}`,
    };
  }
  if (explicit === null) {
    return {
      code: 'restore_failed',
      message: `The context cannot be restored: ${reason}.`,
      ...(hint !== undefined && { hint: `Nothing was sent. ${hint}` }),
    };
  }
  return {
    code: 'refused',
    message: `The session ${explicit} of ${agent.name} cannot be used: ${reason}.`,
    hint: `Nothing was sent. ${hint ?? 'Leave out the session to continue in that of the conversation.'}`,
  };
}
