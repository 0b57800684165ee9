/**
 * What a prompt can tell the stand-in to do: one directive a line, done in the order of the lines (also in docs/stand-in-model.md).
 *
 * | directive | what happens |
 * |---|---|
 * | `model: say TEXT` | answers TEXT |
 * | `model: stream 20 50ms` | answers "chunk 1 chunk 2 …", 20 pieces with 50 ms between them |
 * | `model: tool NAME {"key":"value"}` | calls the tool, if the request offers it; a tool that takes plain text gets a JSON string |
 * | `model: tool! NAME {…}` | calls it also when it was not offered |
 * | `model: slow 2000ms` | waits before it answers; `slow 2000ms 1 times` only the first time |
 * | `model: fail 529` | answers with that status; `fail 529 2 times` only the first two times |
 * | `model: break` | breaks the connection off in the middle of the answer; `break 1 times` only the first time |
 * | `model: too-long` | refuses the request as too long; `too-long 1 times` only the first time |
 *
 * A tool call ends an answer. When the request comes again with the tool's result, the lines after it are done; when there
 * are none left, the model answers as if there had been no directives.
 *
 * "N times" is the only thing that is remembered between requests. It is counted by the text of the line, so a line that is
 * to be counted apart needs a text of its own: `model: fail 529 2 times #second`.
 */
export type Directive =
  | { readonly kind: 'say'; readonly text: string }
  | { readonly kind: 'stream'; readonly chunks: number; readonly ms: number }
  | { readonly kind: 'tool'; readonly name: string; readonly input: unknown; readonly always: boolean }
  | { readonly kind: 'slow'; readonly ms: number; readonly times: number; readonly line: string }
  | { readonly kind: 'fail'; readonly status: number; readonly times: number; readonly line: string }
  | { readonly kind: 'break' | 'too-long'; readonly times: number; readonly line: string };

export const DIRECTIVE_LINE = /^[ \t]*model:[ \t]*(.*?)[ \t]*$/gm;

/** Every directive of a text, in order. A line that is none of them is answered with a complaint, never passed over. */
export function directivesOf(text: string): Directive[] {
  return [...text.matchAll(DIRECTIVE_LINE)].map(([, line = '']) => parse(line));
}

function parse(line: string): Directive {
  for (const [pattern, make] of GRAMMAR) {
    const match = pattern.exec(line);
    const made = match && make(match.slice(1), line);
    if (made) return made;
  }
  return { kind: 'say', text: `This is no directive that I know: ${line}` };
}

const TIMES = String.raw`(?: (\d+) times)?(?: #.*)?`;
const times = (given: string | undefined) => (given === undefined ? Number.POSITIVE_INFINITY : Number(given));

const GRAMMAR: readonly (readonly [RegExp, (parts: (string | undefined)[], line: string) => Directive | null])[] = [
  [/^say (.*)$/, ([text = '']) => ({ kind: 'say', text })],
  [/^stream (\d+) (\d+) ?ms$/, ([chunks, ms]) => ({ kind: 'stream', chunks: Number(chunks), ms: Number(ms) })],
  [/^tool(!?) (\S+)(?: (.*))?$/, ([always, name = '', input = '{}']) => tool(name, input, always === '!')],
  [
    new RegExp(`^slow (\\d+) ?ms${TIMES}$`),
    ([ms, n], line) => ({ kind: 'slow', ms: Number(ms), times: times(n), line }),
  ],
  [
    new RegExp(`^fail (\\d{3})${TIMES}$`),
    ([status, n], line) => ({ kind: 'fail', status: Number(status), times: times(n), line }),
  ],
  [new RegExp(`^break${TIMES}$`), ([n], line) => ({ kind: 'break', times: times(n), line })],
  [new RegExp(`^too-long${TIMES}$`), ([n], line) => ({ kind: 'too-long', times: times(n), line })],
];

function tool(name: string, input: string, always: boolean): Directive | null {
  try {
    return { kind: 'tool', name, input: JSON.parse(input), always };
  } catch {
    return null;
  }
}

/** The directives that are due once so many tools have answered: those up to and with the next tool call. */
export function dueAfter(results: number, directives: readonly Directive[]): Directive[] {
  const due: Directive[] = [];
  let tools = 0;
  for (const directive of directives) {
    if (tools === results) due.push(directive);
    if (directive.kind === 'tool') tools += 1;
    if (tools > results) break;
  }
  return due;
}
