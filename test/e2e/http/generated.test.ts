import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import type { DescribedOperation } from '../../../src/wire/openapi.ts';
import { DOCUMENT, expectConform, operationAt } from './support/conform.ts';
import { fromSchema, text, withOneChange } from './support/from-schema.ts';
import { ServedHome, TOKEN } from './support/served-home.ts';

const LONG = process.env.THROUGHLINE_LONG === '1';
const IN_PROCESS_REQUESTS = LONG ? 9_500 : 2_700;
const NETWORK_REQUESTS = LONG ? 500 : 300;
/** So many requests run at the same time: they share commits and use the same conversations. */
const CONCURRENT = 20;

interface GeneratedRequest {
  readonly method: string;
  readonly address: string;
  readonly headers: Record<string, string>;
  readonly body: string | undefined;
}

test(`${IN_PROCESS_REQUESTS + NETWORK_REQUESTS} generated requests are all answered as the OpenAPI document says, none with a server error`, {
  timeout: 900_000,
}, async () => {
  await using home = await ServedHome.start({ engine: { maxRunning: 4, maxWarm: 2 } });
  const ids = await createExamples(home);
  const { key } = await home.key('local', ['read', 'prompt']);
  const requests = anyRequest(ids, key);
  const statuses = new Map<number, number>();
  const check = async (request: GeneratedRequest, send: (address: string, init: RequestInit) => Promise<Response>) => {
    const { method, address, headers, body } = request;
    const response = await send(address, { method, headers, ...(body !== undefined && { body }) });
    const type = response.headers.get('content-type') ?? '';
    const name = operationAt(method, address);
    statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1);
    expect(response.status, JSON.stringify(request)).toBeLessThan(500);
    if (type.startsWith('text/event-stream')) await response.body?.cancel();
    else if (name !== null) expectConform(name, response.status, type, await response.json());
    else await response.text();
  };
  const inProcess = home.inProcess();
  const batch = fc.array(requests, { minLength: CONCURRENT, maxLength: CONCURRENT });
  const property = (send: typeof inProcess) =>
    fc.asyncProperty(batch, async (all) => {
      await Promise.all(all.map((request) => check(request, send)));
    });
  await fc.assert(property(inProcess), {
    numRuns: IN_PROCESS_REQUESTS / CONCURRENT,
    timeout: 60_000,
    endOnFailure: true,
  });
  const network = (address: string, init: RequestInit) =>
    fetch(`${home.url}${address}`, { ...init, redirect: 'manual' });
  await fc.assert(property(network), { numRuns: NETWORK_REQUESTS / CONCURRENT, timeout: 60_000, endOnFailure: true });
  // If the server accepted all generated requests, or none, this test would prove little. The bounds are far below the usual
  // counts, because each operation that is added to the document lowers the share of the others.
  const answersWith = (status: number) => statuses.get(status) ?? 0;
  expect(answersWith(200)).toBeGreaterThan(100);
  expect(answersWith(202)).toBeGreaterThan(0);
  expect(answersWith(400)).toBeGreaterThan(100);
  expect(answersWith(404)).toBeGreaterThan(100);
});

/** Keys, names and ids that exist, by the path parameter that takes them. */
type Ids = Readonly<Record<string, readonly string[]>>;

async function createExamples(home: ServedHome): Promise<Ids> {
  const { caller } = home;
  const conversation: string[] = ['chat', 'a/b c'];
  const turn: string[] = [];
  for (const key of [...conversation]) {
    conversation.push((await caller.ok('POST', '/conversations', { key })).id);
    const submitted = await caller.ok('POST', `/conversations/${encodeURIComponent(key)}/turns`, {
      prompt: `hello ${key}`,
    });
    turn.push(submitted.turn.id);
    await caller.finished(submitted.turn);
  }
  const { tasks } = await caller.ok('POST', '/tasks', { plan: { name: 'errand', goal: 'hello' } });
  return { conversation, turn, permission: [], task: ['errand', tasks[0].id] };
}

/** `weakKey` is used to add tasks. With more scopes, the commands of generated gates would run. */
function anyRequest(ids: Ids, weakKey: string): fc.Arbitrary<GeneratedRequest> {
  const operations = Object.entries<Record<string, DescribedOperation>>(DOCUMENT.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) =>
      requestOf(method.toUpperCase(), path, operation, ids, operation.operationId === 'addTasks' ? weakKey : TOKEN),
    ),
  );
  return fc.oneof(...operations);
}

function requestOf(
  method: string,
  path: string,
  operation: DescribedOperation,
  ids: Ids,
  secret: string,
): fc.Arbitrary<GeneratedRequest> {
  const { parameters = [], requestBody } = operation;
  // Only unknown names are deleted, so that the examples stay.
  const inPath = parameters
    .filter((one) => one.in === 'path')
    .map(({ name }) => [name, nameFor(method === 'DELETE' ? [] : (ids[name] ?? []))] as const);
  const inQuery = parameters
    .filter((one) => one.in === 'query')
    .map(({ name, schema }) => {
      const value = fc.oneof(
        { weight: 3, arbitrary: fromSchema(schema, DOCUMENT).map(String) },
        { weight: 1, arbitrary: text },
      );
      return [name, value] as const;
    });
  const query = fc.oneof(
    { weight: 5, arbitrary: fc.record(Object.fromEntries(inQuery), { requiredKeys: [] } as object) },
    { weight: 1, arbitrary: fc.dictionary(text, text, { maxKeys: 3 }) },
  );
  return fc
    .record({
      names: fc.record(Object.fromEntries(inPath)),
      query,
      body: method === 'GET' ? fc.constant(undefined) : bodyOf(requestBody),
      hasCredentials: fc.nat(40).map((n) => n > 0), // one request of 41 has none
    })
    .map(({ names, query: fields, body, hasCredentials }) => {
      const filled = path.replaceAll(/\{(\w+)\}/g, (_, name) => encoded((names as Record<string, string>)[name] ?? ''));
      const search = new URLSearchParams(fields as Record<string, string>).toString();
      return {
        method,
        address: search === '' ? filled : `${filled}?${search}`,
        headers: {
          ...(hasCredentials && { authorization: `Bearer ${secret}` }),
          ...(body !== undefined && { 'content-type': 'application/json' }),
        },
        body,
      };
    });
}

function nameFor(known: readonly string[]): fc.Arbitrary<string> {
  const unknown = { weight: 2, arbitrary: text };
  return known.length === 0 ? text : fc.oneof({ weight: 5, arbitrary: fc.constantFrom(...known) }, unknown);
}

/** A URL cannot contain unpaired surrogates, and in its path `.` and `..` would be resolved. */
function encoded(name: string): string {
  return encodeURIComponent(name.toWellFormed()).replaceAll('.', '%2E');
}

function bodyOf(described: DescribedOperation['requestBody']): fc.Arbitrary<string | undefined> {
  const garbage = fc.oneof(fc.constant(undefined), fc.json({ maxDepth: 3 }), text);
  if (described === undefined)
    return fc.oneof({ weight: 9, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: garbage });
  const valid = fromSchema(described.content['application/json'].schema, DOCUMENT);
  return fc.oneof(
    { weight: 6, arbitrary: valid.map((value) => JSON.stringify(value)) },
    { weight: 3, arbitrary: withOneChange(valid).map((value) => JSON.stringify(value)) },
    { weight: 1, arbitrary: garbage },
  );
}
