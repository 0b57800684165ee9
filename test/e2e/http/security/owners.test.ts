import { describe, expect, test } from 'vitest';
import { BASE_PATH } from '../../../../src/wire/operations/operation.ts';
import { until } from '../../../faults/harness/until.ts';
import { belongings, bodyOf } from '../support/belongings.ts';
import type { Caller } from '../support/caller.ts';
import { DOCUMENT, operationAt } from '../support/conform.ts';
import { ServedHome } from '../support/served-home.ts';

describe('two owners', () => {
  /** The callers of two owners, each with a key of their own; or with the same key, which acts for both. */
  async function twoCallers(home: ServedHome, how: 'keys of their own' | 'one key that acts for both') {
    const scopes = ['read', 'prompt', 'approve', 'admin'] as const;
    if (how === 'keys of their own') return [await home.key('ann', scopes), await home.key('bob', scopes)];
    const { caller } = await home.key('app', [...scopes, 'act-as'], null, 'app:*');
    return ['app:ann', 'app:bob'].map((owner) => ({ caller: caller.with({ 'throughline-owner': owner }) }));
  }

  test.each(['keys of their own', 'one key that acts for both'] as const)(
    'with %s cannot reach the data of each other, in any route of the document',
    async (how) => {
      await using home = await ServedHome.start();
      const [ann, bob] = (await twoCallers(home, how)).map(({ caller }) => caller) as [Caller, Caller];
      const hers = await belongings(ann);
      const before = await ann.ok('GET', '/conversations/hers/view');
      let tried = 0;
      for (const [path, methods] of Object.entries<object>(DOCUMENT.paths)) {
        for (const method of Object.keys(methods)) {
          for (const ids of [hers.byId, hers.byKey]) {
            if (!path.includes('{')) continue;
            const filled = path.slice(BASE_PATH.length).replaceAll(/\{(\w+)\}/g, (_, name) => {
              expect(Object.keys(ids)).toContain(name);
              return encodeURIComponent(ids[name] as string);
            });
            const name = operationAt(method.toUpperCase(), path);
            const body = name === null ? undefined : bodyOf(name);
            const { status, body: answer } = await bob.ask(method.toUpperCase(), filled, body);
            expect({ method, path, status, code: answer.code }).toEqual({
              method,
              path,
              status: 404,
              code: 'not_found',
            });
            expect(JSON.stringify(answer)).not.toMatch(/osprey|secret title/);
            tried += 1;
          }
        }
      }
      expect(tried).toBeGreaterThan(25);
      const lists = [
        '/conversations',
        '/conversations?q=osprey',
        '/search?q=osprey',
        '/usage',
        '/permissions',
        '/tasks',
      ];
      for (const list of [...lists, '/tasks/usage']) {
        expect(Object.values(await bob.ok('GET', list)).filter(Array.isArray)).toEqual([[]]);
      }
      expect((await bob.get(`/permissions?conversation=${hers.byId.conversation}`)).status).toBe(404);
      // A conversation with the same key is another one, of his own.
      const own = await bob.ok('POST', '/conversations/hers/turns', { prompt: 'hello' });
      expect(own.turn).toMatchObject({ n: 1 });
      expect(own.turn.conversationId).not.toBe(hers.byId.conversation);
      expect(await ann.ok('GET', '/conversations/hers/view')).toEqual(before);
      expect(await ann.ok('GET', `/tasks/${hers.byId.task}`)).toMatchObject({ cancelRequested: false });
    },
  );

  test('can use the same request id for two turns, but none of them for another body', async () => {
    await using home = await ServedHome.start();
    const turns: string[] = [];
    for (const owner of ['ann', 'bob']) {
      const { caller } = await home.key(owner, ['read', 'prompt']);
      await caller.ok('POST', '/conversations', { key: 'chat' });
      const { body } = await caller.post('/conversations/chat/turns', { prompt: `of ${owner}`, requestId: 'same' });
      expect(body).toMatchObject({ duplicate: false, turn: { requestId: 'same' } });
      turns.push(body.turn.id);
      const other = await caller.post('/conversations/chat/turns', { prompt: 'something else', requestId: 'same' });
      expect(other).toMatchObject({ status: 409, body: { code: 'conflict' } });
    }
    expect(new Set(turns).size).toBe(2);
  });

  test('get hints of their own conversations only', async () => {
    await using home = await ServedHome.start();
    const [ann, bob] = [
      (await home.key('ann', ['read', 'prompt'])).caller,
      (await home.key('bob', ['read', 'prompt'])).caller,
    ];
    const hints = bob.events('/events');
    const first = hints.next();
    await until('the reader of hints is connected', () => home.metrics.readers > 0);
    await ann.ok('POST', '/conversations', { key: 'hers' });
    const his = await bob.ok('POST', '/conversations', { key: 'his' });
    expect((await first).value?.data.conversationId).toBe(his.id);
    await hints.return();
  });
});

test('the answer to a permission is stored with who gave it, also in the hash chain of events', async () => {
  await using home = await ServedHome.start();
  const key = await home.key('local', ['read', 'prompt', 'approve']);
  await home.caller.ok('POST', '/conversations', { key: 'chat' });
  const { turn } = await home.caller.ok('POST', '/conversations/chat/turns', {
    prompt: '/ask May I?',
    permissions: 'ask',
  });
  for await (const { data } of home.caller.events('/conversations/chat/events')) {
    if (data.kind !== 'permission.asked') continue;
    await key.caller.ok('POST', `/permissions/${data.payload.permissionId}`, { optionId: 'allow' });
    const late = await home.caller.post(`/permissions/${data.payload.permissionId}`, { optionId: 'reject' });
    expect(late).toMatchObject({ status: 409 });
    break;
  }
  await home.caller.finished(turn);
  const by = `local by key ${key.id}`;
  expect((await home.caller.ok('GET', '/permissions?open=false')).permissions).toMatchObject([{ answeredBy: by }]);
  const events = [];
  for await (const event of home.engine.follow('chat')) {
    if (event.kind === 'permission.answered') events.push(event.payload);
    if (event.kind === 'turn.ended') break;
  }
  expect(events).toEqual([{ permissionId: expect.any(String), optionId: 'allow', by }]);
  expect(await home.caller.ok('GET', '/conversations/chat/verify')).toMatchObject({ broken: null });
});
