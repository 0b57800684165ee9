import { asSentence, ThroughlineError, upperFirst } from '../errors.ts';
import { shown } from '../input/arguments.ts';
import { asTitle } from '../input/names.ts';
import { checkWellFormed } from '../input/well-formed.ts';

/**
 * One block of a prompt, as the Agent Client Protocol has it. Unknown extra fields are kept as given.
 *
 * @example
 * import type { ContentBlock } from 'throughline';
 *
 * const picture: ContentBlock = { type: 'image', mimeType: 'image/png', data: 'aGVsbG8=' };
 * await chat.ask([{ type: 'text', text: 'What is this?' }, picture]);
 */
export type ContentBlock =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'image'; readonly data: string; readonly mimeType: string; readonly uri?: string }
  | { readonly type: 'audio'; readonly data: string; readonly mimeType: string }
  | { readonly type: 'resource_link'; readonly uri: string; readonly name: string; readonly mimeType?: string }
  | { readonly type: 'resource'; readonly resource: EmbeddedResource };

export type ImageBlock = Extract<ContentBlock, { type: 'image' }>;

export type EmbeddedResource =
  | { readonly uri: string; readonly text: string; readonly mimeType?: string }
  | { readonly uri: string; readonly blob: string; readonly mimeType?: string };

/**
 * What a person or a program says to an agent in one turn. Never empty.
 *
 * @example
 * import type { Prompt } from 'throughline';
 *
 * const prompt: Prompt = [{ type: 'text', text: 'Hello' }];
 * await chat.ask(prompt); // the same as chat.ask('Hello')
 */
export type Prompt = readonly ContentBlock[];

const REQUIRED: Record<ContentBlock['type'], readonly string[]> = {
  text: ['text'],
  image: ['data', 'mimeType'],
  audio: ['data', 'mimeType'],
  resource_link: ['uri', 'name'],
  resource: [],
};

/** Accepts a string or a list of blocks. Throws `invalid` with the place of the fault. */
export function parsePrompt(input: unknown): Prompt {
  const blocks = parseSaid(input);
  // Agents silently leave out data that they cannot read, or keep it in their session and fail with every later prompt.
  for (const [index, block] of blocks.entries()) checkData(block, `prompt block ${index + 1}`);
  return blocks;
}

/** The same for a prompt of an earlier turn, whose data may be invalid. */
export function parseSaid(input: unknown): Prompt {
  if (typeof input === 'string') {
    checkWellFormed(input, 'The prompt');
    return parseSaid([{ type: 'text', text: input }]);
  }
  if (!Array.isArray(input) || input.length === 0) throw invalid('a prompt is a text or a non-empty list of blocks');
  // `Array.from`, because `map` skips the holes of an array.
  const blocks = Array.from(input, parseBlock);
  if (!isJson(input)) throw invalid('the prompt has a value that JSON cannot hold');
  for (const [index, block] of blocks.entries()) checkWellFormed(block, `Prompt block ${index + 1}`);
  if (blocks.every((block) => block.type === 'text' && block.text.trim() === '')) throw invalid('the prompt is empty');
  return blocks;
}

function isJson(value: unknown): boolean {
  try {
    return JSON.stringify(value) !== undefined;
  } catch {
    return false;
  }
}

function parseBlock(input: unknown, index: number): ContentBlock {
  const at = `prompt block ${index + 1}`;
  if (!isObject(input)) throw invalid(`${at} is not an object`);
  const type = input.type;
  if (typeof type !== 'string' || !Object.hasOwn(REQUIRED, type)) {
    throw invalid(`${at} has the type ${shown(type)}; known are ${Object.keys(REQUIRED).join(', ')}`);
  }
  for (const field of REQUIRED[type as ContentBlock['type']]) {
    if (typeof input[field] !== 'string') throw invalid(`${at} (${type}) needs the text field "${field}"`);
  }
  if (type === 'resource') checkResource(input.resource, at);
  return input as unknown as ContentBlock;
}

function checkResource(resource: unknown, at: string): void {
  if (!isObject(resource) || typeof resource.uri !== 'string') throw invalid(`${at} (resource) needs resource.uri`);
  const bodies = [resource.text, resource.blob].filter((body) => typeof body === 'string');
  if (bodies.length !== 1) throw invalid(`${at} (resource) needs either resource.text or resource.blob`);
}

function checkData(block: ContentBlock, at: string): void {
  if (block.type === 'image' || block.type === 'audio') checkBase64(block.data, `${at} (${block.type}.data)`);
  if (block.type === 'resource' && 'blob' in block.resource) {
    if (block.resource.blob !== '') checkBase64(block.resource.blob, `${at} (resource.blob)`);
  }
}

function checkBase64(data: string, at: string): void {
  if (data === '') throw invalid(`${at} is empty`);
  if (data.startsWith('data:'))
    throw notBase64(at, 'it is a data URL', 'Leave out what comes before the comma, and the comma.');
  const [padding = ''] = /=*$/.exec(data.slice(-2)) ?? [];
  const wrong = data.slice(0, data.length - padding.length).search(/[^A-Za-z0-9+/]/);
  if (wrong !== -1) throw notBase64(at, `it has ${shown(data.charAt(wrong))} at index ${wrong}`);
  if (data.length % 4 !== 0) throw notBase64(at, `it has ${data.length} characters, which is not a multiple of 4`);
}

const HOW_TO_ENCODE =
  'In JavaScript: bytes.toString("base64") of a Buffer. In Python: base64.b64encode(data).decode().';

function notBase64(at: string, why: string, hint = HOW_TO_ENCODE): ThroughlineError {
  return new ThroughlineError('invalid', upperFirst(asSentence(`${at} is not base64: ${why}`)), { hint });
}

/** A prompt as readable text. Other blocks are named in brackets. */
export function promptText(prompt: Prompt): string {
  return prompt.map(blockText).join('\n');
}

function blockText(block: ContentBlock): string {
  switch (block.type) {
    case 'text':
      return block.text;
    case 'image':
      return `[image ${block.mimeType}]`;
    case 'audio':
      return `[audio ${block.mimeType}]`;
    case 'resource_link':
      return `[link ${block.name}: ${block.uri}]`;
    case 'resource':
      return 'text' in block.resource
        ? `[file ${block.resource.uri}]\n${block.resource.text}`
        : `[file ${block.resource.uri}]`;
  }
}

const TITLE_LENGTH = 80;
/** From the first visible character to the end of its line, which may have megabytes. */
const FIRST_LINE = /[^\s\p{Cc}].{0,20000}/u;

/** A title for a conversation without one: the first line of text in its first prompt, or the name of another block. */
export function titleOf(prompt: Prompt): string {
  const words = promptText(prompt.filter(({ type }) => type === 'text'));
  const line = FIRST_LINE.exec(words) ?? FIRST_LINE.exec(promptText(prompt));
  return asTitle(line?.[0] ?? '', TITLE_LENGTH);
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function invalid(message: string): ThroughlineError {
  return new ThroughlineError('invalid', upperFirst(asSentence(message)));
}
