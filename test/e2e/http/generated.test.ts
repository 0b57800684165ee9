import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import type { DescribedOperation } from '../../../src/wire/openapi.ts';
import { DOCUMENT, expectConform, operationAt } from './support/conform.ts';
import { broken, fromSchema, text } from './support/from-schema.ts';
import { ServedHome, TOKEN } from './support/served-home.ts';

const LONG = process.env.THROUGHLINE_LONG === '1';
const IN_PROCESS = LONG ? 9_500 : 2_700;
const BY_NETWORK = LONG ? 500 : 300;
/** So many at the same time: they share commits, and meet each other. */
const TOGETHER = 20;

interface Generated {
  readonly method: string;
  readonly address: string;
  readonly headers: Record<string, string>;
  readonly body: string | undefined;
}

test(`${IN_PROCESS + BY_NETWORK} generated requests: no fault of the server, no hang, every answer as the document has it`, {
  timeout: 900_000,
}, async () => {
  await using home = await ServedHome.start({ engine: { maxRunning: 4, maxWarm: 2 } });
  const ids = await someThings(home);
  const { key } = await home.key('local', ['read', 'prompt']);
  const requests = anyRequest(ids, key);
  const statuses = new Map<number, number>();
  const check = async (asked: Generated, send: (address: string, init: RequestInit) => Promise<Response>) => {
    const { method, address, headers, body } = asked;
    const response = await send(address, { method, headers, ...(body !== undefined && { body }) });
    const type = response.headers.get('content-type') ?? '';
    const name = operationAt(method, address);
    statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1);
    expect(response.status, JSON.stringify(asked)).toBeLessThan(500);
    if (type.startsWith('text/event-stream')) await response.body?.cancel();
    else if (name !== null) expectConform(name, response.status, type, await response.json());
    else await response.text();
  };
  const inProcess = home.inProcess();
  const batch = fc.array(requests, { minLength: TOGETHER, maxLength: TOGETHER });
  const property = (send: typeof inProcess) =>
    fc.asyncProperty(batch, async (all) => {
      await Promise.all(all.map((asked) => check(asked, send)));
    });
  await fc.assert(property(inProcess), { numRuns: IN_PROCESS / TOGETHER, timeout: 60_000, endOnFailure: true });
  const network = (address: string, init: RequestInit) =>
    fetch(`${home.url}${address}`, { ...init, redirect: 'manual' });
  await fc.assert(property(network), { numRuns: BY_NETWORK / TOGETHER, timeout: 60_000, endOnFailure: true });
  // A generator that is never understood, or always, would try nothing. The bounds are far below what comes: how often an
  // operation is tried falls with each one that the document gains.
  const answered = (status: number) => statuses.get(status) ?? 0;
  expect(answered(200)).toBeGreaterThan(100);
  expect(answered(202)).toBeGreaterThan(0);
  expect(answered(400)).toBeGreaterThan(100);
  expect(answered(404)).toBeGreaterThan(100);
});

/** Names under which there is something, by the parameter that takes them. */
type Ids = Readonly<Record<string, readonly string[]>>;

async function someThings(home: ServedHome): Promise<Ids> {
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

/** `weakKey`: adds tasks. With more rights, the commands of generated gates would run. */
function anyRequest(ids: Ids, weakKey: string): fc.Arbitrary<Generated> {
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
): fc.Arbitrary<Generated> {
  const { parameters = [], requestBody } = operation;
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
      authorized: fc.nat(40),
    })
    .map(({ names, query: fields, body, authorized }) => {
      const filled = path.replaceAll(/\{(\w+)\}/g, (_, name) => encoded((names as Record<string, string>)[name] ?? ''));
      const search = new URLSearchParams(fields as Record<string, string>).toString();
      return {
        method,
        address: search === '' ? filled : `${filled}?${search}`,
        headers: {
          ...(authorized > 0 && { authorization: `Bearer ${secret}` }),
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

/** An address is made of whole characters; `.` and `..` would be taken for a way. */
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
    { weight: 3, arbitrary: broken(valid).map((value) => JSON.stringify(value)) },
    { weight: 1, arbitrary: garbage },
  );
}
