import { promptText } from '../../core/content.ts';
import type { PublicReceipt } from '../../core/public/session.ts';
import type { ConversationView, TurnView } from '../../ports/engine.ts';
import { type Output, styled } from './output.ts';
import { receiptLine, turns } from './receipt-line.ts';
import { oneLine } from './terminal-text.ts';
import { time } from './time.ts';

/** A conversation to read: turns with who answered, and the seams between sessions with their receipts. */
export function showForPeople(
  { conversation, turns: all, sessions, receipts }: ConversationView,
  output: Output,
): void {
  const { key, id, title, createdAt, historyCount, parent } = conversation;
  output.line(styled('bold', oneLine(key ?? id)), title ? `  ${oneLine(title)}` : '');
  const from = parent ? `, forked from ${parent.conversationId} after turn ${parent.n}` : '';
  const lived = sessions.length === 1 ? '1 session' : `${sessions.length} sessions`;
  output.line(styled('dim', `${id}, ${time(createdAt)}, ${turns(historyCount)} in ${lived}${from}`));
  const receiptOf = new Map(receipts.map((receipt) => [receipt.turn, receipt]));
  let session: string | null = null;
  for (const turn of all) {
    seam(turn, session, receiptOf.get(turn.n) ?? null, output);
    showTurn(turn, output);
    session = turn.sessionId ?? session;
  }
}

/** Where a turn was answered in another session than the one before, or in none. */
function seam({ sessionId }: TurnView, before: string | null, receipt: PublicReceipt | null, output: Output): void {
  if (receipt === null || (sessionId !== null && sessionId === before)) return;
  const where = sessionId === null ? 'no session' : `session ${oneLine(sessionId)}`;
  output.line();
  output.line(styled('cyan', `─── ${where}: ${oneLine(receiptLine(receipt))}`));
}

function showTurn(turn: TurnView, output: Output): void {
  output.line();
  output.line(
    styled('bold', `turn ${turn.n}`),
    styled('dim', `  ${oneLine(turn.agent)}, ${turn.state}, ${time(turn.createdAt)}  ${turn.id}`),
  );
  for (const line of promptText(turn.prompt).split('\n')) output.line(styled('dim', `> ${line}`));
  if (turn.reply !== '') output.line(turn.reply);
  if (turn.failure) output.line(styled('red', `${turn.failure.code}: ${turn.failure.message}`));
}
