import { isOneLine } from '../../src/core/turn/quoted.ts';

/** Parses a transcript block: its turns, from the headings and the indented text below them. */

export interface ParsedTurn {
  n: number;
  unknownBefore: boolean;
  /** The parts of the prompt: texts, and images by their number. */
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

/** Throws if a line is not valid in its place. */
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
    if (turns.at(-1)?.n !== Number(n)) turns.push(emptyTurn(Number(n)));
    addSection(turns.at(-1) as ParsedTurn, rest, text.length === 0 ? '' : unquoted(text.join('\n')));
  }
  return { nonce: nonce as string, turns };
}

const LINE_END = '\\r\\n|[\\n\\v\\f\\r\\u001c-\\u001e\\u0085\\u2028\\u2029]';

/** The text without its indentation. Throws if a line is not indented. */
export function unquoted(text: string): string {
  const parts = text.split(new RegExp(`(${LINE_END})`));
  return parts
    .map((part, index) => {
      if (index % 2 === 1 || part === '') return part;
      return part.startsWith('  ') ? part.slice(2) : fault('an indented line', part);
    })
    .join('');
}

function emptyTurn(n: number): ParsedTurn {
  return { n, unknownBefore: false, prompt: [], tools: [], answer: null, notCompleted: null };
}

function addSection(turn: ParsedTurn, heading: string, text: string): void {
  const tool = turn.tools.at(-1);
  const [, agent] = /^answer of (.*):$/.exec(heading) ?? [];
  if (heading === 'person:') turn.prompt.push(text);
  else if (agent !== undefined) turn.answer = { agent: parseName(agent), text };
  else if (heading === 'input of this tool:' && tool) tool.input = text;
  else if (heading === 'output of this tool:' && tool) tool.output = text;
  else if (text === '') addHeading(turn, heading);
  else fault('nothing below this heading', heading);
}

/** Adds a heading that has no text below it. */
function addHeading(turn: ParsedTurn, heading: string): void {
  const [, image, mimeType = ''] = /^image (\d+): (.*)$/.exec(heading) ?? [];
  const [, name, , target, status = ''] = TOOL.exec(heading) ?? [];
  const [, ended] = /^did not complete: (.*)\.$/.exec(heading) ?? [];
  if (image !== undefined) turn.prompt.push({ image: Number(image), mimeType: parseName(mimeType) });
  else if (name !== undefined) {
    const named = { name: parseName(name), target: target === undefined ? null : parseName(target), status };
    turn.tools.push({ ...named, input: '', output: '' });
  } else if (ended !== undefined) turn.notCompleted = ended;
  else if (heading.startsWith('before it, more was said')) turn.unknownBefore = true;
  else fault('a heading', heading);
}

const TOOL = /^tool ("(?:[^"\\]|\\.)*"|[^ :"]+)( (.*))?: (completed|failed|unknown)$/;

/** A name in a heading: as it is, or as a JSON string. Throws if it has several lines. */
function parseName(text: string): string {
  if (!isOneLine(text)) fault('one line', text);
  return text.startsWith('"') ? JSON.parse(text) : text;
}

function fault(expected: string, found: unknown): never {
  throw new Error(`Expected ${expected}: ${JSON.stringify(found)}`);
}
