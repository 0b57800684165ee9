import type * as z from 'zod';
import { shown } from '../../core/input/arguments.ts';
import { MOST_OF_TURN } from '../../core/portable.ts';
import { isObject } from '../../core/turn/content.ts';
import { Pace } from '../../flow/pace.ts';
import { MEBIBYTE, type Operation } from '../../wire/operations/operation.ts';
import { PathParameters } from '../../wire/parameters.ts';
import { type JsonBounds, JsonReader } from './json/read-json.ts';
import { Refusal } from './refusal.ts';
import { invalid, noFields, type Part, wrongRequest } from './wrong-request.ts';

/** No valid body is deeper. Protects recursive code from very deep values. */
const DEEPEST = 64;

/** The parts of a request, checked by the schemas of its operation. */
export async function readRequest(operation: Operation, request: Request, params: Record<string, string>) {
  const { searchParams: search, pathname } = new URL(request.url);
  checkEscapes(pathname);
  return {
    params: checked(PathParameters, params, 'path'),
    query: checked(operation.query, fieldsOf(search), 'query'),
    body: checked(operation.body, await readBody(operation, request), 'body'),
  };
}

/** The router leaves a malformed escape as it is: it would become a part of a name. */
function checkEscapes(path: string): void {
  try {
    decodeURIComponent(path);
  } catch {
    throw invalid('The path has an escape (%) that is not followed by two hexadecimal digits of UTF-8.');
  }
}

function checked(schema: z.ZodType | undefined, value: object, part: Part): unknown {
  if (schema === undefined) {
    const [field] = Object.keys(value);
    if (field !== undefined) throw noFields(field, part);
    return {};
  }
  const { success, data, error } = schema.safeParse(value);
  if (success) return data;
  throw wrongRequest(error.issues, value, part, 'shape' in schema ? Object.keys(schema.shape as object) : []);
}

function fieldsOf(search: URLSearchParams): Record<string, string> {
  const fields = new Map<string, string>();
  for (const [name, value] of search) {
    if (fields.has(name)) throw invalid(`The parameter ${shown(name)} is given twice.`);
    fields.set(name, value);
  }
  return Object.fromEntries(fields);
}

/**
 * What a body of at most so many bytes may contain. An export of the shortest turns has a value for every 13 bytes, a list for every 55,
 * and a turn for every 300.
 */
const boundsOf = (most: number): JsonBounds => ({
  depth: DEEPEST,
  values: most / 8,
  lists: most / 32,
  items: most / 64,
  text: Math.min(most, MOST_OF_TURN),
  fields: 10_000,
});
const PACE = new Pace(() => performance.now(), setImmediate);

async function readBody({ body, mostBytes = MEBIBYTE }: Operation, request: Request): Promise<object> {
  if (request.method === 'GET') return {};
  const most = body === undefined ? 1_024 : mostBytes;
  const json = new JsonReader(boundsOf(most));
  let length = 0;
  for await (const chunk of chunksOf(request, most)) {
    if (length === 0) checkType(request);
    length += chunk.length;
    if (length > most) throw tooLarge(most);
    await PACE.run(json.add(chunk));
  }
  if (length === 0) return {};
  const value = json.end();
  if (!isObject(value)) throw invalid('The body must be a JSON object.');
  return value;
}

function checkType({ headers }: Request): void {
  // A form on another site can send text, but not JSON without a preflight request.
  if (!/^application\/json(\s*;\s*charset=utf-8)?$/i.test(headers.get('content-type') ?? '')) {
    throw new Refusal('unsupported_media_type', 'The body must be JSON.', {
      hint: 'Send "Content-Type: application/json".',
    });
  }
  if (headers.has('content-encoding')) {
    throw new Refusal('unsupported_media_type', 'The body must not be compressed.', {
      hint: 'Send it without "Content-Encoding".',
    });
  }
}

/** A body with a shorter `Content-Length` is read at once, which costs less. Node enforces that length. */
const SHORT = 65_536;

async function* chunksOf(request: Request, most: number): AsyncGenerator<Uint8Array> {
  const announced = Number(request.headers.get('content-length') ?? 0);
  if (announced > most) throw tooLarge(most);
  if (announced > 0 && announced <= SHORT) {
    yield new Uint8Array(await request.arrayBuffer().catch(cutOff));
    return;
  }
  const reader = request.body?.getReader();
  for (;;) {
    const { done, value } = (await reader?.read().catch(cutOff)) ?? { done: true };
    if (done) return;
    if (value.length > 0) yield value;
  }
}

function tooLarge(most: number): Refusal {
  return new Refusal('too_large', `The body is larger than ${most} bytes.`, {
    hint: 'Send less at once, or put large content into a file and name the file in the prompt.',
  });
}

/** The client has gone. This is not an internal error and must not be logged as one. */
function cutOff(): never {
  throw invalid('The body is incomplete: the connection was closed.');
}
