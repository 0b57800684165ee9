import { createHash } from 'node:crypto';
import { isObject } from '../core/turn/content.ts';
import { type Directive, directivesOf, dueAfter } from './directives.ts';
import { codewordsIn, lastOfPerson } from './person.ts';
import type { Json, ModelRequest } from './request.ts';

/** A piece of the answer's text, and how long to wait before it. */
export interface Chunk {
  readonly text: string;
  readonly waitMs: number;
}

export interface Failure {
  readonly status: number;
  readonly message: string;
  /** Null: the length of the request is not what is wrong. */
  readonly tooLong: { readonly tokens: number; readonly window: number } | null;
}

/** What to do about a request. */
export interface Plan {
  readonly waitMs: number;
  readonly failure: Failure | null;
  readonly chunks: readonly Chunk[];
  readonly tool: { readonly name: string; readonly input: unknown } | null;
  readonly breakOff: boolean;
}

/** Says how often a line has come before this time. The only state there is. */
export type Count = (line: string) => number;

/** What the request is answered with: from its body alone, but for directives with "N times". */
export function planFor(request: ModelRequest, count: Count): Plan {
  // An agent's own errands quote the person, and must neither follow nor use up the directives in there.
  if (request.side) return saying(request.schema ? JSON.stringify(filled(request.schema)) : 'A conversation');
  const { text, results } = lastOfPerson(request);
  const due = dueAfter(results, directivesOf(text));
  const plan = due.reduce<Plan>((soFar, directive) => follow(soFar, directive, request.tools, count), saying(null));
  if (plan.failure || plan.tool || plan.chunks.length > 0) return plan;
  return { ...plan, chunks: saying(reply(text, request)).chunks };
}

function follow(plan: Plan, directive: Directive, offered: readonly string[], count: Count): Plan {
  const say = (text: string) => ({ ...plan, chunks: [...plan.chunks, { text, waitMs: 0 }] });
  if ('times' in directive && count(directive.line) >= directive.times) return plan;
  switch (directive.kind) {
    case 'say':
      return say(directive.text);
    case 'stream': {
      const { chunks, ms } = directive;
      const pieces = Array.from({ length: chunks }, (_, i) => ({ text: `chunk ${i + 1} `, waitMs: i === 0 ? 0 : ms }));
      return { ...plan, chunks: [...plan.chunks, ...pieces] };
    }
    case 'tool':
      if (!directive.always && !offered.includes(directive.name)) return say(`I have no tool ${directive.name} here.`);
      return { ...plan, tool: { name: directive.name, input: directive.input } };
    case 'slow':
      return { ...plan, waitMs: plan.waitMs + directive.ms };
    case 'break':
      return { ...plan, breakOff: true };
    case 'too-long':
      return { ...plan, failure: plan.failure ?? TOO_LONG };
    case 'fail':
      return {
        ...plan,
        failure: plan.failure ?? { status: directive.status, message: 'failed as asked', tooLong: null },
      };
  }
}

/** In the words of Anthropic's model, which agents look for; other ways of speaking have words of their own. */
export function tooLong(tokens: number, window: number): Failure {
  const message = `prompt is too long: ${tokens} tokens > ${window} maximum`;
  return { status: 400, message, tooLong: { tokens, window } };
}
const TOO_LONG = tooLong(200_001, 200_000);

function saying(text: string | null): Plan {
  const chunks = text === null ? [] : (text.match(/[\s\S]{1,400}/g) ?? []).map((piece) => ({ text: piece, waitMs: 0 }));
  return { waitMs: 0, failure: null, chunks, tool: null, breakOff: false };
}

const QUESTION = /\b(?:which|what)\b[^.\n]*\bcodewords?\b(?!\s*(?:is\b|:))/i;
/** What agents ask for when they compact a conversation: the answer has to carry on what is asked for later. */
const SUMMARY = /\bcreate a detailed summary of (?:the|this|our) conversation\b/i;

function reply(text: string, request: Pick<ModelRequest, 'messages'>): string {
  if (!SUMMARY.test(text) && !QUESTION.test(text)) return acknowledgement(text);
  const words = codewordsIn(request);
  if (SUMMARY.test(text)) return `<summary>${words.map((word) => `The codeword is ${word}.`).join('\n')}</summary>`;
  return words.length > 0 ? `I have seen these codewords: ${words.join(', ')}.` : 'I have seen no codewords.';
}

/**
 * What a prompt without question and directives is answered with. Different prompts have different answers, and no answer
 * repeats its prompt: a codeword that is seen later was in the prompt itself.
 *
 * @example
 * import { acknowledgement } from 'throughline/testing';
 *
 * console.log(acknowledgement('Hello')); // what the stand-in answers to it
 */
export function acknowledgement(prompt: string): string {
  return `Acknowledged ${createHash('sha256').update(prompt.trim()).digest('hex').slice(0, 12)}.`;
}

/** The plainest value that a JSON schema (or Gemini's, whose types are in capitals) allows, for errands that want their answer in a certain form. */
function filled(schema: unknown): unknown {
  if (!isObject(schema)) return null;
  if ('const' in schema) return schema.const;
  if (Array.isArray(schema.enum)) return schema.enum[0];
  const [choice] = [schema.anyOf, schema.oneOf].flatMap((list) => (Array.isArray(list) ? list : []));
  if (choice !== undefined) return filled(choice);
  const type = Array.isArray(schema.type) ? schema.type[0] : schema.type;
  return PLAIN[String(type).toLowerCase()]?.(schema) ?? null;
}

const PLAIN: Record<string, (schema: Json) => unknown> = {
  string: () => 'a-conversation',
  number: () => 0,
  integer: () => 0,
  boolean: () => false,
  array: () => [],
  object: ({ properties }) =>
    Object.fromEntries(Object.entries(isObject(properties) ? properties : {}).map(([key, of]) => [key, filled(of)])),
};
