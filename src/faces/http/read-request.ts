import type * as z from 'zod';
import { isObject } from '../../core/content.ts';
import { ThroughlineError } from '../../core/errors.ts';
import { MEBIBYTE, type Operation } from '../../wire/operations.ts';
import { Refusal } from './refusal.ts';

/** Deeper than any value that a caller has reason to send; what walks values by recursion must not meet more. */
const DEEPEST = 64;

/** What a request asks for, checked by the schemas of its operation. */
export interface Asked {
  readonly params: never;
  readonly query: never;
  readonly body: never;
}

export async function readRequest(
  operation: Operation,
  request: Request,
  params: Record<string, string>,
): Promise<Asked> {
  const search = new URL(request.url).searchParams;
  return {
    params: checked(operation.params, params, 'path') as never,
    query: checked(operation.query, fieldsOf(search), 'query') as never,
    body: checked(operation.body, await readBody(operation, request), 'body') as never,
  };
}

function checked(schema: z.ZodObject | undefined, value: object, where: string): unknown {
  if (schema === undefined) {
    const [field] = Object.keys(value);
    if (field !== undefined && where !== 'path') throw invalid(`${where}: nothing is taken here, and not "${field}"`);
    return {};
  }
  const { success, data, error } = schema.safeParse(value);
  if (success) return data;
  const [issue] = error.issues;
  throw invalid(`${[where, ...(issue?.path ?? [])].map(String).join('.')}: ${issue?.message ?? 'wrong'}`);
}

function fieldsOf(search: URLSearchParams): Record<string, string> {
  const fields = new Map<string, string>();
  for (const [name, value] of search) {
    if (fields.has(name)) throw invalid(`query.${name}: it is there twice`);
    fields.set(name, value);
  }
  return Object.fromEntries(fields);
}

async function readBody({ body, mostBytes = MEBIBYTE }: Operation, request: Request): Promise<object> {
  if (request.method === 'GET') return {};
  const bytes = await bytesOf(request, body === undefined ? 1_024 : mostBytes);
  if (bytes.length === 0) return {};
  // A form of another page can send text; JSON it cannot send without asking first.
  if (!/^application\/json(\s*;\s*charset=utf-8)?$/i.test(request.headers.get('content-type') ?? '')) {
    throw new Refusal('unsupported_media_type', 'A body is JSON.', { hint: 'Send "Content-Type: application/json".' });
  }
  if (request.headers.has('content-encoding')) {
    throw new Refusal('unsupported_media_type', 'A body is not compressed.', {
      hint: 'Send it without "Content-Encoding".',
    });
  }
  const value = parse(bytes);
  if (!isObject(value)) throw invalid('body: it is not an object');
  checkShape(value);
  return value;
}

async function bytesOf(request: Request, most: number): Promise<Buffer> {
  const announced = Number(request.headers.get('content-length') ?? 0);
  const tooLarge = () =>
    new Refusal('too_large', `A body has at most ${most} bytes here.`, {
      hint: 'Send less at once; what is large may be a file that the prompt names.',
    });
  if (announced > most) throw tooLarge();
  // Node itself holds a body to the length that was announced; only one without is counted as it comes, which costs more.
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

/** Whoever sent it has gone, and hears nothing of this; it is no fault of ours, and must not be logged as one. */
function cutOff(): never {
  throw invalid('body: it was cut off');
}

function parse(bytes: Buffer): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch {
    throw invalid('body: it is not JSON in UTF-8');
  }
}

/** No name in it reaches the prototype of anything, and it is not too deep. Without recursion: it is looked at before it is trusted. */
function checkShape(value: object): void {
  let level: unknown[] = [value];
  for (let depth = 0; level.length > 0; depth += 1) {
    if (depth > DEEPEST) throw invalid(`body: it is more than ${DEEPEST} levels deep`);
    const next: unknown[] = [];
    for (const one of level) {
      if (typeof one !== 'object' || one === null) continue;
      if (Object.hasOwn(one, '__proto__')) throw invalid('body: "__proto__" is no name for a field');
      for (const inner of Array.isArray(one) ? one : Object.values(one)) next.push(inner);
    }
    level = next;
  }
}

function invalid(message: string): ThroughlineError {
  return new ThroughlineError('invalid', `${message.slice(0, 300)}.`);
}
