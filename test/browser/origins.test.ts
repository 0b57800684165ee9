// Pages of another origin in a real browser: what `--allow-origin` allows and refuses, and which error the page gets.
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import { ServedHome, TOKEN } from '../e2e/http/support/served-home.ts';
import { browserTest } from './browser.ts';
import { OtherSite, openPage } from './pages.ts';

/** The error of `connect` in the page; null: it connected. */
function connectError(page: Page, url: string, token: string | null = 'tl_0123456789abcdef.x') {
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
  'a page of an allowed origin sends a prompt, reads the text as it streams, answers a permission, follows and cancels',
  async (context) => {
    await using site = await OtherSite.start();
    await using home = await ServedHome.start({
      server: { allowOrigins: [site.origin] },
      engine: { permissions: 'ask' },
    });
    const { key } = await home.key('ann', ['read', 'prompt', 'approve']);
    const page = await openPage(context, site.origin);
    const result = await page.evaluate(
      async ([url, token]) => {
        const tl = await throughline.connect({ url, token });
        const chat = tl.conversation('chat');
        const answer = chat.send('/say one \n/ask May I?\n/say two');
        const texts = await readTextsAndAllow(tl, answer);
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
    expect(result.texts.join('')).toBe(result.reply);
    expect(result.texts.length).toBeGreaterThan(1);
    expect(result.texts[0]).not.toContain('two');
    expect([result.kinds[0], result.kinds.at(-1)]).toEqual(['conversation.created', 'turn.ended']);
    expect(result).toMatchObject({ cancelled: 'cancelled', missing: 'not_found', tracked: { status: 'pending' } });
    expect((await home.engine.as('ann').turns('chat')).map(({ state }) => state)).toEqual(['completed', 'cancelled']);
  },
);

browserTest(
  'if the origin is not allowed, or the server does not run, the page gets an error that says so and what to do',
  async (context) => {
    await using site = await OtherSite.start();
    await using home = await ServedHome.start({ server: { allowOrigins: [site.origin] } });
    await using homeWithoutOrigins = await ServedHome.start();
    const { key } = await home.key('ann', ['read']);
    // The other host name of the site is another origin.
    for (const [origin, url] of [
      [site.otherOrigin, home.url],
      [site.origin, homeWithoutOrigins.url],
    ] as const) {
      const page = await openPage(context, origin);
      expect(await connectError(page, url, key)).toEqual({
        ...{ name: 'ThroughlineError', code: 'refused' },
        message: `Something answers at ${url}, but this page may not read it: the server does not allow the origin ${origin}.`,
        hint: expect.stringContaining(`"--allow-origin ${origin}"`),
      });
    }
    const stoppedServer = createServer().listen(0, '127.0.0.1');
    await once(stoppedServer, 'listening');
    const stoppedUrl = `http://127.0.0.1:${(stoppedServer.address() as AddressInfo).port}`;
    await new Promise((resolve) => stoppedServer.close(resolve));
    const page = await openPage(context, site.origin);
    expect(await connectError(page, stoppedUrl)).toMatchObject({
      ...{
        code: 'unreachable',
        message: `The server at ${stoppedUrl} does not answer requests from the page ${site.origin}.`,
      },
      hint: expect.stringContaining('Check whether it runs'),
    });
    // The origin "null" of a sandboxed frame cannot be allowed.
    const framed = await openPage(context, `${site.origin}/framed`);
    const [, frame] = framed.frames();
    expect(await connectError(frame as unknown as Page, home.url, key)).toMatchObject({
      ...{ code: 'refused', message: expect.stringContaining('does not allow the origin null') },
      hint: expect.stringContaining('serve it over http'),
    });
  },
);

browserTest(
  'a page of an allowed origin needs a key: the token is refused with the reason, and cookies are ignored',
  async (context) => {
    await using site = await OtherSite.start();
    await using home = await ServedHome.start({ server: { allowOrigins: [site.origin] } });
    await openPage(context, await home.newLink()); // signs this browser in
    const page = await openPage(context, site.origin);
    expect(await connectError(page, home.url, TOKEN)).toMatchObject({
      ...{
        code: 'refused',
        message: expect.stringContaining('needs a key; the token of the data home is not accepted'),
      },
      hint: expect.stringContaining('throughline keys create'),
    });
    expect(await connectError(page, home.url)).toMatchObject({
      code: 'refused',
      message: expect.stringContaining('token'),
    });
    expect(await connectError(page, home.url, null)).toMatchObject({ code: 'refused' });
    const read = (credentials: 'omit' | 'include') =>
      page.evaluate(([url, how]) => fetch(`${url}/v1/me`, { credentials: how }).then(({ status }) => status, String), [
        home.url,
        credentials,
      ] as const);
    expect(await read('omit')).toBe(401);
    expect(await read('include')).toMatch(/Failed to fetch/); // the browser blocks the response
    const accepted = () => home.log.filter((line) => line.includes('"operation":"whoAmI","status":200'));
    expect(accepted()).toEqual([]);
    // At the server's own address the cookie is accepted, and the log says so.
    const response = await (await context.newPage()).goto(`${home.url}/v1/me`);
    expect(response?.status()).toBe(200);
    await expect.poll(accepted).toHaveLength(1);
  },
);
