import type { ContentBlock, Prompt } from 'throughline/client';

/** A file that is attached to a prompt. */
export interface Attachment {
  readonly id: string;
  readonly name: string;
  readonly block: ContentBlock;
}

const MEBIBYTE = 2 ** 20;
/** The largest request that the server accepts for a prompt. */
const MOST_OF_PROMPT = 8 * MEBIBYTE;
/** Room for the rest of the request. */
const REST_OF_REQUEST = 4_096;

const WRITE_ITS_PATH = 'Write its path in the prompt instead: the agent can read it.';

/** The files in the order in which they were added, and then the text. */
export function promptOf(text: string, attachments: readonly Attachment[]): Prompt {
  const blocks = attachments.map(({ block }) => block);
  return text.trim() === '' ? blocks : [...blocks, { type: 'text', text }];
}

/** Why the prompt is too large to be sent; null: it is not. */
export function tooMuch(prompt: Prompt): string | null {
  const bytes = new TextEncoder().encode(JSON.stringify(prompt)).length + REST_OF_REQUEST;
  if (bytes <= MOST_OF_PROMPT) return null;
  return `The prompt and its files have ${mebibytes(bytes)}; the limit is ${mebibytes(MOST_OF_PROMPT)}. Attach fewer files, or write their paths in the prompt.`;
}

/** An image or a text as a block. Throws an error that names the file and says what to do instead. */
export function blockOf(name: string, bytes: Uint8Array<ArrayBuffer>): ContentBlock {
  // A larger file could not be sent, and would make the page slow.
  if (bytes.length > MOST_OF_PROMPT) {
    throw new Error(
      `${name} has ${mebibytes(bytes.length)}; the limit is ${mebibytes(MOST_OF_PROMPT)}. ${WRITE_ITS_PATH}`,
    );
  }
  const mimeType = imageType(bytes);
  const uri = `file:///${encodeURIComponent(name)}`;
  if (mimeType !== null) return { type: 'image', data: base64(bytes), mimeType, uri };
  return { type: 'resource', resource: { uri, text: textOf(name, bytes) } };
}

/** The type of an image that agents take, by its first bytes: the extension of the name may be wrong. Null: it is none. */
function imageType(bytes: Uint8Array): string | null {
  const at = (index: number, text: string) => [...text].every((char, i) => bytes[index + i] === char.charCodeAt(0));
  if (at(0, '\u0089PNG\r\n\u001a\n')) return 'image/png';
  if (at(0, '\u00ff\u00d8\u00ff')) return 'image/jpeg';
  if (at(0, 'GIF87a') || at(0, 'GIF89a')) return 'image/gif';
  return at(0, 'RIFF') && at(8, 'WEBP') ? 'image/webp' : null;
}

function textOf(name: string, bytes: Uint8Array<ArrayBuffer>): string {
  try {
    if (!bytes.includes(0)) return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    // The same error as for a file with zero bytes.
  }
  throw new Error(`${name} is neither text in UTF-8 nor a PNG, JPEG, GIF or WebP image. ${WRITE_ITS_PATH}`);
}

function base64(bytes: Uint8Array): string {
  let binary = '';
  // In pieces: a function takes only so many arguments.
  for (let at = 0; at < bytes.length; at += 0x8000) {
    binary += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  }
  return btoa(binary);
}

function mebibytes(bytes: number): string {
  return `${Math.ceil((bytes / MEBIBYTE) * 10) / 10} MiB`;
}

/** The text of a prompt, for an editing field. */
export function wordsIn(prompt: Prompt): string {
  return prompt.flatMap((block) => (block.type === 'text' ? [block.text] : [])).join('\n');
}

/** The same prompt with another text. */
export function withWords(prompt: Prompt, text: string): Prompt {
  return promptOf(text, attachmentsIn(prompt));
}

/** The attachments of a prompt, to send it again. */
export function attachmentsIn(prompt: Prompt): Attachment[] {
  return prompt
    .filter(({ type }) => type !== 'text')
    .map((block, index) => ({ id: `block ${index}`, name: nameOf(block), block }));
}

function nameOf(block: ContentBlock): string {
  if (block.type === 'resource_link') return block.name;
  const uri = block.type === 'resource' ? block.resource.uri : block.type === 'image' ? block.uri : undefined;
  return fileNameIn(uri) ?? block.type;
}

/** The last part of a URI or a path; null: it has none. */
export function fileNameIn(uri: string | undefined): string | null {
  const name = uri?.split('/').at(-1) ?? '';
  try {
    return decodeURIComponent(name) || null;
  } catch {
    return name; // a path that is not encoded
  }
}
