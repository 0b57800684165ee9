import type * as z from 'zod';
import { ThroughlineError } from '../../core/errors.ts';
import { isObject } from '../../core/turn/content.ts';
import { MEBIBYTE, type Operation } from '../../wire/operations/operation.ts';
import { PathParameters } from '../../wire/parameters.ts';
import { Refusal } from './refusal.ts';

/** No valid body is deeper. Protects recursive code from very deep values. */
const DEEPEST = 64;

/** The parts of a request, checked by the schemas of its operation. */
export async function readRequest(operation: Operation, request: Request, params: Record<string, string>) {
  const search = new URL(request.url).searchParams;
  return {
    params: checked(PathParameters, params, 'path'),
    query: checked(operation.query, fieldsOf(search), 'query'),
    body: checked(operation.body, await readBody(operation, request), 'body'),
  };
}

function checked(schema: z.ZodType | undefined, value: object, where: string): unknown {
  if (schema === undefined) {
    const [field] = Object.keys(value);
    if (field !== undefined) throw invalid(`${where}: unknown field "${field}"; this operation takes none`);
    return {};
  }
  const { success, data, error } = schema.safeParse(value);
  if (success) return data;
  const [issue] = error.issues;
  throw invalid(`${[where, ...(issue?.path ?? [])].map(String).join('.')}: ${issue?.message ?? 'invalid'}`);
}

function fieldsOf(search: URLSearchParams): Record<string, string> {
  const fields = new Map<string, string>();
  for (const [name, value] of search) {
    if (fields.has(name)) throw invalid(`query.${name}: given twice`);
    fields.set(name, value);
  }
  return Object.fromEntries(fields);
}

async function readBody({ body, mostBytes = MEBIBYTE }: Operation, request: Request): Promise<object> {
  if (request.method === 'GET') return {};
  const bytes = await bytesOf(request, body === undefined ? 1_024 : mostBytes);
  if (bytes.length === 0) return {};
  // A form on another site can send text, but not JSON without a preflight request.
  if (!/^application\/json(\s*;\s*charset=utf-8)?$/i.test(request.headers.get('content-type') ?? '')) {
    throw new Refusal('unsupported_media_type', 'The body must be JSON.', {
      hint: 'Send "Content-Type: application/json".',
    });
  }
  if (request.headers.has('content-encoding')) {
    throw new Refusal('unsupported_media_type', 'The body must not be compressed.', {
      hint: 'Send it without "Content-Encoding".',
    });
  }
  const value = parse(bytes);
  if (!isObject(value)) throw invalid('body: not a JSON object');
  checkShape(value);
  return value;
}

async function bytesOf(request: Request, most: number): Promise<Buffer> {
  const announced = Number(request.headers.get('content-length') ?? 0);
  const tooLarge = () =>
    new Refusal('too_large', `The body is larger than ${most} bytes.`, {
      hint: 'Send less at once, or put large content into a file and name the file in the prompt.',
    });
  if (announced > most) throw tooLarge();
  // Node enforces the announced length. A body without one is counted as it comes, which costs more.
  if (announced > 0) return Buffer.from(await request.arrayBuffer().catch(cutOff));
  const chunks: Uint8Array[] = [];
  let length = 0;
  const reader = request.body?.getReader();
  for (;;) {
    const { done, value } = (await reader?.read().catch(cutOff)) ?? { done: true };
    if (done) return Buffer.concat(chunks, length);
    length += value.length;
    if (length > most) throw tooLarge();
    chunks.push(value);
  }
}

/** The client has gone. This is not an internal error and must not be logged as one. */
function cutOff(): never {
  throw invalid('body: incomplete');
}

function parse(bytes: Buffer): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch {
    throw invalid('body: not valid JSON in UTF-8');
  }
}

/** Refuses `__proto__` as a name, and too deep values. Without recursion, because the value is not trusted yet. */
function checkShape(value: object): void {
  let level: unknown[] = [value];
  for (let depth = 0; level.length > 0; depth += 1) {
    if (depth > DEEPEST) throw invalid(`body: more than ${DEEPEST} levels deep`);
    const next: unknown[] = [];
    for (const one of level) {
      if (typeof one !== 'object' || one === null) continue;
      if (Object.hasOwn(one, '__proto__')) throw invalid('body: the field name "__proto__" is not allowed');
      for (const inner of Array.isArray(one) ? one : Object.values(one)) next.push(inner);
    }
    level = next;
  }
}

function invalid(message: string): ThroughlineError {
  return new ThroughlineError('invalid', `${message.slice(0, 300)}.`);
}
