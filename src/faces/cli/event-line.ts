import type { EventKind } from '../../core/event.ts';
import type { PublicEvent, PublicEventPayloads } from '../../core/public/event.ts';
import { chunkText, tokensSpent, type Update } from '../../core/update.ts';
import { receiptLine, turns } from './receipt-line.ts';
import { oneLine } from './terminal-text.ts';

/** Each kind of event in words; a new kind does not compile until it has some. */
const WORDS: { readonly [K in EventKind]: (payload: PublicEventPayloads[K]) => string } = {
  'conversation.created': ({ agent }) => `conversation made${agent ? ` for ${agent}` : ''}`,
  'conversation.forked': ({ conversationId, n }) => `forked from ${conversationId} after turn ${n}`,
  'conversation.imported': ({ turns: count }) => `imported with ${turns(count)}`,
  'conversation.titled': ({ title }) => `titled "${title}"`,
  'turn.queued': ({ n, agent, preview }) => `turn ${n} for ${agent}: ${preview}`,
  'turn.started': ({ n, attempt }) => `turn ${n} started${attempt > 1 ? `, attempt ${attempt}` : ''}`,
  'turn.requeued': ({ n }) => `turn ${n} waits again: its worker ended before anything was sent`,
  'turn.sent': ({ n }) => `turn ${n} sent`,
  'turn.update': ({ update }) => updateWords(update),
  'turn.retrying': ({ n, failure }) => `turn ${n} is tried again: ${failure.message}`,
  'turn.cancel_requested': ({ n, by }) => `turn ${n} is to stop, says ${by}`,
  'turn.ended': ({ n, outcome, failure }) => `turn ${n} ${outcome}${failure ? `: ${failure.message}` : ''}`,
  'session.opened': ({ sessionId, agent, origin }) => `session ${sessionId} of ${agent} (${origin})`,
  'session.changed': ({ sessionId, state, reason }) => `session ${sessionId} is ${state}${reason ? `: ${reason}` : ''}`,
  'session.locked': ({ waits, ms }) => `the session is in use elsewhere; wait ${waits}, ${ms} ms`,
  'restore.progress': ({ rung, done, total }) => `restoring by ${rung}: ${done} of ${total}`,
  'restore.tried': ({ rung, failure }) => `${rung} did not work: ${failure}`,
  'restore.receipt': (receipt) => receiptLine(receipt),
  'permission.asked': ({ permissionId, title }) => `asks for permission: ${title} (${permissionId})`,
  'permission.answered': ({ optionId, by }) => `answered ${optionId}, by ${by}`,
  'permission.withdrawn': ({ reason }) => `the question is withdrawn: ${reason}`,
};

/** One event in one line. */
export function eventLine({ kind, payload }: PublicEvent): string {
  return oneLine((WORDS[kind] as (payload: unknown) => string)(payload));
}

function updateWords(update: Update): string {
  const text = chunkText(update);
  if (update.sessionUpdate === 'agent_message_chunk') return `says: ${text ?? '[no text]'}`;
  if (update.sessionUpdate === 'agent_thought_chunk') return `thinks: ${text ?? '[no text]'}`;
  const spent = tokensSpent(update);
  if (spent !== null) return `has used ${spent} tokens so far`;
  const { title, status } = update as { title?: unknown; status?: unknown };
  return [update.sessionUpdate, title, status].filter((word) => typeof word === 'string').join(' ');
}
