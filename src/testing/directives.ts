/**
 * An instruction to the stand-in in a line of a prompt: see the table in docs/stand-in-model.md.
 *
 * @example
 * import { startModel } from 'throughline/testing';
 *
 * const model = await startModel(); // the agent is sent "model: fail 529 2 times"
 * console.log(model.lastRequest()?.answer);
 */
export type Directive =
  | { readonly kind: 'say'; readonly text: string }
  | {
      readonly kind: 'stream';
      readonly chunks: number;
      readonly ms: number;
      readonly times: number;
      readonly line: string;
    }
  | { readonly kind: 'tool'; readonly name: string; readonly input: unknown; readonly always: boolean }
  | { readonly kind: 'slow'; readonly ms: number; readonly times: number; readonly line: string }
  | { readonly kind: 'fail'; readonly status: number; readonly times: number; readonly line: string }
  | { readonly kind: 'break' | 'too-long'; readonly times: number; readonly line: string };

export const DIRECTIVE_LINE = /^[ \t]*model:[ \t]*(.*?)[ \t]*$/gm;

/** Every directive of a text, in order. The stand-in answers an unknown one with an error text; it never ignores it. */
export function directivesOf(text: string): Directive[] {
  return [...text.matchAll(DIRECTIVE_LINE)].map(([, line = '']) => parse(line));
}

function parse(line: string): Directive {
  for (const [pattern, make] of GRAMMAR) {
    const match = pattern.exec(line);
    const made = match && make(match.slice(1), line);
    if (made) return made;
  }
  return { kind: 'say', text: `Unknown directive: ${line}` };
}

const TIMES = String.raw`(?: (\d+) times)?(?: #.*)?`;
const times = (given: string | undefined) => (given === undefined ? Number.POSITIVE_INFINITY : Number(given));

const GRAMMAR: readonly (readonly [RegExp, (parts: (string | undefined)[], line: string) => Directive | null])[] = [
  [/^say (.*)$/, ([text = '']) => ({ kind: 'say', text })],
  [
    new RegExp(`^stream (\\d+) (\\d+) ?ms${TIMES}$`),
    ([chunks, ms, n], line) => ({ kind: 'stream', chunks: Number(chunks), ms: Number(ms), times: times(n), line }),
  ],
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

/** The directives that are due after this number of tool results: those up to and including the next tool call. */
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
