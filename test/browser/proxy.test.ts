// The recipe of docs/browsers.md: the pages of an app use Throughline through the app's own server.
import { type ChildProcess, spawn } from 'node:child_process';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';
import { ServedHome } from '../e2e/http/support/served-home.ts';
import { until } from '../e2e/support/conversations.ts';
import { browserTest } from './browser.ts';
import { clientBundle, OtherSite, openPage, PAGE } from './pages.ts';

const EXAMPLE = fileURLToPath(new URL('../../examples/browser-proxy.ts', import.meta.url));

/** Runs examples/browser-proxy.ts as its first lines describe. */
class App {
  readonly #folder = mkdtempSync(join(tmpdir(), 'throughline-app-'));
  #child!: ChildProcess;
  url = '';

  static async start(server: string, keys: Record<string, string>): Promise<App> {
    const app = new App();
    writeFileSync(join(app.#folder, 'index.html'), PAGE);
    writeFileSync(join(app.#folder, 'client.js'), (await clientBundle()).code);
    const env = {
      PATH: process.env.PATH,
      THROUGHLINE_SERVER: server,
      THROUGHLINE_KEYS: JSON.stringify(keys),
      PORT: '0',
    };
    app.#child = spawn(process.execPath, [EXAMPLE, app.#folder], { env, stdio: ['ignore', 'pipe', 'inherit'] });
    app.url = String(await once(app.#child.stdout as NodeJS.ReadableStream, 'data')).trim();
    return app;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const ended = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await ended;
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

/** Resolves when a server of this process has received a request that waits for an answer. */
function waitingRequest(): Promise<void> {
  return new Promise((resolve) => {
    const listener = (message: unknown) => {
      const { url = '' } = (message as { request: IncomingMessage }).request;
      if (!/\/answer\?wait=/.test(url)) return;
      unsubscribe('http.server.request.start', listener);
      resolve();
    };
    subscribe('http.server.request.start', listener);
  });
}

browserTest(
  'a page uses Throughline through a proxy, which has the key: streams are not buffered, and end with the page',
  async (context) => {
    await using home = await ServedHome.start({ engine: { permissions: 'ask' } });
    const { key } = await home.key('ann', ['read', 'prompt', 'approve']);
    await using app = await App.start(home.url, { ann: key });
    await context.addCookies([{ name: 'user', value: 'ann', url: app.url }]);
    const page = await openPage(context, app.url);
    const result = await page.evaluate(async () => {
      const tl = await throughline.connect({ url: '/throughline' });
      const answer = tl.conversation('chat').send('/say one \n/ask May I?\n/say two');
      const texts = await readTextsAndAllow(tl, answer);
      const { reply, turn } = await answer;
      const leave = new AbortController();
      void (async () => {
        for await (const _ of tl.conversation('chat').follow({ signal: leave.signal })) leave.abort();
      })();
      return { owner: tl.engine.owner, texts, reply, state: turn.state };
    });
    expect(result).toMatchObject({ owner: 'ann', state: 'completed' });
    expect(result.texts[0]).not.toContain('two');
    expect(result.texts.join('')).toBe(result.reply);
    await until('the server closes the stream that the page aborted', () => home.metrics.readers === 0);
    // A request that waits for its response is ended as well.
    const requestWaits = waitingRequest();
    await page.evaluate(async () => {
      const tl = await throughline.connect({ url: '/throughline' });
      const { turn } = await tl.conversation('slow').send('/hang').accepted;
      const leave = new AbortController();
      Object.assign(globalThis, { leave: () => leave.abort() });
      void tl.answerOf(turn.id, { waitMs: 60_000, signal: leave.signal }).catch(() => {});
    });
    await requestWaits;
    await page.evaluate(() => (globalThis as unknown as { leave(): void }).leave());
    const hasEnded = () =>
      home.log.some((line) => line.includes('"operation":"answerOf"') && line.includes('"status":409'));
    await until('the server ends the request that the page aborted', hasEnded);
    // An open stream ends when its page is closed.
    await page.evaluate(async () => {
      const tl = await throughline.connect({ url: '/throughline' });
      void tl.hints()[Symbol.asyncIterator]().next();
    });
    await until('the page has opened a stream', () => home.metrics.readers === 1);
    await page.close();
    await until('the server closes the stream of the closed page', () => home.metrics.readers === 0);
  },
);

browserTest(
  'the proxy refuses pages of other sites, browsers that are not signed in, and other paths',
  async (context) => {
    await using home = await ServedHome.start();
    const { key } = await home.key('ann', ['read', 'prompt']);
    await using app = await App.start(home.url, { ann: key });
    await using site = await OtherSite.start();
    const fetchFrom = async (from: string, path: string) => {
      const page = await openPage(context, from);
      return page.evaluate(
        (url) => fetch(url, { credentials: 'include', mode: 'no-cors' }).then(({ status, type }) => [type, status]),
        `${app.url}${path}`,
      );
    };
    expect(await fetchFrom(app.url, '/throughline/v1/me')).toEqual(['basic', 403]);
    await context.addCookies([{ name: 'user', value: 'ann', url: app.url }]);
    expect(await fetchFrom(app.url, '/throughline/v1/me')).toEqual(['basic', 200]);
    expect(await fetchFrom(app.url, '/throughline/metrics')).toEqual(['basic', 404]);
    expect(await fetchFrom(app.url, '/throughline/v1/..%2f..%2fmetrics')).toEqual(['basic', 404]);
    expect(await fetchFrom(site.origin, '/throughline/v1/conversations')).toEqual(['opaque', 0]);
    const logged = (operation: string) => home.log.filter((line) => line.includes(`"operation":"${operation}"`));
    await expect.poll(() => logged('whoAmI')).toHaveLength(1);
    expect(logged('listConversations')).toEqual([]);
  },
);
