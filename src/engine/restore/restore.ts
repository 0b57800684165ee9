import type { ContentBlock } from '../../core/content.ts';
import type { Plan, Step } from '../../core/continuity.ts';
import type { Failure } from '../../core/errors.ts';
import type { Proof, Receipt, Tried } from '../../core/receipt.ts';
import type { ReceiptRung, RestoreSettings } from '../../core/restore-settings.ts';
import type { SessionOrigin } from '../../core/session.ts';
import type { AgentTraits } from '../../core/traits.ts';
import type { Sent } from '../../core/turn.ts';
import type { Agent, AgentSession, Rewind } from '../../ports/agent.ts';
import type { Hold } from '../worker/hold.ts';
import { addSpent, type Delivered, deliver, NOTHING_DELIVERED, NOTHING_SPENT, type Spent } from './deliver.ts';
import type { LockWait } from './lock-wait.ts';
import { drop } from './open/lineage.ts';
import { openStep } from './open/step.ts';
import { planFor, receiptOf } from './plan.ts';

/** Brings one session to the head of the conversation, by the best step that works, and leaves a receipt (never silently fresh). */
export interface RestoreRequest {
  readonly hold: Hold;
  readonly agent: Agent;
  readonly traits: AgentTraits;
  readonly settings: RestoreSettings;
  /** The native session that the caller named; null: none. */
  readonly explicit: string | null;
  /** The turn it is for; null: a warm-up. */
  readonly turn: { readonly id: string; readonly n: number } | null;
  readonly attempt: number;
  /** After an attempt, or a turn, that failed: where its session goes back to; null: it stays where it is. */
  readonly rewind: (Rewind & { readonly ref: string }) | null;
  /** How often the block was already refused as too long. */
  readonly shrink: number;
  /** Steps that earlier attempts of this turn have tried; those tried now are added. */
  readonly tried: Tried[];
  readonly lock: LockWait;
  readonly signal: AbortSignal;
}

export type Restored =
  | {
      readonly ok: true;
      readonly open: OpenSession;
      readonly receipt: Receipt;
      readonly preface: readonly ContentBlock[];
      readonly delivered: Sent['delivered'];
      /** Turns of the history that this very restore has left out. */
      readonly leftOut: number;
    }
  | { readonly ok: false; readonly failure: Failure; readonly receipt: Receipt };

/** A session that is open and told everything, with what has to be written about it. */
export interface OpenSession {
  readonly session: AgentSession;
  /** Our reference, when it is in the lineage already; null: it is written when the prompt is sent, or when it is named. */
  readonly ref: string | null;
  readonly origin: SessionOrigin;
  /** Our reference of the session it follows; null: none. */
  readonly parent: string | null;
  readonly watermark: number;
  readonly dropped: number;
  readonly position: string | null;
  /** How much of its transcript file we have a copy of. */
  readonly mirrored: number;
  /** Somebody should know: it has done what is in no record. Left out: it has not. */
  readonly unsettled?: boolean;
}

/**
 * A step that did not work. `final`: no other step may be tried either. `dropped`: our reference of a session that may not be
 * used again, though its agent might let it pass: one that we close in good order can still put its storage back. `spent`: what
 * it has cost all the same; left out: nothing.
 */
export interface StepFailure {
  readonly failure: string;
  readonly spent?: Spent;
  readonly final?: Failure;
  readonly dropped?: string;
}

export async function restore(request: RestoreRequest): Promise<Restored> {
  const { hold, settings, tried } = request;
  const started = hold.parts.clock.monotonic();
  const plan = await planFor(request);
  /** By steps that did not work. */
  let spent = NOTHING_SPENT;
  const receipt = (
    rung: ReceiptRung,
    sessionId: string | null,
    before: Proof,
    given: Delivered,
    dropped: number,
  ): Receipt => {
    const all = { ...given, ...addSpent(spent, given) };
    return receiptOf(request, started, { rung, sessionId, before, given: all, dropped });
  };
  const fail = (failure: Failure): Restored => {
    const lost = hold.conversation.historyCount;
    return { ok: false, failure, receipt: receipt('none', null, 'none', NOTHING_DELIVERED, lost) };
  };
  if (request.explicit !== null && (await isElsewhere(request.explicit, request))) {
    return fail(refusal(request, 'it belongs to another conversation'));
  }
  if (plan.refusal !== null) return fail(refusal(request, plan.refusal));
  if (plan.leaves) await leave(plan.leaves, request);

  const dropped = new Set<string>();
  for (const step of plan.steps) {
    if ('session' in step.open && dropped.has(step.open.session.ref)) continue;
    const taken = await takeStep(step, request);
    if ('failure' in taken) {
      // It did not fail: it was stopped. What it has cost by then is on record all the same.
      if (taken.spent === undefined) request.signal.throwIfAborted();
      else spent = addSpent(spent, taken.spent);
      const attempt: Tried = { rung: step.rung, sessionId: sessionIdOf(step), failure: taken.failure };
      tried.push(attempt);
      if (request.signal.aborted) return fail(STOPPED);
      const event = { kind: 'restore.tried', turn: request.turn?.id ?? null, payload: attempt } as const;
      await hold.lease.write({ write: 'event', event });
      if (taken.dropped !== undefined) dropped.add(taken.dropped);
      if (taken.final) return fail(taken.final);
      if (request.explicit !== null) return fail(refusal(request, taken.failure));
      continue;
    }
    const { open, given, proof } = taken;
    return {
      ok: true,
      open,
      preface: given.preface,
      delivered: given.sent,
      receipt: receipt(step.rung, open.session.id, proof, given, open.dropped),
      leftOut: step.rung === 'fresh' ? hold.conversation.historyCount : given.dropped,
    };
  }
  return fail({
    code: 'restore_failed',
    message: `The context could not be restored: ${tried.map((t) => `${t.rung}: ${t.failure}`).join('; ')}.`,
    hint: `Nothing was sent. Raise the budget, or name another agent${
      settings.policy === 'required' ? ', or allow unproved steps with the policy "auto"' : ''
    }.`,
  });
}

/** Also under another agent's name, or another owner's: what counts is where the session lives (R1). */
async function isElsewhere(id: string, { hold, agent }: RestoreRequest): Promise<boolean> {
  const { owner, id: conversation } = hold.conversation;
  return hold.parts.store.sessionIsElsewhere(owner, conversation, { storage: await hold.storage(agent), id });
}

/** A session that could be gone on in, and is not: the receipt and the lineage say why. */
async function leave({ session, reason }: NonNullable<Plan['leaves']>, request: RestoreRequest): Promise<void> {
  const { hold, agent, turn, tried } = request;
  if (session.process && hold.live.get(agent.name)?.ref !== session.ref)
    await hold.parts.processes.end(session.process);
  const payload: Tried = { rung: 'resume', sessionId: session.id, failure: reason };
  tried.push(payload);
  await hold.lease.write({ write: 'event', event: { kind: 'restore.tried', turn: turn?.id ?? null, payload } });
  await drop(session, 'closed', reason, request);
}

const STOPPED: Failure = { code: 'interrupted', message: 'Stopped while the context was being restored.' };

type Taken = { readonly open: OpenSession; readonly given: Delivered; readonly proof: Proof };

/** Opens and delivers. Whatever was opened is closed again when the delivery does not work. */
async function takeStep(step: Step, request: RestoreRequest): Promise<Taken | StepFailure> {
  const opened = await openStep(step, request);
  if ('failure' in opened) return opened;
  const given = await deliverTo(opened.open, step, request);
  if ('failure' in given) {
    if (step.open.how === 'live') await request.hold.letGo(request.agent);
    else if (request.signal.aborted) await opened.open.session.kill();
    else await opened.open.session.close();
    return given;
  }
  const dropped = step.rung === 'fresh' ? request.hold.conversation.historyCount : opened.open.dropped + given.dropped;
  const session = given.session ?? opened.open.session;
  // A replay has moved the session on: what it said there is no part of the turn that follows.
  const position = step.deliver.what === 'prompts' ? await session.position() : opened.open.position;
  return {
    open: { ...opened.open, session, position, dropped, parent: given.parent ?? opened.open.parent },
    given: { ...given, unsettled: given.unsettled || opened.open.unsettled === true },
    proof: opened.proof,
  };
}

async function deliverTo(open: OpenSession, step: Step, request: RestoreRequest): Promise<Delivered | StepFailure> {
  if (step.deliver.what === 'nothing') return withoutDelivery(step, request);
  try {
    return await deliver(step, open, request);
  } catch (error) {
    // Stopped, or the lease is gone: nobody else knows of a process that was opened just now.
    if (step.open.how !== 'live') await open.session.kill();
    throw error;
  }
}

function withoutDelivery(step: Step, { rewind }: RestoreRequest): Delivered {
  const unsettled = rewind === null && 'session' in step.open && step.open.session.state === 'unsettled';
  return { ...NOTHING_DELIVERED, unsettled };
}

function sessionIdOf(step: Step): string | null {
  if (step.open.how === 'adopt') return step.open.id;
  return 'session' in step.open ? step.open.session.id : null;
}

function refusal({ explicit, agent }: RestoreRequest, reason: string): Failure {
  if (explicit === null) {
    return {
      code: 'restore_failed',
      message: `The context cannot be restored: ${reason}.`,
      hint: 'Nothing was sent. Ask for no rung, or for another one, or name another agent.',
    };
  }
  return {
    code: 'refused',
    message: `The session ${explicit} of ${agent.name} cannot be used: ${reason}.`,
    hint: 'Nothing was sent. Leave the session out to let the conversation go on in its own.',
  };
}
