// Pages of another origin, in a real browser: what `--allow-origin` allows, what it does not, and what the page is told.
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import { ServedHome, TOKEN } from '../e2e/http/support/served-home.ts';
import { browserTest } from './browser.ts';
import { OtherSite, opened } from './pages.ts';

/** What `connect` in the page is refused with. */
function refusal(page: Page, url: string, token: string | null = 'tl_0123456789abcdef.x') {
  return page.evaluate(
    async ([server, secret]) => {
      try {
        await throughline.connect({ url: server as string, ...(secret !== null && { token: secret as string }) });
        return null;
      } catch (error) {
        const { name, code, message, hint } = error as InstanceType<typeof throughline.ThroughlineError>;
        return { name, code, message, hint };
      }
    },
    [url, token] as const,
  );
}

browserTest(
  'a page of an allowed origin speaks, reads the text as it comes, answers, follows and cancels',
  async (context) => {
    await using site = await OtherSite.start();
    await using home = await ServedHome.start({
      server: { allowOrigins: [site.origin] },
      engine: { permissions: 'ask' },
    });
    const { key } = await home.key('ann', ['read', 'prompt', 'approve']);
    const page = await opened(context, site.origin);
    const seen = await page.evaluate(
      async ([url, token]) => {
        const tl = await throughline.connect({ url, token });
        const chat = tl.conversation('chat');
        const answer = chat.send('/say one \n/ask May I?\n/say two');
        const texts = await textsWhileAllowing(tl, answer);
        const { reply } = await answer;
        const kinds: string[] = [];
        for await (const { kind } of chat.follow()) {
          kinds.push(kind);
          if (kind === 'turn.ended') break;
        }
        const abort = new AbortController();
        const hanging = chat.send('/hang', { signal: abort.signal });
        await hanging.accepted;
        abort.abort();
        const cancelled = await hanging.result.then(
          () => null,
          ({ code }) => code as string,
        );
        const missing = await tl.engine.conversation('nothing').catch(({ code }) => code as string);
        const tracked = await tl.tracker().trackRequest('req1', 'agent456', null, { prompt: 'Hello' });
        await tl.close();
        return { texts, reply, kinds, cancelled, missing, tracked };
      },
      [home.url, key] as const,
    );
    expect(seen.texts.join('')).toBe(seen.reply);
    expect(seen.texts.length).toBeGreaterThan(1);
    expect(seen.texts[0]).not.toContain('two');
    expect([seen.kinds[0], seen.kinds.at(-1)]).toEqual(['conversation.created', 'turn.ended']);
    expect(seen).toMatchObject({ cancelled: 'cancelled', missing: 'not_found', tracked: { status: 'pending' } });
    expect((await home.engine.as('ann').turns('chat')).map(({ state }) => state)).toEqual(['completed', 'cancelled']);
  },
);

browserTest(
  'a page of another origin is told that it is not allowed, and what to do; and where nothing answers, that',
  async (context) => {
    await using site = await OtherSite.start();
    await using home = await ServedHome.start({ server: { allowOrigins: [site.origin] } });
    await using closed = await ServedHome.start();
    const { key } = await home.key('ann', ['read']);
    // The same page under another name of this machine: another origin.
    for (const [origin, url] of [
      [site.otherName, home.url],
      [site.origin, closed.url],
    ] as const) {
      const page = await opened(context, origin);
      expect(await refusal(page, url, key)).toEqual({
        ...{ name: 'ThroughlineError', code: 'refused' },
        message: `Something answers at ${url}, but this page may not read it: the server does not allow the origin ${origin}.`,
        hint: expect.stringContaining(`"--allow-origin ${origin}"`),
      });
    }
    const gone = createServer().listen(0, '127.0.0.1');
    await once(gone, 'listening');
    const nowhere = `http://127.0.0.1:${(gone.address() as AddressInfo).port}`;
    await new Promise((resolve) => gone.close(resolve));
    const page = await opened(context, site.origin);
    expect(await refusal(page, nowhere)).toMatchObject({
      ...{
        code: 'unreachable',
        message: `The server at ${nowhere} does not answer requests from the page ${site.origin}.`,
      },
      hint: expect.stringContaining('Check whether it runs'),
    });
    // A frame without an origin is allowed nowhere.
    const framed = await opened(context, `${site.origin}/framed`);
    const [, inside] = framed.frames();
    expect(await refusal(inside as unknown as Page, home.url, key)).toMatchObject({
      ...{ code: 'refused', message: expect.stringContaining('does not allow the origin null') },
      hint: expect.stringContaining('serve it over http'),
    });
  },
);

browserTest(
  'an allowed page needs a key: the token is refused with the reason, and no cookie counts',
  async (context) => {
    await using site = await OtherSite.start();
    await using home = await ServedHome.start({ server: { allowOrigins: [site.origin] } });
    await opened(context, await home.newLink()); // this browser is signed in from here on
    const page = await opened(context, site.origin);
    expect(await refusal(page, home.url, TOKEN)).toMatchObject({
      ...{
        code: 'refused',
        message: expect.stringContaining('needs a key; the token of the data home is not accepted'),
      },
      hint: expect.stringContaining('throughline keys create'),
    });
    expect(await refusal(page, home.url)).toMatchObject({ code: 'refused', message: expect.stringContaining('token') });
    expect(await refusal(page, home.url, null)).toMatchObject({ code: 'refused' });
    const read = (credentials: 'omit' | 'include') =>
      page.evaluate(([url, how]) => fetch(`${url}/v1/me`, { credentials: how }).then(({ status }) => status, String), [
        home.url,
        credentials,
      ] as const);
    expect(await read('omit')).toBe(401);
    expect(await read('include')).toMatch(/Failed to fetch/); // the browser itself keeps the answer from the page
    expect(home.log.filter((line) => line.includes('"operation":"whoAmI","status":200'))).toEqual([]);
    // At the server's own address the cookie counts.
    const own = await (await context.newPage()).goto(`${home.url}/v1/me`);
    expect(own?.status()).toBe(200);
  },
);
