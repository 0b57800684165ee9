import type { ContentBlock, Prompt } from 'throughline/client';

/** A file that goes with a prompt. */
export interface Attachment {
  readonly id: string;
  readonly name: string;
  readonly block: ContentBlock;
}

const MEBIBYTE = 2 ** 20;
/** What the server takes for one prompt. */
const MOST_OF_PROMPT = 8 * MEBIBYTE;
/** What a request has besides the prompt. */
const REST_OF_REQUEST = 4_096;

const IN_WORDS = 'Name its path in the prompt, and let the agent read it.';

/** The files in the order in which they were added, and then the words: what comes last is what the person says. */
export function promptOf(text: string, attachments: readonly Attachment[]): Prompt {
  const blocks = attachments.map(({ block }) => block);
  return text.trim() === '' ? blocks : [...blocks, { type: 'text', text }];
}

/** Why these cannot be sent together; null: they can. */
export function tooMuch(prompt: Prompt): string | null {
  const bytes = new TextEncoder().encode(JSON.stringify(prompt)).length + REST_OF_REQUEST;
  if (bytes <= MOST_OF_PROMPT) return null;
  return `The prompt and its files have ${mebibytes(bytes)} together, and ${mebibytes(MOST_OF_PROMPT)} can be sent. Attach fewer files, or name their paths in the prompt.`;
}

/** An image or a text as a block. Throws with the name of the file and what to do instead. */
export function blockOf(name: string, bytes: Uint8Array<ArrayBuffer>): ContentBlock {
  // A larger one would never be sent, and would make the page slow.
  if (bytes.length > MOST_OF_PROMPT) {
    throw new Error(
      `${name} has ${mebibytes(bytes.length)}, and ${mebibytes(MOST_OF_PROMPT)} can be sent. ${IN_WORDS}`,
    );
  }
  const mimeType = imageType(bytes);
  const uri = `file:///${encodeURIComponent(name)}`;
  if (mimeType !== null) return { type: 'image', data: base64(bytes), mimeType, uri };
  return { type: 'resource', resource: { uri, text: textOf(name, bytes) } };
}

/** Every image type that agents take, by its first bytes: the ending of a name may be wrong. Null: it is none of them. */
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
    // The same sentence as for a file with zero bytes.
  }
  throw new Error(`${name} is neither text in UTF-8 nor a PNG, JPEG, GIF or WebP image. ${IN_WORDS}`);
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

/** The words of a prompt, for a field to edit them in. */
export function wordsIn(prompt: Prompt): string {
  return prompt.flatMap((block) => (block.type === 'text' ? [block.text] : [])).join('\n');
}

/** The same prompt with other words. */
export function withWords(prompt: Prompt, text: string): Prompt {
  return promptOf(text, attachmentsIn(prompt));
}

/** What goes with the words of a prompt, to send it again. */
export function attachmentsIn(prompt: Prompt): Attachment[] {
  return prompt
    .filter(({ type }) => type !== 'text')
    .map((block, index) => ({ id: `block ${index}`, name: nameOf(block), block }));
}

function nameOf(block: ContentBlock): string {
  if (block.type === 'resource_link') return block.name;
  const uri = block.type === 'resource' ? block.resource.uri : block.type === 'image' ? block.uri : undefined;
  const name = uri?.split('/').at(-1);
  if (!name) return block.type;
  try {
    return decodeURIComponent(name);
  } catch {
    return name; // no URI, but it names the file all the same
  }
}
