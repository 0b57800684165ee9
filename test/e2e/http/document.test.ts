import { expect, test } from 'vitest';
import type { DescribedOperation } from '../../../src/wire/openapi.ts';
import { DOCUMENT, isValid } from './support/conform.ts';
import { ServedHome, TOKEN } from './support/served-home.ts';

const HEADERS = { authorization: `Bearer ${TOKEN}` };

test('the OpenAPI document marks a query parameter as required if, and only if, the server refuses a request without it', async () => {
  await using home = await ServedHome.start();
  await home.caller.ok('POST', '/conversations', { key: 'chat' });
  await home.caller.ok('POST', '/sandboxes', { name: 'chat' });
  await home.caller.ok('POST', '/tasks', { plan: { name: 'chat', goal: 'hello' }, requestId: 'chat' });
  const { turn } = await home.caller.ok('POST', '/conversations/chat/turns', { prompt: 'hello' });
  await home.caller.finished(turn);
  const request = home.inProcess();
  const reads = Object.entries<Record<string, DescribedOperation>>(DOCUMENT.paths).flatMap(([path, { get }]) =>
    get === undefined ? [] : [{ path, inQuery: get.parameters?.filter((one) => one.in === 'query') ?? [] }],
  );
  const withQuery = reads.filter(({ inQuery }) => inQuery.length > 0);
  expect(withQuery.length).toBeGreaterThan(5);
  for (const { path, inQuery } of withQuery) {
    const address = path.replace('{turn}', turn.id).replaceAll(/\{\w+\}/g, 'chat');
    const answer = await request(address, { headers: HEADERS });
    await answer.body?.cancel();
    const required = inQuery.filter((one) => one.required).map(({ name }) => name);
    expect({ path, required, status: answer.status }).toEqual({
      path,
      required: path === '/v1/search' ? ['q'] : [],
      status: path === '/v1/search' ? 400 : 200,
    });
  }
});

test('the OpenAPI document allows the plans that the server accepts, and no others', async () => {
  await using home = await ServedHome.start();
  const { $ref } = DOCUMENT.paths['/v1/tasks'].post.requestBody.content['application/json'].schema;
  for (const [plan, status] of [
    [{ goal: 'a', budget: '1 USD', gate: { agent: 'scripted' } }, 202],
    [
      [
        { goal: 'a', name: 'n' },
        { goal: 'b', after: 'n' },
      ],
      202,
    ],
    [{ tasks: [{ goal: 'a' }], defaults: { maxIterations: 2 }, parallel: 1 }, 202],
    [{ gaol: 'a' }, 400],
    [[{ goal: 7 }], 400],
    [{ tasks: [{ goal: 'a', gate: { comand: 'true' } }] }, 400],
    ['a', 400],
  ] as const) {
    const answer = await home.caller.post('/tasks', { plan });
    expect([plan, answer.status, isValid($ref, { plan })]).toEqual([plan, status, status === 202]);
  }
});

test('the server accepts several states of tasks as the OpenAPI document says: in one value, with commas', async () => {
  await using home = await ServedHome.start();
  const { get } = DOCUMENT.paths['/v1/tasks'];
  const state = get.parameters.find((one: { name: string }) => one.name === 'state');
  expect(state).toMatchObject({ style: 'form', explode: false, schema: { type: 'array' } });
  expect((await home.caller.get('/tasks?state=done,failed')).status).toBe(200);
});
