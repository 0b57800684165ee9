import type { Command } from 'commander';
import type { PublicReceipt } from '../../../../core/public/session.ts';
import { type PublicPermission, toPublicTools } from '../../../../core/public/turn.ts';
import { type Prompt, promptText } from '../../../../core/turn/content.ts';
import type { ToolPart, TurnRecord } from '../../../../core/turn/record.ts';
import type { Hindrance } from '../../../../core/turn/standing.ts';
import { inPages } from '../../../../flow/pages.ts';
import type { ConversationView, Engine, TurnView } from '../../../../ports/engine.ts';
import { addHelp, type Cli } from '../../cli.ts';
import { positiveNumber } from '../../input.ts';
import { counted, RECOVERED, receiptLine, strandedLine, time, toolLine, turns } from '../../lines.ts';
import { type Output, styled } from '../../output.ts';
import { cutTo, oneLine } from '../../terminal-text.ts';
import { type PartsOfTurns, partsOf } from './markdown.ts';

export function define(command: Command, cli: Cli): void {
  command
    .argument('<key>', 'the conversation: its key or id')
    .option('--last <n>', 'only the last n turns', positiveNumber)
    .option('--verbose', 'also what tools printed, and the text of attached files')
    .action((key: string, flags: ShowFlags) => show(key, flags, cli));
  addHelp(command, {
    about:
      'Shows the turns and who answered them. A line between two turns says where one session ended and another began, and ' +
      'how that session got its context, or that the agent condensed earlier turns into a summary of its own. Questions that ' +
      'were denied because nobody answered are listed with their turn. A tool is one line: what kind it is, what it did, how long it ' +
      'took, and how it ended if it did not complete. With --json, one object {conversation, turns, sessions, receipts}; a turn has ' +
      'its prompt as content blocks in `prompt`, and as text in `promptText`, and its tools in `tools`.',
    examples: [
      'throughline show notes',
      'throughline show notes --last 5',
      'throughline show notes --verbose | less',
      "throughline show notes --json | jq '.turns[-1].tools'",
    ],
  });
}

interface ShowFlags {
  readonly last?: number;
  readonly verbose?: boolean;
}

async function show(key: string, { last, verbose = false }: ShowFlags, { output, lookAt }: Cli): Promise<void> {
  await lookAt(async (engine) => {
    const view = last === undefined ? await engine.show(key) : await lastTurns(engine, key, last);
    const parts = await partsIn(engine, view.conversation.id, (view.turns[0]?.n ?? 1) - 1);
    if (output.json) output.value(withTexts(view, parts));
    else forPeople(view, { parts, denied: await deniedIn(engine, view.conversation.id), verbose }, output);
  });
}

/** The same as `engine.show`, but reads only the last turns. */
async function lastTurns(engine: Engine, key: string, count: number): Promise<ConversationView> {
  const conversation = await engine.conversation(key);
  const { id } = conversation;
  const shown: TurnView[] = [];
  while (shown.length < count) {
    const limit = Math.min(count - shown.length, 10_000);
    const page = await engine.turns(id, { before: shown[0]?.n ?? 'end', limit });
    if (page.length === 0) break;
    shown.unshift(...page);
  }
  const [sessions, receipts] = await Promise.all([engine.sessions(id), engine.receipts(id)]);
  return {
    conversation,
    turns: shown,
    sessions: sessions.toSorted((a, b) => a.openedAt - b.openedAt),
    receipts: receipts.filter(({ turn }) => turn === null || turn >= (shown[0]?.n ?? 0)),
  };
}

/** The parts of the turns after a number. A turn that has not ended has none yet. */
export async function partsIn(engine: Engine, conversation: string, after = 0): Promise<PartsOfTurns> {
  const read = (last: TurnRecord | undefined) => engine.records(conversation, { after: last?.n ?? after });
  return new Map(await Array.fromAsync(inPages(read), ({ n, parts }) => [n, parts] as const));
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

function withTexts(view: ConversationView, parts: PartsOfTurns) {
  const turns = view.turns.map((turn) => ({
    ...turn,
    promptText: promptText(turn.prompt),
    tools: toPublicTools(parts.get(turn.n) ?? []),
  }));
  return { ...view, turns };
}

/** What is shown of a turn besides the turn itself. */
interface Shown {
  readonly parts: PartsOfTurns;
  readonly denied: ReadonlyMap<string, readonly PublicPermission[]>;
  readonly verbose: boolean;
}

function forPeople(
  { conversation, turns: all, sessions, receipts }: ConversationView,
  shown: Shown,
  output: Output,
): void {
  const { key, id, title, createdAt, historyCount, parent } = conversation;
  output.line(styled('bold', oneLine(key ?? id)), title ? `  ${oneLine(title)}` : '');
  const from = parent ? `, forked from ${parent.conversationId} after turn ${parent.n}` : '';
  output.line(
    styled('dim', `${id}, ${time(createdAt)}, ${turns(historyCount)} in ${counted(sessions.length, 'session')}${from}`),
  );
  const receiptOf = new Map(receipts.map((receipt) => [receipt.turn, receipt]));
  let session: string | null = null;
  let condensed = 0;
  for (const turn of all) {
    const receipt = receiptOf.get(turn.n) ?? null;
    if (turn.sessionId === null || turn.sessionId !== session) showSeam(turn, receipt, output);
    else if (receipt !== null && receipt.condensed > condensed) showCondensed(receipt, output);
    showTurn(turn, shown, output);
    // A line separates turns that ran elsewhere from those that ran here, also within one session.
    session = turn.imported ? null : (turn.sessionId ?? session);
    condensed = receipt?.condensed ?? 0;
  }
  showHindrance(conversation, output);
}

/** The line before a turn that was answered in another session than the turn before, or in none. */
function showSeam({ sessionId }: TurnView, receipt: PublicReceipt | null, output: Output): void {
  if (receipt === null) return;
  const where = sessionId === null ? 'no session' : `session ${oneLine(sessionId)}`;
  output.line();
  output.line(styled('cyan', `─── ${where}: ${oneLine(receiptLine(receipt))}`));
}

/** The line where the agent replaced earlier turns by a summary, within one session. */
function showCondensed({ condensed }: PublicReceipt, output: Output): void {
  output.line();
  output.line(styled('cyan', `─── the agent condensed ${turns(condensed)} into a summary of its own`));
}

function showHindrance({ stranded, delayed }: Hindrance, output: Output): void {
  const why = stranded ?? delayed;
  if (why === null) return;
  output.line();
  output.line(styled('yellow', output.runnable(oneLine(strandedLine(why)))));
}

function showTurn(turn: TurnView, { parts, denied, verbose }: Shown, output: Output): void {
  output.line();
  output.line(
    styled('bold', `turn ${turn.n}`),
    styled(
      'dim',
      `  ${oneLine(turn.agent)}, ${turn.state}${turn.imported ? ', imported' : ''}, ${time(turn.createdAt)}  ${turn.id}`,
    ),
  );
  for (const line of promptLines(turn.prompt, verbose)) output.line(styled('dim', `> ${line}`));
  for (const part of partsOf(turn, parts)) {
    if (part.type === 'text') output.line(part.text);
    if (part.type === 'tool') showTool(part, verbose, output);
  }
  for (const { title, reason } of denied.get(turn.id) ?? [])
    output.line(styled('yellow', oneLine(`denied: ${title} (${reason})`, 'code')));
  if (turn.recovered) output.line(styled('dim', RECOVERED));
  if (turn.failure) output.line(styled('red', `${turn.failure.code}: ${turn.failure.message}`));
}

/** The prompt, with one line for each file. */
function promptLines(prompt: Prompt, verbose: boolean): string[] {
  return prompt.flatMap((block) => {
    const text = promptText([block]).replace(/\n$/, '').split('\n');
    if (verbose || block.type !== 'resource') return text;
    const [name = ''] = text;
    return [text.length === 1 ? name : `${name.replace(/\]$/, '')}, ${counted(text.length - 1, 'line')}]`];
  });
}

/** One line, as wide as the terminal. What it printed comes below it, marked. */
function showTool(tool: ToolPart, verbose: boolean, output: Output): void {
  const line = `  ${toolLine(tool)}`;
  const short = output.width === null ? line : cutTo(line, output.width);
  output.line(styled(tool.status === 'failed' ? 'red' : 'dim', short));
  if (!verbose || tool.output === null) return;
  for (const printed of tool.output.trimEnd().split('\n')) output.line(styled('dim', `    | ${printed}`));
}
