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
import { clientBundle, OtherSite, opened, PAGE } from './pages.ts';

const EXAMPLE = fileURLToPath(new URL('../../examples/browser-proxy.ts', import.meta.url));

/** examples/browser-proxy.ts, started as its first lines say. */
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

/** Resolves when somebody waits for an answer at a server of this process. */
function waiting(): Promise<void> {
  return new Promise((resolve) => {
    const see = (message: unknown) => {
      const { url = '' } = (message as { request: IncomingMessage }).request;
      if (!/\/answer\?wait=/.test(url)) return;
      unsubscribe('http.server.request.start', see);
      resolve();
    };
    subscribe('http.server.request.start', see);
  });
}

browserTest(
  'a page speaks through its own server, which has the key: streams are not collected, and end with the page',
  async (context) => {
    await using home = await ServedHome.start({ engine: { permissions: 'ask' } });
    const { key } = await home.key('ann', ['read', 'prompt', 'approve']);
    await using app = await App.start(home.url, { ann: key });
    await context.addCookies([{ name: 'user', value: 'ann', url: app.url }]);
    const page = await opened(context, app.url);
    const seen = await page.evaluate(async () => {
      const tl = await throughline.connect({ url: '/throughline' });
      const answer = tl.conversation('chat').send('/say one \n/ask May I?\n/say two');
      const texts = await textsWhileAllowing(tl, answer);
      const { reply, turn } = await answer;
      const leave = new AbortController();
      void (async () => {
        for await (const _ of tl.conversation('chat').follow({ signal: leave.signal })) leave.abort();
      })();
      return { owner: tl.engine.owner, texts, reply, state: turn.state };
    });
    expect(seen).toMatchObject({ owner: 'ann', state: 'completed' });
    expect(seen.texts[0]).not.toContain('two');
    expect(seen.texts.join('')).toBe(seen.reply);
    await until('the stream that the page has left is closed at the server', () => home.metrics.readers === 0);
    // So is a request that waits, before anything was answered.
    const waits = waiting();
    await page.evaluate(async () => {
      const tl = await throughline.connect({ url: '/throughline' });
      const { turn } = await tl.conversation('slow').send('/hang').accepted;
      const leave = new AbortController();
      Object.assign(globalThis, { leave: () => leave.abort() });
      void tl.answerOf(turn.id, { waitMs: 60_000, signal: leave.signal }).catch(() => {});
    });
    await waits;
    await page.evaluate(() => (globalThis as unknown as { leave(): void }).leave());
    const waited = () =>
      home.log.some((line) => line.includes('"operation":"answerOf"') && line.includes('"status":409'));
    await until('the request that the page has left has ended', waited);
    // One that is open ends with its page.
    await page.evaluate(async () => {
      const tl = await throughline.connect({ url: '/throughline' });
      void tl.hints()[Symbol.asyncIterator]().next();
    });
    await until('the page reads', () => home.metrics.readers === 1);
    await page.close();
    await until('its stream is closed at the server', () => home.metrics.readers === 0);
  },
);

browserTest(
  'the app’s server serves nobody else: no page of another site, nobody who is not signed in, no other path',
  async (context) => {
    await using home = await ServedHome.start();
    const { key } = await home.key('ann', ['read', 'prompt']);
    await using app = await App.start(home.url, { ann: key });
    await using site = await OtherSite.start();
    const ask = async (from: string, path: string) => {
      const page = await opened(context, from);
      return page.evaluate(
        (url) => fetch(url, { credentials: 'include', mode: 'no-cors' }).then(({ status, type }) => [type, status]),
        `${app.url}${path}`,
      );
    };
    expect(await ask(app.url, '/throughline/v1/me')).toEqual(['basic', 403]);
    await context.addCookies([{ name: 'user', value: 'ann', url: app.url }]);
    expect(await ask(app.url, '/throughline/v1/me')).toEqual(['basic', 200]);
    expect(await ask(app.url, '/throughline/metrics')).toEqual(['basic', 404]);
    expect(await ask(app.url, '/throughline/v1/..%2f..%2fmetrics')).toEqual(['basic', 404]);
    expect(await ask(site.origin, '/throughline/v1/conversations')).toEqual(['opaque', 0]);
    expect(home.log.filter((line) => line.includes('listConversations'))).toEqual([]);
  },
);
