// The page opens in a browser as the server serves it, and the harness reports all faults.
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'vitest';
import { axe, PHONE, pageServer } from './harness.ts';

const server = pageServer();

server.test('a one-time link opens the page with its title, and signs the browser in', async ({ context }) => {
  await context.clearCookies();
  const page = await context.newPage();
  await page.goto(await server.link());
  expect(new URL(page.url()).pathname).toBe('/');
  expect(await page.title()).toContain('Throughline');
  await page.locator('#root > *').first().waitFor();
  expect((await context.cookies()).map(({ name }) => name)).toEqual([`throughline-${new URL(server.url).port}`]);
});

server.test(
  'the files of the page are cached for ever, its document is not, and all come from the server',
  async ({ open, context }) => {
    const responses: { path: string; cacheControl: string | undefined; encoding: string | undefined }[] = [];
    context.on('response', (response) => {
      const { pathname } = new URL(response.url());
      const { 'cache-control': cacheControl, 'content-encoding': encoding } = response.headers();
      if (!pathname.startsWith('/v1/')) responses.push({ path: pathname, cacheControl, encoding });
    });
    await open('/');
    // Playwright may report responses after the page is loaded.
    await expect.poll(() => responses.find(({ path }) => path === '/')?.cacheControl).toBe('no-cache');
    const scripts = () => responses.filter(({ path }) => path.endsWith('.js'));
    await expect.poll(() => scripts().map(({ encoding }) => encoding)).toContain('br');
    const files = responses.filter(({ path }) => path !== '/');
    expect(
      files.filter(({ path, cacheControl }) => !path.startsWith('/assets/') || !cacheControl?.includes('immutable')),
    ).toEqual([]);
  },
);

server.test(
  '“For you” has no serious findings of axe on a phone',
  async ({ open }) => {
    const page = await open('/');
    await page.getByRole('heading', { name: 'For you' }).waitFor();
    await axe(page);
  },
  PHONE,
);

server.test('the page can be installed, with icons of its server', async ({ open, context }) => {
  const page = await open('/');
  const session = await context.newCDPSession(page);
  const { url, errors, data } = await session.send('Page.getAppManifest');
  expect([errors, new URL(url).origin]).toEqual([[], server.url]);
  const { icons, ...manifest } = JSON.parse(data ?? '{}');
  expect(manifest).toMatchObject({ name: 'Throughline', start_url: '/', display: 'standalone' });
  const types = await Promise.all(
    [url, ...icons.map(({ src }: { src: string }) => server.url + src)].map(async (file) => {
      const response = await context.request.get(file);
      return [response.status(), response.headers()['content-type']].join(' ');
    }),
  );
  expect(types).toEqual(['200 application/manifest+json', ...icons.map(() => '200 image/png')]);
  const problems = (await session.send('Page.getInstallabilityErrors')).installabilityErrors;
  // This browser has no profile that something could be installed in.
  expect(problems.map(({ errorId }) => errorId).filter((id) => id !== 'in-incognito')).toEqual([]);
});

server.test('a control has a tooltip, which shows on hover and on keyboard focus', async ({ open }) => {
  const page = await open('/');
  const tip = page.getByRole('tooltip');
  await page.getByRole('button', { name: 'New conversation' }).hover();
  await tip.waitFor();
  expect(await tip.innerText()).toMatch(/^New conversation\s*c$/); // with its keyboard shortcut
  await page.getByRole('heading', { name: 'For you' }).hover();
  await tip.waitFor({ state: 'detached' });
  await page.getByRole('complementary').getByRole('link', { name: 'Throughline' }).focus();
  await page.keyboard.press('Tab');
  await tip.waitFor();
  await page.keyboard.press('Escape');
  await tip.waitFor({ state: 'detached' });
});

server.test(
  'while the next conversation loads, the previous one stays for 150 ms, and then a skeleton is shown',
  async (visit) => {
    const tl = await server.tl();
    const ids: string[] = [];
    for (const key of ['first', 'second']) {
      await tl.conversation(key).ask(`/say The ${key} one.`);
      ids.push((await tl.conversation(key).get()).id);
    }
    const page = await visit.open(`/c/${ids[0]}`);
    const next = page.locator(`a[href="/c/${ids[1]}"]`).first();
    await Promise.all([page.getByText('The first one.', { exact: true }).waitFor(), next.waitFor()]);
    const mayRespond = Promise.withResolvers<void>();
    await page.route(new RegExp(`/v1/conversations/${ids[1]}/turns`), async (route) => {
      await mayRespond.promise;
      await route.continue();
    });
    await page.evaluate(() => {
      const seen: [view: string, timeOf: number][] = [];
      const record = () => {
        const main = document.querySelector('main');
        const shows = (words: string) => main?.querySelector('article')?.textContent.includes(words) === true;
        const isBusy = main?.querySelector('[aria-busy="true"]') !== null;
        const view = shows('The first one.')
          ? 'first'
          : shows('The second one.')
            ? 'second'
            : isBusy
              ? 'skeleton'
              : 'nothing';
        if (seen.at(-1)?.[0] !== view) seen.push([view, performance.now()]);
      };
      addEventListener('click', () => seen.push(['click', performance.now()]), true);
      new MutationObserver(record).observe(document.body, { subtree: true, childList: true, characterData: true });
      Object.assign(globalThis, { seen });
    });
    await next.click();
    const seen = () => page.evaluate(() => (globalThis as unknown as { seen: [string, number][] }).seen);
    await expect.poll(async () => (await seen()).at(-1)?.[0]).toBe('skeleton');
    mayRespond.resolve();
    await page.getByText('The second one.', { exact: true }).waitFor();
    const all = await seen();
    expect(all.map(([view]) => view).filter((view) => view !== 'click' && view !== 'first')).toEqual([
      'skeleton',
      'second',
    ]);
    const timeOf = (view: string) => all.find(([entry]) => entry === view)?.[1] ?? Number.NaN;
    expect(timeOf('skeleton') - timeOf('click')).toBeGreaterThan(145); // 150 ms, with a margin for inexact timers
  },
);

server.test(
  'no animation is endless while an agent works and asks, and with reduced motion there are none',
  async (visit) => {
    const tl = await server.tl();
    const chat = tl.conversation('calm');
    await chat.send('/ask May I?', { permissions: 'ask' }).accepted;
    const page = await visit.open(`/c/${(await chat.get()).id}`);
    await page.getByRole('button', { name: 'Allow' }).click({ trial: true });
    const endlessAnimations = () =>
      page.evaluate(
        () => document.getAnimations().filter(({ effect }) => effect?.getComputedTiming().endTime === Infinity).length,
      );
    expect(await endlessAnimations()).toBe(0);
    await page.emulateMedia({ reducedMotion: 'reduce' });
    const longestSeconds = await page.evaluate(() => {
      const seconds = (list: string) => Math.max(...list.split(',').map((entry) => Number.parseFloat(entry)));
      const durations = [...document.querySelectorAll('*')].map((element) => {
        const { transitionDuration, animationDuration } = getComputedStyle(element);
        return Math.max(seconds(transitionDuration), seconds(animationDuration));
      });
      return Math.max(...durations);
    });
    expect(longestSeconds).toBeLessThan(0.001);
    await chat.cancel();
  },
);

server.test('the harness reports every kind of fault', async ({ open, takeFaults, allow }) => {
  const page = await open('/');
  expect(takeFaults()).toEqual([]);
  const ran = await page.evaluate(() => {
    const script = document.createElement('script');
    script.textContent = 'globalThis.ran = true';
    document.head.append(script);
    return 'ran' in globalThis;
  });
  expect(ran).toBe(false);
  await expect.poll(() => takeFaults().join('\n')).toMatch(/securitypolicyviolation: script-src/);
  await page.evaluate(() => console.error('an error'));
  await page.evaluate(
    () =>
      void setTimeout(() => {
        throw new Error('thrown');
      }),
  );
  await page.evaluate(() => void fetch('https://elsewhere.example').catch(() => {}));
  const seen: string[] = [];
  const kinds = [/^console: an error/, /^uncaught: Error: thrown/, /connect-src.* https:\/\/elsewhere\.example/];
  await expect
    .poll(() => seen.push(...takeFaults()) && kinds.filter((kind) => !seen.some((one) => kind.test(one))))
    .toEqual([]);

  const elsewhere = createServer((_, response) => response.end()).listen(0, '127.0.0.1');
  await once(elsewhere, 'listening');
  await page.goto(`http://127.0.0.1:${(elsewhere.address() as AddressInfo).port}/`);
  await new Promise((resolve) => elsewhere.close(resolve).closeAllConnections());
  expect(takeFaults().join('\n')).toMatch(/^foreign: /m);
  allow(/this one/);
  const ownPage = await open('/');
  await ownPage.evaluate(() => console.error('this one is expected'));
});
