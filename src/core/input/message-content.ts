import { ThroughlineError } from '../errors.ts';
import { type ContentBlock, isObject } from '../turn/content.ts';
import { shown } from './arguments.ts';

/** The content of a message in one form, whatever library it comes from. */

export type Content =
  | { readonly type: 'block'; readonly block: ContentBlock }
  | { readonly type: 'thought'; readonly text: string }
  | { readonly type: 'call'; readonly id: string; readonly name: string; readonly input: unknown }
  | {
      readonly type: 'result';
      readonly id: string;
      readonly name?: string;
      readonly output: string;
      readonly failed: boolean;
    };

type Fields = Readonly<Record<string, unknown>>;

/** Throws `invalid` for unknown content: nothing is left out silently. */
export function contentOf(message: Fields, at: string): Content[] {
  const { content, role } = message;
  if (content === undefined && Array.isArray(message.parts)) {
    throw fault(`${at} has "parts" and no "content"`, 'Convert it first: convertToModelMessages() of the AI SDK.');
  }
  const calls = callsOf(message, at);
  if (role === 'function' || (role === 'tool' && message.tool_call_id !== undefined)) {
    const id = text(message.tool_call_id) ?? text(message.name) ?? at;
    return [resultOf(id, message.name, content, false)];
  }
  if (typeof content === 'string') return [...(content === '' ? [] : [said(content)]), ...calls];
  if (content === null || content === undefined) {
    const refusal = text(message.refusal);
    if (refusal === null && calls.length === 0 && role !== 'assistant') throw fault(`${at} has no content`);
    return [...(refusal === null ? [] : [said(refusal)]), ...calls];
  }
  if (!Array.isArray(content)) throw fault(`${at} has a content that is neither a text nor a list of parts`);
  const parts = Array.from(content, (part, index) => partOf(part, `${at}, part ${index + 1}`));
  return [...parts.flat(), ...calls];
}

/** OpenAI has the calls of tools beside the content. */
function callsOf({ tool_calls: calls, function_call: old }: Fields, at: string): Content[] {
  const all = Array.isArray(calls) ? calls : isObject(old) ? [{ id: old.name, function: old }] : [];
  return Array.from(all, (call, index): Content => {
    const about = isObject(call) ? (call.function ?? call.custom) : null;
    const id = isObject(call) ? text(call.id) : null;
    if (!isObject(about) || id === null) throw fault(`${at} has a tool call (${index + 1}) that cannot be read`);
    return { type: 'call', id, name: text(about.name) ?? 'tool', input: fromJson(about.arguments ?? about.input) };
  });
}

function partOf(part: unknown, at: string): Content[] {
  if (!isObject(part)) throw fault(`${at} is not an object`);
  switch (part.type) {
    case 'text':
    case 'input_text':
    case 'output_text':
    case 'refusal':
      return [said(needed(part, part.type === 'refusal' ? 'refusal' : 'text', at))];
    case 'thinking':
    case 'reasoning':
      return [{ type: 'thought', text: text(part.thinking) ?? text(part.text) ?? '' }];
    case 'redacted_thinking':
      return []; // only the model's maker can read it
    case 'tool_use':
      return [{ type: 'call', id: needed(part, 'id', at), name: needed(part, 'name', at), input: part.input }];
    case 'tool-call': {
      const [id, name] = [needed(part, 'toolCallId', at), needed(part, 'toolName', at)];
      return [{ type: 'call', id, name, input: part.input ?? part.args }];
    }
    case 'tool_result':
      return [resultOf(needed(part, 'tool_use_id', at), undefined, part.content, part.is_error === true)];
    case 'tool-result':
      return [toolResult(part, at)];
    default:
      return [{ type: 'block', block: mediaOf(part, at) }];
  }
}

/** Of the AI SDK: `output` has a type and a value; older versions have a `result`. */
function toolResult(part: Fields, at: string): Content {
  const output = part.output ?? part.result;
  const type = isObject(output) ? text(output.type) : null;
  const isTyped = isObject(output) && type !== null && 'value' in output;
  const failed = part.isError === true || (isTyped && type.startsWith('error'));
  return resultOf(needed(part, 'toolCallId', at), part.toolName, isTyped ? output.value : output, failed);
}

function resultOf(id: string, name: unknown, output: unknown, failed: boolean): Content {
  const named = typeof name === 'string' ? { name } : {};
  return { type: 'result', id, ...named, output: outputText(output), failed };
}

/** The output of a tool as text. Anything but text is named in brackets. */
function outputText(output: unknown): string {
  if (typeof output === 'string') return output;
  if (output === undefined || output === null) return '';
  if (!Array.isArray(output)) return JSON.stringify(output);
  return output
    .map((item) => {
      if (!isObject(item) || typeof item.type !== 'string') return JSON.stringify(item);
      return text(item.text) ?? `[${item.type}]`;
    })
    .join('\n');
}

/** Images, sounds and files, of any of the libraries. */
function mediaOf(part: Fields, at: string): ContentBlock {
  const { type } = part;
  const source = isObject(part.source) ? part.source : null;
  const inner = isObject(part[String(type)]) ? (part[String(type)] as Fields) : part;
  const name = text(part.filename) ?? text(inner.filename) ?? text(part.title) ?? 'file';
  switch (type) {
    case 'image':
    case 'image_url':
    case 'input_image':
      if (source !== null) return sourceOf(source, name, at);
      return media(part.image ?? inner.url ?? part.image_url ?? part.data, mimeOf(part) ?? 'image/*', name, at);
    case 'document':
      if (source !== null) return sourceOf(source, name, at);
      break;
    case 'file':
    case 'input_file':
      return media(part.data ?? inner.file_data ?? inner.file_url, mimeOf(part) ?? 'application/*', name, at);
    case 'audio':
      return media(part.data, mimeOf(part) ?? 'audio/*', name, at);
    case 'input_audio':
      return media(inner.data, `audio/${text(inner.format) ?? '*'}`, name, at);
    case 'resource_link':
    case 'resource':
      return part as unknown as ContentBlock; // as our own prompts have it; checked with the prompt
  }
  throw fault(`${at} has the type ${shown(type)}, which is not known`);
}

/** Anthropic's sources of images and documents. */
function sourceOf(source: Fields, name: string, at: string): ContentBlock {
  const mimeType = text(source.media_type) ?? 'image/*';
  if (source.type === 'text') return { type: 'resource', resource: { uri: name, text: needed(source, 'data', at) } };
  if (source.type === 'content') return { type: 'resource', resource: { uri: name, text: outputText(source.content) } };
  return media(source.data ?? source.url, mimeType, name, at);
}

const DATA_URL = /^data:([^;,]*)(?:;[^;,]*)*;base64,(.*)$/s;

/** Content by its bytes (base64, a data URL, an array of bytes) or by its address. */
function media(data: unknown, mimeType: string, name: string, at: string): ContentBlock {
  const value = data instanceof URL ? data.href : (base64Of(data) ?? data);
  if (typeof value !== 'string' || value === '') {
    throw fault(`${at} has no data`, 'A file that only an API stores cannot be imported: leave it out.');
  }
  if (/^https?:/.test(value)) return { type: 'resource_link', uri: value, name };
  const [, named = mimeType, bytes = value] = DATA_URL.exec(value) ?? [];
  if (named.startsWith('image/')) return { type: 'image', data: bytes, mimeType: imageType(named, bytes) };
  if (named.startsWith('audio/')) return { type: 'audio', data: bytes, mimeType: named };
  return { type: 'resource', resource: { uri: name, blob: bytes, mimeType: named } };
}

/** How the bytes of images begin, in base64. */
const IMAGES = [
  ['iVBORw', 'image/png'],
  ['/9j/', 'image/jpeg'],
  ['R0lGOD', 'image/gif'],
  ['UklGR', 'image/webp'],
] as const;

function imageType(named: string, bytes: string): string {
  if (named !== 'image/*') return named;
  return IMAGES.find(([begin]) => bytes.startsWith(begin))?.[1] ?? 'image/png';
}

/** Null: `data` is not bytes. */
function base64Of(data: unknown): string | null {
  const bytes = data instanceof ArrayBuffer ? new Uint8Array(data) : data;
  if (!(bytes instanceof Uint8Array)) return null;
  let binary = '';
  for (let from = 0; from < bytes.length; from += 8_192) {
    binary += String.fromCharCode(...bytes.subarray(from, from + 8_192));
  }
  return btoa(binary);
}

/** The same messages in a form that JSON can hold: bytes as base64, addresses as text. */
export function asJsonMessages(value: unknown): unknown {
  if (value instanceof URL) return value.href;
  const bytes = base64Of(value);
  if (bytes !== null) return bytes;
  if (Array.isArray(value)) return value.map(asJsonMessages);
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, asJsonMessages(inner)]));
}

export function fault(what: string, hint?: string): ThroughlineError {
  return new ThroughlineError('invalid', `These messages cannot be imported: ${what}.`, {
    hint:
      hint ?? 'Each needs a role (user, assistant, tool) and a content, as the AI SDK, OpenAI or Anthropic have it.',
  });
}

function said(words: string): Content {
  return { type: 'block', block: { type: 'text', text: words } };
}

function mimeOf({ mediaType, mimeType, media_type }: Fields): string | null {
  return text(mediaType) ?? text(mimeType) ?? text(media_type);
}

function needed(part: Fields, field: string, at: string): string {
  const value = part[field];
  if (typeof value === 'string') return value;
  throw fault(`${at} (${shown(part.type)}) needs the text field "${field}"`);
}

function text(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}

/** Arguments of OpenAI's tools are JSON in a text. */
function fromJson(value: unknown): unknown {
  if (typeof value !== 'string') return value;
  try {
    return JSON.parse(value);
  } catch {
    return value;
  }
}
