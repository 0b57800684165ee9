import { failureOf, ThroughlineError } from '../core/errors.ts';
import type { ConversationEvent } from '../core/event.ts';
import { type PublicTurn, toPublicTurn } from '../core/public/turn.ts';
import type { Task, TaskTurn, TurnPurpose } from '../core/tasks/task.ts';
import { denialsIn } from '../core/turn/permission.ts';
import { hasEnded, type Turn } from '../core/turn/turn.ts';
import type { Update } from '../core/turn/update.ts';
import { addUsage, NO_USAGE } from '../core/turn/usage.ts';
import { inPages } from '../flow/pages.ts';
import type { Engine, Submitted } from '../ports/engine.ts';
import type { Store } from '../ports/store.ts';

/** Why work on a task stops early. Only a cancel also ends its turn. */
export type StopReason = 'cancelled' | 'shutdown' | 'lease_lost';

/** Thrown when work stops for another reason than a cancel: this runner writes nothing more about the task. */
export class Stopped extends Error {}

export interface TurnRequest {
  readonly engine: Engine;
  readonly store: Store;
  readonly task: Task;
  readonly conversation: string;
  readonly agent: string;
  readonly purpose: TurnPurpose;
  readonly requestId: string;
  readonly stop: AbortSignal;
  readonly now: () => number;
  /** Called with everything that the agent does. True: cancels the turn. */
  readonly shouldCancel: (update: Update) => boolean;
  submit(): Promise<Submitted>;
}

/**
 * Submits a turn and waits for its end, whichever process runs it. Submitting again after a crash gives the same turn. A refused submission
 * counts as a failed turn, so that the same rules decide.
 */
export async function runTaskTurn(request: TurnRequest): Promise<TaskTurn> {
  const { task, agent, conversation, purpose } = request;
  const { round, iteration } = task.progress;
  const common = { purpose, round, iteration, conversation, agent };
  let submitted: Submitted;
  try {
    submitted = await request.submit();
  } catch (error) {
    if (!isRefusal(error)) throw error;
    const known = error.code === 'conflict' ? await request.store.findRequest(task.owner, request.requestId) : null;
    if (known?.conversation !== conversation) {
      const failed = { turn: null, outcome: 'failed', failure: failureOf(error), sessionId: null, rung: null } as const;
      const nothing = { usage: NO_USAGE, lockWaits: { count: 0, ms: 0 }, denied: [] };
      return { ...common, ...failed, ...nothing, endedAt: request.now() };
    }
    // An older version of the program submitted it, with a prompt in other words.
    submitted = alreadySubmitted(known);
  }
  const turn = await waitForEnd(request, submitted);
  if (!hasEnded(turn.state)) throw new Stopped();
  const receipts = await request.store.receipts(task.owner, conversation, { turn: turn.n });
  const last = receipts.at(-1);
  return {
    ...common,
    turn: turn.id,
    outcome: turn.state,
    failure: turn.failure,
    sessionId: turn.sessionId,
    rung: last?.rung ?? null,
    // With the cost of its restores.
    usage: receipts.reduce((sum, receipt) => addUsage(sum, receipt.usage), turn.usage),
    lockWaits: last?.lockWaits ?? (await waitsOf(request.store, task.owner, turn)),
    denied: denialsIn(await request.store.permissions(task.owner, { turn: turn.id })),
    endedAt: turn.endedAt ?? request.now(),
  };
}

/** A turn that an earlier runner submitted. */
export function alreadySubmitted(turn: Turn): Submitted {
  return { turn: toPublicTurn(turn), seq: 0, duplicate: true };
}

/** A turn that was stopped while it waited has no receipt; its events count the waits. */
async function waitsOf(store: Store, owner: string, turn: PublicTurn): Promise<TaskTurn['lockWaits']> {
  const read = (last: ConversationEvent | undefined) => store.turnEvents(owner, turn.id, { after: last?.seq ?? 0 });
  let waits = { count: 0, ms: 0 };
  for await (const { kind, payload } of inPages(read)) {
    if (kind === 'session.locked') waits = { count: payload.waits, ms: payload.ms };
  }
  return waits;
}

/** Errors that the caller's settings or the agents cause. Everything else is a storage fault or a bug. */
const REFUSALS = new Set([
  'invalid',
  'refused',
  'conflict',
  'not_found',
  'agent_unavailable',
  'signed_out',
  'session_locked',
  'over_budget',
  'storage_damaged', // of the conversation: if the task is damaged, the decision cannot be stored either
]);

export function isRefusal(error: unknown): error is ThroughlineError {
  return error instanceof ThroughlineError && REFUSALS.has(error.code);
}

async function waitForEnd({ engine, stop, shouldCancel }: TurnRequest, { turn, seq }: Submitted): Promise<PublicTurn> {
  if (hasEnded(turn.state)) return turn;
  const leave = new AbortController();
  const cancel = () => void engine.cancel(turn.id).catch((error) => leave.abort(error));
  const onStop = () => {
    if ((stop.reason as StopReason) === 'cancelled') cancel();
    else leave.abort();
  };
  stop.addEventListener('abort', onStop, { once: true });
  if (stop.aborted) onStop();
  try {
    for await (const event of engine.follow(turn.conversationId, { after: seq, signal: leave.signal })) {
      if (event.turnId !== turn.id) continue;
      if (event.kind === 'turn.ended') break;
      if (event.kind === 'turn.update' && shouldCancel(event.payload.update)) cancel();
    }
  } finally {
    stop.removeEventListener('abort', onStop);
  }
  if (leave.signal.reason instanceof ThroughlineError) throw leave.signal.reason;
  return engine.turn(turn.id);
}
