import type { Command } from 'commander';
import { inPages } from '../../../../core/input/pages.ts';
import type { PublicReceipt } from '../../../../core/public/session.ts';
import type { PublicPermission } from '../../../../core/public/turn.ts';
import { promptText } from '../../../../core/turn/content.ts';
import type { Hindrance } from '../../../../core/turn/standing.ts';
import type { ConversationView, Engine, TurnView } from '../../../../ports/engine.ts';
import { addHelp, type Cli } from '../../cli.ts';
import { RECOVERED, receiptLine, strandedLine, time, turns } from '../../lines.ts';
import { type Output, styled } from '../../output.ts';
import { oneLine } from '../../terminal-text.ts';

export function define(command: Command, cli: Cli): void {
  command.argument('<key>', 'the conversation: its key or id').action((key: string) => show(key, cli));
  addHelp(command, {
    about:
      'Shows the turns and who answered them. A line between two turns says where one session ended and another began, and\n' +
      'how that session got its context, or that the agent condensed earlier turns into a summary of its own. Questions that\n' +
      'were denied because nobody answered are listed with their turn. With --json, one object {conversation, turns, sessions,\n' +
      'receipts}; a turn has its prompt as content blocks in `prompt`, and as text in `promptText`.',
    examples: ['throughline show notes', "throughline show notes --json | jq '.receipts[-1]'"],
  });
}

async function show(key: string, { output, lookAt }: Cli): Promise<void> {
  await lookAt(async (engine) => {
    const view = await engine.show(key);
    if (output.json) output.value(withTexts(view));
    else forPeople(view, await deniedIn(engine, view.conversation.id), output);
  });
}

/** By turn: the questions that were denied because nobody answered. */
async function deniedIn(engine: Engine, conversation: string): Promise<Map<string, PublicPermission[]>> {
  const read = (last: PublicPermission | undefined) =>
    engine.permissions({ conversation, open: false, ...(last && { after: last.id }) });
  const ended = await Array.fromAsync(inPages(read));
  return Map.groupBy(
    ended.filter(({ state }) => state === 'denied'),
    ({ turnId }) => turnId,
  );
}

function withTexts(view: ConversationView) {
  return { ...view, turns: view.turns.map((turn) => ({ ...turn, promptText: promptText(turn.prompt) })) };
}

function forPeople(
  { conversation, turns: all, sessions, receipts }: ConversationView,
  denied: ReadonlyMap<string, readonly PublicPermission[]>,
  output: Output,
): void {
  const { key, id, title, createdAt, historyCount, parent } = conversation;
  output.line(styled('bold', oneLine(key ?? id)), title ? `  ${oneLine(title)}` : '');
  const from = parent ? `, forked from ${parent.conversationId} after turn ${parent.n}` : '';
  const lived = sessions.length === 1 ? '1 session' : `${sessions.length} sessions`;
  output.line(styled('dim', `${id}, ${time(createdAt)}, ${turns(historyCount)} in ${lived}${from}`));
  const receiptOf = new Map(receipts.map((receipt) => [receipt.turn, receipt]));
  let session: string | null = null;
  let condensed = 0;
  for (const turn of all) {
    const receipt = receiptOf.get(turn.n) ?? null;
    if (sessionEnds(turn, session)) showSeam(turn, receipt, output);
    else if (receipt !== null && receipt.condensed > condensed) showCondensed(receipt, output);
    showTurn(turn, denied.get(turn.id) ?? [], output);
    // What ran elsewhere and what ran here are told apart, also within one session.
    session = turn.imported ? null : (turn.sessionId ?? session);
    condensed = receipt?.condensed ?? 0;
  }
  showHindrance(conversation, output);
}

function sessionEnds({ sessionId }: TurnView, before: string | null): boolean {
  return sessionId === null || sessionId !== before;
}

/** Where a turn was answered in another session than the turn before, or in none. */
function showSeam({ sessionId }: TurnView, receipt: PublicReceipt | null, output: Output): void {
  if (receipt === null) return;
  const where = sessionId === null ? 'no session' : `session ${oneLine(sessionId)}`;
  output.line();
  output.line(styled('cyan', `─── ${where}: ${oneLine(receiptLine(receipt))}`));
}

/** Where the agent replaced earlier turns by a summary, within one session. */
function showCondensed({ condensed }: PublicReceipt, output: Output): void {
  output.line();
  output.line(styled('cyan', `─── the agent condensed ${turns(condensed)} into a summary of its own`));
}

function stateOf({ state, imported }: TurnView): string {
  return imported ? `${state}, imported` : state;
}

function showHindrance({ stranded, delayed }: Hindrance, output: Output): void {
  const why = stranded ?? delayed;
  if (why === null) return;
  output.line();
  output.line(styled('yellow', oneLine(strandedLine(why))));
}

function showTurn(turn: TurnView, denied: readonly PublicPermission[], output: Output): void {
  output.line();
  output.line(
    styled('bold', `turn ${turn.n}`),
    styled('dim', `  ${oneLine(turn.agent)}, ${stateOf(turn)}, ${time(turn.createdAt)}  ${turn.id}`),
  );
  for (const line of promptText(turn.prompt).split('\n')) output.line(styled('dim', `> ${line}`));
  if (turn.reply !== '') output.line(turn.reply);
  for (const { title, reason } of denied) output.line(styled('yellow', oneLine(`denied: ${title} (${reason})`)));
  if (turn.recovered) output.line(styled('dim', RECOVERED));
  if (turn.failure) output.line(styled('red', `${turn.failure.code}: ${turn.failure.message}`));
}
