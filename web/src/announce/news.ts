import type { Receipt } from 'throughline/client';
import { isOpen, type TurnItem } from '../data/conversation/model.ts';
import type { ConversationState } from '../data/conversation/state.ts';
import type { News } from './announce.ts';

type Known = Pick<ConversationState, 'phase' | 'turns' | 'last' | 'receipts' | 'permissions'>;

/** What has happened in a conversation that somebody looks at. What was only loaded is not new. */
export function newsOf(before: Known, now: Known): News[] {
  if (before.phase !== 'ready' || now.phase !== 'ready') return [];
  return [...questions(before, now), ...restores(before, now), ...ends(before, now)];
}

function questions(before: Known, now: Known): News[] {
  if (before.permissions === now.permissions) return [];
  const known = new Set(before.permissions.map(({ id }) => id));
  const added = now.permissions.filter(({ id, state }) => state === 'open' && !known.has(id));
  if (added.length === 0) return [];
  const text = added.length === 1 ? 'A question waits for your answer.' : `${added.length} questions wait for you.`;
  return [{ text, urgency: 'assertive' }];
}

/** From the end of the conversation on: a turn that was open, or was not there, has ended. */
function ends(before: Known, now: Known): News[] {
  if (before.turns === now.turns) return [];
  const news: News[] = [];
  for (let n = now.last; n > 0; n -= 1) {
    const [then, item] = [before.turns.get(n), now.turns.get(n)];
    if (item === undefined) continue;
    const wasOpen = then === undefined ? n > before.last : isOpen(then);
    if (!wasOpen && !isOpen(item)) break;
    const end = wasOpen && !isOpen(item) ? endOf(item) : null;
    if (end !== null) news.unshift(end);
  }
  return news;
}

/** Null: it was never sent, so that nobody waits for its answer. */
function endOf({ turn: { state, n, sent, imported } }: TurnItem): News | null {
  if (imported) return null;
  if (state === 'completed') return { text: `Turn ${n} is answered.`, urgency: 'polite' };
  if (state === 'failed') return { text: `Turn ${n} failed.`, urgency: 'assertive' };
  if (state === 'interrupted') return { text: `Turn ${n} was interrupted.`, urgency: 'assertive' };
  return sent === null ? null : { text: `Turn ${n} was stopped.`, urgency: 'polite' };
}

function restores(before: Known, now: Known): News[] {
  if (before.receipts === now.receipts || before.turns.size === 0) return [];
  return [...now.receipts].flatMap(([n, receipts]) => {
    // Receipts of earlier turns come when somebody scrolls to them.
    if (n < before.last || before.receipts.get(n) === receipts) return [];
    const known = before.receipts.get(n) ?? [];
    const isKnown = (receipt: Receipt) =>
      known.some(({ turn, attempt }) => turn === receipt.turn && attempt === receipt.attempt);
    return receipts.filter((receipt) => !isKnown(receipt)).flatMap((receipt) => restoreOf(receipt) ?? []);
  });
}

/** Null: the session went on, or began. */
function restoreOf({ rung, carried, condensed, dropped }: Receipt): News | null {
  const all = carried + condensed + dropped;
  if (rung === 'none')
    return { text: 'No session could be given the history. Nothing was sent.', urgency: 'assertive' };
  if (rung === 'live' || all === 0) return null;
  if (dropped > 0) return { text: `The new session knows ${all - dropped} of ${all} turns.`, urgency: 'assertive' };
  const turns = all === 1 ? 'the one turn' : `all ${all} turns`;
  return { text: `A session was restored and knows ${turns}.`, urgency: 'polite' };
}
