// Acting for other owners: the token may do it for all, a key with the scope `act-as` for those that it was given.
import { request } from 'node:http';
import { describe, expect, test } from 'vitest';
import { SCOPES, type Scope } from '../../../../src/core/key.ts';
import type { Operation } from '../../../../src/wire/operations/operation.ts';
import { OPERATIONS } from '../../../../src/wire/operations.ts';
import { type OperationName, ROUTES } from '../../../../src/wire/routes.ts';
import type { Caller } from '../support/caller.ts';
import { rawRequest } from '../support/raw-request.ts';
import { ServedHome, TOKEN } from '../support/served-home.ts';

const USUAL_SCOPES = ['act-as', 'read', 'prompt', 'approve'] as const satisfies Scope[];
const as = (caller: Caller, owner: string) => caller.with({ 'throughline-owner': encodeURIComponent(owner) });
const applicationKey = (home: ServedHome, scopes: readonly Scope[] = USUAL_SCOPES, owners: string | null = 'app:*') =>
  home.key('app', scopes, null, owners);

test('the token acts for every owner', async () => {
  await using home = await ServedHome.start();
  expect(await home.caller.ok('GET', '/me')).toMatchObject({ owner: 'local', scopes: SCOPES, owners: '*' });
  expect(await as(home.caller, 'ann ä').ok('POST', '/conversations', { key: 'hers' })).toMatchObject({
    owner: 'ann ä',
  });
  expect((await home.caller.get('/conversations/hers')).status).toBe(404);
  expect((await as(home.caller, 'ann ä').get('/conversations/hers')).status).toBe(200);
});

describe('a key with the scope "act-as"', () => {
  test('acts for the owners that it was given, and without the header for its own owner', async () => {
    await using home = await ServedHome.start();
    const { caller, id } = await applicationKey(home);
    for (const owner of ['app:ann', 'app:bob', 'app:Ann', 'app:ä, b', 'app:a:b', `app:${'a'.repeat(508)}`]) {
      await as(caller, owner).ok('POST', '/conversations/chat/turns', { prompt: `of ${owner}` });
      expect(await as(caller, owner).ok('GET', '/me')).toMatchObject({
        ...{ owner, by: `key ${id}`, owners: 'app:*', isOperator: false, command: null },
      });
      const { conversations } = await as(caller, owner).ok('GET', '/conversations');
      expect(conversations).toMatchObject([{ key: 'chat', owner }]);
    }
    expect(await caller.ok('GET', '/me')).toMatchObject({ owner: 'app', scopes: USUAL_SCOPES, owners: 'app:*' });
    expect(await caller.ok('GET', '/conversations')).toMatchObject({ conversations: [] });
    expect(await as(caller, 'app').ok('GET', '/me')).toMatchObject({ owner: 'app' }); // it may also name its own owner
    // The name may also be sent without percent-encoding, and over the socket.
    for (const socket of [undefined, home.socket]) {
      const host = socket === undefined ? `127.0.0.1:${home.port}` : 'localhost';
      const headers = {
        host,
        authorization: `Bearer ${(await applicationKey(home)).key}`,
        'throughline-owner': 'app:ann',
      };
      expect(JSON.parse((await rawRequest(home, '/v1/me', headers, socket)).text)).toMatchObject({ owner: 'app:ann' });
    }
  });

  test('is refused for other owners in every operation, and so is a key without that scope', async () => {
    await using home = await ServedHome.start();
    const { caller: limited } = await applicationKey(home, SCOPES);
    const { caller: plain } = await home.key('app', ['read', 'prompt', 'approve', 'admin']);
    const refused: [string, Caller][] = [
      ['another prefix', as(limited, 'app2:ann')],
      ['the operator', as(limited, 'local')],
      ['no scope', as(plain, 'app:ann')],
    ];
    for (const [what, caller] of refused) {
      const more = ['//metrics', '//backup', '/agents?login=true'].map((path) => ({ method: 'GET', path }));
      for (const { method, path: template } of [...Object.values(ROUTES), ...more]) {
        const path = template.replaceAll(/\{\w+\}/g, 'x');
        expect({ what, path, status: (await caller.ask(method, path)).status }).toEqual({ what, path, status: 403 });
      }
    }
    for (const owner of ['app', 'app:', 'application', 'App:ann', 'аpp:ann', 'app/ann', 'ann', 'local']) {
      const { status, body } = await as(limited, owner).get('/conversations');
      if (owner === 'app') expect(status).toBe(200);
      else
        expect({ owner, status, detail: body.detail }).toMatchObject({
          status: 403,
          detail: expect.stringContaining('"app:*"'),
        });
    }
    expect((await as(plain, 'app:ann').get('/me')).body).toMatchObject({
      ...{ code: 'forbidden', detail: 'These credentials act for "app" only, not for "app:ann".' },
      hint: expect.stringContaining('--scopes act-as,read,prompt --owners'),
    });
  });

  test('allows only its other scopes when it acts for another owner', async () => {
    await using home = await ServedHome.start();
    for (const scope of ['read', 'prompt', 'approve', 'admin'] as const) {
      const acting = as((await applicationKey(home, ['act-as', scope], null)).caller, 'ann');
      for (const [name, operation] of Object.entries<Operation>(OPERATIONS)) {
        const { method, path } = ROUTES[name as OperationName];
        if (operation.stream && operation.scope === scope) continue;
        const { status } = await acting.ask(method, path.replaceAll(/\{\w+\}/g, 'x'));
        const isRefused = operation.scope !== scope || operation.notByKey === true || operation.operatorOnly === true;
        expect({ path, scope, refused: status === 403 }).toEqual({ path, scope, refused: isRefused });
      }
    }
    const { caller } = await applicationKey(home, USUAL_SCOPES, null);
    expect((await as(caller, 'ann').post('/conversations', { cwd: '/etc' })).status).toBe(403);
  });

  test('does not become the operator by acting for the owner of the server', async () => {
    await using home = await ServedHome.start();
    const { caller } = await applicationKey(home, SCOPES, null);
    expect(await as(caller, 'local').ok('GET', '/conversations')).toMatchObject({ conversations: [] });
    for (const path of ['/doctor', '//backup']) {
      const { status, body } = await as(caller, 'local').get(path);
      expect({ path, status, detail: body.detail }).toEqual({
        ...{ path, status: 403, detail: expect.stringContaining('These credentials only act for "local".') },
      });
    }
    expect((await as(caller, 'local').post('/links', { scopes: ['read'] })).status).toBe(403);
    // A key of the operator has the rights of the operator, but not while it acts for another owner.
    const { caller: own } = await home.key('local', SCOPES);
    expect((await own.get('/doctor')).status).toBe(200);
    expect((await as(own, 'ann').get('/doctor')).status).toBe(403);
  });

  test('is named with the owner in every event that records who acted', async () => {
    await using home = await ServedHome.start();
    const { caller, id } = await applicationKey(home);
    const ann = as(caller, 'app:ann');
    const by = `app:ann by key ${id}`;
    const { turn } = await ann.ok('POST', '/conversations/chat/turns', { prompt: '/ask May I?', permissions: 'ask' });
    const [{ id: permission }] = await openPermissions(ann);
    expect(await ann.ok('POST', `/permissions/${permission}`, { optionId: 'allow' })).toMatchObject({ answeredBy: by });
    await ann.finished(turn);
    const { turn: hanging } = await ann.ok('POST', '/conversations/chat/turns', { prompt: '/hang' });
    await ann.ok('POST', `/turns/${hanging.id}/cancel`);
    await ann.finished(hanging);
    const { tasks } = await ann.ok('POST', '/tasks', { plan: { goal: '/hang' } });
    await ann.ok('POST', `/tasks/${tasks[0].id}/cancel`);
    const { events } = await ann.ok('GET', '/conversations/chat/log?before=end');
    const named = events.flatMap((event: { kind: string; payload: { by?: string } }) =>
      event.payload.by === undefined ? [] : [[event.kind, event.payload.by]],
    );
    expect(named).toEqual([
      ['turn.queued', by],
      ['permission.answered', by],
      ['turn.queued', by],
      ['turn.cancel_requested', by],
    ]);
    for await (const { data } of ann.events('/tasks/events')) {
      if (!data.kind.startsWith('task.cancel')) continue;
      expect(data.payload).toEqual({ by });
      break;
    }
  });

  test('is logged with the owner for every request', async () => {
    await using home = await ServedHome.start();
    const { caller, id, key } = await applicationKey(home, SCOPES);
    const ann = as(caller, 'app:ann');
    await ann.ok('POST', '/sandboxes', { name: 'site' });
    await ann.ok('POST', '/sandboxes/site/exec', { command: ['true'] });
    expect((await as(caller, 'local').post('/sandboxes/site/exec', { command: ['true'] })).status).toBe(403);
    const logged = home.log.flatMap((line) => {
      const { msg, operation, status, by } = JSON.parse(line);
      return msg === 'request' ? [{ operation, status, by }] : [];
    });
    const by = `app:ann by key ${id}`;
    expect(logged).toMatchObject([
      { operation: 'openSandbox', status: 200, by },
      { operation: 'execInSandbox', status: 200, by },
      { operation: 'execInSandbox', status: 403 },
    ]);
    expect(home.log.join('')).not.toContain(key);
  });

  test('loses the streams of all owners when it is revoked, and each owner has limits of their own', async () => {
    await using home = await ServedHome.start({ server: { stream: { checkMs: 20 }, mostReaders: 6 } });
    const { caller, id } = await applicationKey(home);
    const stop = new AbortController();
    const streams = ['app:ann', 'app:ann', 'app:ann', 'app:bob'].map((owner) => {
      const frames = as(caller, owner).frames([{ feed: 'changes', of: 'hints' }], stop.signal);
      return { owner, frames };
    });
    for (const { frames } of streams) await frames.next('opened');
    const more = await as(caller, 'app:ann').post('/streams', { feeds: [] });
    expect(more).toMatchObject({ status: 429, body: { detail: expect.stringContaining('"app:ann" already has 3') } });
    const [ofAnn, , , ofBob] = streams.map(({ frames }) => frames);
    await ofAnn?.next('hint');
    await ofBob?.next('hint');
    await home.revoke('app', id);
    for (const { frames } of streams) expect(await frames.next('no such kind')).toBeNull(); // skips all frames up to the end
    expect((await as(caller, 'app:bob').get('/me')).status).toBe(401);
    stop.abort();
  });
});

describe('the header Throughline-Owner', () => {
  /** Requests /v1/me with the header once for each of these owners. */
  function me(home: ServedHome, authorization: string, ...owners: string[]) {
    return new Promise<{ status: number; text: string }>((resolve, reject) => {
      const headers = ['host', `127.0.0.1:${home.port}`, 'authorization', `Bearer ${authorization}`];
      const named = owners.flatMap((owner) => ['Throughline-Owner', owner]);
      const options = { host: '127.0.0.1', port: home.port, path: '/v1/me', headers: [...headers, ...named] };
      const outgoing = request(options, (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (chunk) => {
          text += chunk;
        });
        response.on('end', () => resolve({ status: response.statusCode ?? 0, text }));
      });
      outgoing.on('error', reject);
      outgoing.end();
    });
  }

  test('is refused with any credentials if it is not exactly one name', async () => {
    await using home = await ServedHome.start();
    const { key } = await applicationKey(home);
    const { key: plain } = await home.key('app', ['read']);
    const invalid: Record<string, string[]> = {
      empty: [''],
      blank: ['%20'],
      twice: ['app:ann', 'app:ann'],
      'two of them': ['app:ann', 'app:bob'],
      'a comma': ['app:ann,app:bob'],
      'an incomplete encoding': ['app:%E0%A4%A'],
      'not encoded': ['app:\u00e4nn'],
      'a space': ['app:a nn'],
      'a zero byte': ['app:%00'],
      'a line break': ['app:a%0Ab'],
      invisible: ['app:a%E2%80%8Bb'],
      'right to left': ['app:%E2%80%AEnna'],
      decomposed: ['app:a%CC%88'],
      'an encoded surrogate': ['app:%ED%A0%80'],
      dots: ['..'],
      long: [`app:${'a'.repeat(600)}`],
    };
    for (const [what, owners] of Object.entries(invalid)) {
      for (const credentials of [TOKEN, key, plain]) {
        const { status, text } = await me(home, credentials, ...owners);
        expect({ what, status, code: JSON.parse(text).code }).toEqual({ what, status: 400, code: 'invalid' });
      }
    }
    expect((await me(home, key, `app:${'a'.repeat(40_000)}`)).status).toBe(431);
    const { text } = await me(home, key, 'app:ann', 'app:bob');
    expect(JSON.parse(text)).toMatchObject({
      detail: 'The header throughline-owner is not one percent-encoded name.',
      hint: expect.stringContaining('Send it once'),
    });
    expect(JSON.parse((await me(home, key, 'app:a%252Cb')).text)).toMatchObject({ owner: 'app:a%2Cb' }); // decoded once
  });
});

/** Waits until a permission was asked, and returns the open ones. */
async function openPermissions(caller: Caller) {
  for await (const { data } of caller.events('/conversations/chat/events')) {
    if (data.kind === 'permission.asked') break;
  }
  return (await caller.ok('GET', '/permissions?open=true')).permissions;
}
