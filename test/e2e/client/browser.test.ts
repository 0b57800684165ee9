// `throughline/client` as a page uses it: bundled, and run without anything of Node.
import { createContext, runInContext } from 'node:vm';
import { expect, test } from 'vitest';
import type * as client from '../../../src/client.ts';
import { clientBundle } from '../../browser/pages.ts';
import { ServedHome, TOKEN } from '../http/support/served-home.ts';

/** The globals of a browser that the client uses. The bundle runs with these and no others. */
const BROWSER = {
  ...{ fetch, URL, URLSearchParams, AbortController, AbortSignal, ReadableStream, TextDecoder, TextEncoder },
  ...{
    setTimeout,
    clearTimeout,
    setInterval,
    clearInterval,
    performance,
    crypto: { randomUUID: () => crypto.randomUUID() },
  },
};

test('the client sends prompts, follows events and reports errors in a page, without Node and without the schema library', async () => {
  const { code, modules } = await clientBundle();
  const packages = modules.flatMap((id) => /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(id)?.[1] ?? []);
  expect([...new Set(packages)]).toEqual(['eventsource-parser']);
  expect(modules.filter((id) => /__vite-browser-external|^node:/.test(id))).toEqual([]);
  const context = createContext({ ...BROWSER });
  runInContext(code, context);
  const { connect, statusOf } = context.throughline as typeof client;

  await using home = await ServedHome.start();
  const tl = await connect({ url: home.url, token: TOKEN, onPermission: () => 'allow' });
  const kinds: string[] = [];
  for await (const { kind } of tl.conversation('chat').send('The codeword is osprey.').events) kinds.push(kind);
  expect([kinds.at(0), kinds.at(-1)]).toEqual(['turn.queued', 'turn.ended']);
  const { reply } = await tl.conversation('chat').ask('Which codewords have you seen?');
  expect(reply).toBe('I have seen these codewords: osprey.');
  // The option `onPermission` of connect() answers this.
  expect((await tl.conversation('chat').ask('/ask May I?')).reply).toBe('Done.');
  await expect(tl.engine.conversation('nothing')).rejects.toMatchObject({
    name: 'ThroughlineError',
    code: 'not_found',
  });
  // An error has the status with which the server answered it.
  const missing = await tl.engine.conversation('nothing').catch((error: unknown) => error);
  const { status } = await fetch(new URL('/v1/conversations/nothing', home.url), {
    headers: { authorization: `Bearer ${TOKEN}` },
  });
  expect(statusOf(missing)).toBe(status);
  expect(await tl.tasks.run({ goal: 'hello', cwd: home.path })).toMatchObject([{ state: 'done', cwd: home.path }]);
  await expect(tl.tasks.add({ goal: 'hello', cwd: '.' })).rejects.toMatchObject({ code: 'invalid' }); // it is relative
  expect(await tl.server.whoAmI()).toMatchObject({
    owner: 'local',
    by: 'token',
    scopes: expect.arrayContaining(['admin']),
  });
  expect(await tl.server.health()).toMatchObject({ status: 'ok', ready: true, reasons: [] });
  expect(await tl.server.as('ann').whoAmI()).toMatchObject({ owner: 'ann' });
  expect(await tl.server.examine()).toEqual([]);
  await tl.close();
});
