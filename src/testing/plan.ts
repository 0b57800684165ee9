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
  /** Null: the request is not too long. */
  readonly tooLong: { readonly tokens: number; readonly window: number } | null;
}

/** How to answer a request. */
export interface Plan {
  readonly waitMs: number;
  readonly failure: Failure | null;
  readonly chunks: readonly Chunk[];
  readonly tool: { readonly name: string; readonly input: unknown } | null;
  readonly breakOff: boolean;
}

/** Counts a line, and returns how often it has come before. This is the only state. */
export type Count = (line: string) => number;

/** Depends only on the request, except for directives with "N times". */
export function planFor(request: ModelRequest, count: Count): Plan {
  // An agent's side calls quote the person. The directives in them must not be followed, and must not be counted.
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

/** In the words of Anthropic's API, which agents look for. The other APIs replace them with their own. */
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
/** Agents ask for this when they compact a conversation. The answer has to contain what later questions are about. */
const SUMMARY = /\bcreate a detailed summary of (?:the|this|our) conversation\b/i;

function reply(text: string, request: Pick<ModelRequest, 'messages'>): string {
  if (!SUMMARY.test(text) && !QUESTION.test(text)) return acknowledgement(text);
  const words = codewordsIn(request);
  if (SUMMARY.test(text)) return `<summary>${words.map((word) => `The codeword is ${word}.`).join('\n')}</summary>`;
  return words.length > 0 ? `I have seen these codewords: ${words.join(', ')}.` : 'I have seen no codewords.';
}

/**
 * The answer to a prompt without a question and without directives. Different prompts have different answers, and no answer repeats its
 * prompt: so a codeword that is found later comes from the prompt itself.
 *
 * @example
 * import { acknowledgement } from 'throughline/testing';
 *
 * console.log(acknowledgement('Hello')); // what the stand-in answers to it
 */
export function acknowledgement(prompt: string): string {
  return `Acknowledged ${createHash('sha256').update(prompt.trim()).digest('hex').slice(0, 12)}.`;
}

/** The simplest value that a JSON schema allows, for side calls with a schema. Gemini writes the types in capitals. */
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
