import { NOTHING_OMITTED, type Receipt } from '../../../src/core/restore/receipt.ts';
import type { TurnRecord } from '../../../src/core/turn/record.ts';
import type { Sent } from '../../../src/core/turn/turn.ts';
import { NO_USAGE } from '../../../src/core/turn/usage.ts';
import type { NewPermission } from '../../../src/ports/store/permissions.ts';
import type { NewSession } from '../../../src/ports/store/sessions.ts';
import type { EndOfTurn, Write as StoreWrite } from '../../../src/ports/store/writes.ts';
import { record } from '../../values/plain.ts';
import type { Conversation, Session, Write } from './model.ts';

/** Converts a write of the model to one of the port. Fills in everything that the model leaves out. */
export function toStore(write: Write, conversation: Conversation): StoreWrite {
  switch (write.write) {
    case 'begin':
      return write;
    case 'update': {
      const update = { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: 'word ' } } as const;
      return { write: 'event', event: { kind: 'turn.update', turn: write.turn, payload: { acp: 1, update } } };
    }
    case 'open':
      return { write: 'open-session', session: newSession(write.session), turn: write.turn };
    case 'change': {
      const { ref, state, watermark } = write;
      return { write: 'change-session', ref, change: { state, watermark }, reason: null };
    }
    case 'receipt':
      return { write: 'receipt', receipt: receiptOf(write, conversation), turn: write.turn, session: null };
    case 'send':
      return { write: 'send', turn: write.turn, sent: sentTo(write.ref) };
    case 'retry':
      return { write: 'retry', turn: write.turn, failure: { code: 'agent_failed', message: 'overloaded' } };
    case 'ask':
      return { write: 'ask', turn: write.turn, permission: newPermission(write.permission) };
    case 'deny':
      return { write: 'deny', permission: write.permission, turn: '', reason: 'nobody answered' };
    case 'end':
      return { write: 'end', turn: write.turn, end: endOf(write, conversation) };
  }
}

function newSession(session: Omit<Session, 'used'>): NewSession {
  return { ...session, origin: 'new', parent: null, dropped: 0, position: null, process: null };
}

function receiptOf({ turn, attempt }: { turn: string; attempt: number }, conversation: Conversation): Receipt {
  const found = conversation.turns.find((one) => one.id === turn);
  const counts = { carried: 0, condensed: 0, dropped: 0, delivered: 0, deliveredTokens: 0, modelCalls: 0, ms: 0 };
  const proofs = { proof: 'counted', before: 'counted', after: null } as const;
  return {
    turn: found?.n ?? null,
    attempt,
    agent: 'a',
    rung: 'new',
    sessionId: null,
    ...counts,
    ...NOTHING_OMITTED,
    ...proofs,
    unknownBefore: null,
    window: null,
    unsettled: false,
    usage: NO_USAGE,
    toolsRan: [],
    tried: [],
    lockWaits: { count: 0, ms: 0 },
  };
}

function sentTo(session: string | null): Sent {
  return { attempt: 1, prompt: null, session, position: null, rung: 'new', delivered: null, process: null, at: 0 };
}

function newPermission(id: string): NewPermission {
  const options = [
    { optionId: 'yes', name: 'Yes', kind: 'allow_once' },
    { optionId: 'no', name: 'No', kind: 'reject_once' },
  ] as const;
  return { id, attempt: 1, title: 'May I?', toolCall: null, options };
}

function endOf(
  { turn, outcome, record: n, ref, unsent }: Extract<Write, { write: 'end' }>,
  { turns }: Conversation,
): EndOfTurn {
  const agent = turns.find((one) => one.id === turn)?.agent ?? 'a';
  const kept: TurnRecord | null = n === null ? null : { ...record(n), agent, outcome };
  const end = { outcome, failure: null, record: kept, session: ref, usage: { ...NO_USAGE, modelCalls: 1 } };
  return unsent ? { ...end, unsent } : end;
}
