import { isOneLine } from '../../src/core/turn/quoted.ts';

/** Reads a transcript block back: the turns that its headings and the indented text below them say. */

export interface ParsedTurn {
  n: number;
  unknownBefore: boolean;
  /** What the person said: texts, and images by their number. */
  prompt: (string | { image: number; mimeType: string })[];
  tools: ParsedTool[];
  answer: { agent: string; text: string } | null;
  notCompleted: string | null;
}

interface ParsedTool {
  name: string;
  target: string | null;
  status: string;
  input: string;
  output: string;
}

export interface ParsedBlock {
  nonce: string;
  turns: ParsedTurn[];
}

/** Throws where a line is not what a block can have there. */
export function parseBlock(block: string): ParsedBlock {
  const [, nonce] = /^<conversation-record ([0-9a-f]+)>\n/.exec(block) ?? fault('the first line', block);
  const closing = `\n</conversation-record ${nonce}>`;
  if (!block.endsWith(closing)) fault('the last line', block);
  const lines = block.slice(0, -closing.length).split('\n');
  const from = lines.indexOf('') + 1;
  const turns: ParsedTurn[] = [];
  let at = from;
  while (at < lines.length) {
    const [, n = '', rest = ''] = /^\[turn (\d+)\] (.*)$/s.exec(lines[at] as string) ?? fault('a heading', lines[at]);
    at += 1;
    const begin = at;
    while (at < lines.length && !lines[at]?.startsWith('[turn ')) at += 1;
    const text = lines.slice(begin, at);
    const next = /^\[turn (\d+)\]/.exec(lines[at] ?? '')?.[1];
    // One empty line is between two turns.
    if (next !== undefined && next !== n && text.pop() !== '') fault('an empty line before', lines[at]);
    if (turns.at(-1)?.n !== Number(n)) turns.push(noTurn(Number(n)));
    addTo(turns.at(-1) as ParsedTurn, rest, text.length === 0 ? '' : unquoted(text.join('\n')));
  }
  return { nonce: nonce as string, turns };
}

const BREAK = '\\r\\n|[\\n\\v\\f\\r\\u001c-\\u001e\\u0085\\u2028\\u2029]';

/** Without the indentation; a line without it is a fault. */
export function unquoted(text: string): string {
  const parts = text.split(new RegExp(`(${BREAK})`));
  return parts
    .map((part, i) => {
      if (i % 2 === 1 || part === '') return part;
      return part.startsWith('  ') ? part.slice(2) : fault('an indented line', part);
    })
    .join('');
}

function noTurn(n: number): ParsedTurn {
  return { n, unknownBefore: false, prompt: [], tools: [], answer: null, notCompleted: null };
}

function addTo(turn: ParsedTurn, heading: string, text: string): void {
  const tool = turn.tools.at(-1);
  const [, agent] = /^answer of (.*):$/.exec(heading) ?? [];
  if (heading === 'person:') turn.prompt.push(text);
  else if (agent !== undefined) turn.answer = { agent: said(agent), text };
  else if (heading === 'input of this tool:' && tool) tool.input = text;
  else if (heading === 'output of this tool:' && tool) tool.output = text;
  else if (text === '') addLine(turn, heading);
  else fault('nothing below this heading', heading);
}

/** What has nothing below it. */
function addLine(turn: ParsedTurn, heading: string): void {
  const [, image, mimeType = ''] = /^image (\d+): (.*)$/.exec(heading) ?? [];
  const [, name, , target, status = ''] = TOOL.exec(heading) ?? [];
  const [, ended] = /^did not complete: (.*)\.$/.exec(heading) ?? [];
  if (image !== undefined) turn.prompt.push({ image: Number(image), mimeType: said(mimeType) });
  else if (name !== undefined) {
    const named = { name: said(name), target: target === undefined ? null : said(target), status };
    turn.tools.push({ ...named, input: '', output: '' });
  } else if (ended !== undefined) turn.notCompleted = ended;
  else if (heading.startsWith('before it, more was said')) turn.unknownBefore = true;
  else fault('a heading', heading);
}

const TOOL = /^tool ("(?:[^"\\]|\\.)*"|[^ :"]+)( (.*))?: (completed|failed|unknown)$/;

function said(text: string): string {
  if (!isOneLine(text)) fault('one line', text);
  return text.startsWith('"') ? JSON.parse(text) : text;
}

function fault(expected: string, found: unknown): never {
  throw new Error(`Expected ${expected}: ${JSON.stringify(found)}`);
}
