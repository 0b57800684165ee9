import type { PublicReceipt } from '../../../../core/public/session.ts';
import { type ContentBlock, promptText } from '../../../../core/turn/content.ts';
import type { RecordPart } from '../../../../core/turn/record.ts';
import type { ConversationView, TurnView } from '../../../../ports/engine.ts';
import { counted, RECOVERED, receiptLine, time, toolLine } from '../../lines.ts';
import { oneLine, stripControls } from '../../terminal-text.ts';

/*
 * A conversation as a Markdown document for people. What was said stands behind `>`; headings, tools and seams do not. Every line of a
 * quote has the mark, so none can leave it. Only HTML could close a quote, so `<` is escaped wherever it could begin a tag
 * (docs/decisions/0086-a-markdown-export-quotes.md).
 */

/** By the number of the turn: its text and its tools, in the order in which they came. */
export type PartsOfTurns = ReadonlyMap<number, readonly RecordPart[]>;

/** What the agent said and did in a turn. While it runs, there is only its answer so far. */
export function partsOf({ n, reply }: TurnView, parts: PartsOfTurns): readonly RecordPart[] {
  return parts.get(n) ?? (reply === '' ? [] : [{ type: 'text', text: reply }]);
}

export function markdownLines(
  { conversation, turns, sessions, receipts }: ConversationView,
  parts: PartsOfTurns,
): string[] {
  const { key, id, title, createdAt, historyCount } = conversation;
  const receiptOf = new Map(receipts.map((receipt) => [receipt.turn, receipt]));
  const about = `${counted(historyCount, 'turn')} in ${counted(sessions.length, 'session')}, from ${time(createdAt)}`;
  const lines = [
    `# ${plain(title || key || id)}`,
    '',
    `Conversation \`${plain(id)}\`${key ? `, key ${plain(key)}` : ''}: ${about}.`,
  ];
  let session: string | null = null;
  for (const turn of turns) {
    const receipt = receiptOf.get(turn.n) ?? null;
    if (turn.sessionId === null || turn.sessionId !== session) lines.push(...seamLines(turn, receipt));
    lines.push(...turnLines(turn, parts));
    session = turn.imported ? null : (turn.sessionId ?? session);
  }
  return [...lines, ''];
}

function seamLines({ sessionId }: TurnView, receipt: PublicReceipt | null): string[] {
  if (receipt === null) return [];
  const where = sessionId === null ? 'No session' : `Session ${plain(sessionId)}`;
  return ['', '---', '', `*${where}: ${plain(receiptLine(receipt))}.*`];
}

function turnLines(turn: TurnView, parts: PartsOfTurns): string[] {
  const { n, agent, state, imported, createdAt, failure, recovered } = turn;
  return [
    ...['', `## Turn ${n}`, '', `${time(createdAt)}, ${plain(agent)}, ${state}${imported ? ', imported' : ''}`],
    ...['', ...turn.prompt.flatMap((block) => ['', ...blockLines(block)]).slice(1)],
    ...['', `**${plain(agent)}**`],
    ...partsOf(turn, parts).flatMap((part) => {
      if (part.type === 'text') return ['', ...quoted(part.text)];
      return part.type === 'tool' ? ['', `- ${plain(toolLine(part))}`] : [];
    }),
    ...(recovered ? ['', `*${plain(RECOVERED)}*`] : []),
    ...(failure === null ? [] : ['', `**${plain(`${failure.code}: ${failure.message}`)}**`]),
  ];
}

function blockLines(block: ContentBlock): string[] {
  if (block.type === 'text') return quoted(block.text);
  if (block.type === 'image') {
    const name = block.uri?.split('/').at(-1);
    return quoted(`[image ${block.mimeType}${name ? `, ${name}` : ''}]`);
  }
  if (block.type !== 'resource' || !('text' in block.resource)) return quoted(promptText([block]));
  const text = stripControls(block.resource.text).replace(/\n$/, '');
  // Longer than any run of backticks in the file, so that no line of it ends the block.
  const fence = '`'.repeat(Math.max(3, ...[...text.matchAll(/`+/g)].map(([run]) => run.length + 1)));
  return [
    ...quoted(`[file ${block.resource.uri}]`),
    '>',
    ...[fence, ...text.split('\n'), fence].map((line) => `> ${line}`),
  ];
}

/** Text of a name, a title or a sentence, in one line: it begins no markup. */
function plain(text: string): string {
  return oneLine(text).replaceAll(/[\\`*_<>[\]#|&~]/g, '\\$&');
}

/** What was said, as Markdown behind `>`. */
export function quoted(text: string): string[] {
  let fence = '';
  let spansAreWhole = true;
  const lines = stripControls(text).trimEnd().split('\n');
  return lines.map((line, index) => {
    if (index === 0 || lines[index - 1]?.trim() === '') spansAreWhole = paragraphAt(lines, index).every(hasWholeSpans);
    // An indented fence may belong to a list, and end with it. Any other fence ends only at its closing line.
    const [run = ''] = /^(?:`{3,}|~{3,})/.exec(line) ?? [];
    if (fence !== '') {
      if (run.startsWith(fence) && line.trim() === run) fence = '';
      return `> ${line}`;
    }
    if (run !== '' && !line.slice(run.length).includes('`')) {
      fence = run;
      return `> ${line.replaceAll('<', '&lt;')}`;
    }
    return line === '' ? '>' : `> ${withoutTags(line, spansAreWhole)}`;
  });
}

function paragraphAt(lines: readonly string[], from: number): readonly string[] {
  const end = lines.findIndex((line, index) => index > from && line.trim() === '');
  return lines.slice(from, end === -1 ? undefined : end);
}

const SPAN = /(`+)(?!`)(.*?)(?<!`)\1(?!`)/g;

/** Whether every backtick belongs to a code span that ends in this line. A `|` may split a table, a backslash may escape: then false. */
function hasWholeSpans(line: string): boolean {
  return !/[|\\]/.test(line) && !line.replaceAll(SPAN, '').includes('`');
}

/** `spansAreWhole`: what is between backticks is code, and stays as it is. */
function withoutTags(line: string, spansAreWhole: boolean): string {
  const escaped = (text: string) => text.replaceAll(/<(?=[A-Za-z/!?])/g, '&lt;');
  if (!spansAreWhole) return escaped(line);
  let [done, at] = ['', 0];
  for (const span of line.matchAll(SPAN)) {
    done += escaped(line.slice(at, span.index)) + span[0];
    at = span.index + span[0].length;
  }
  return done + escaped(line.slice(at));
}
