// That the page opens in a browser as the server serves it, and that the harness notices what must not happen.
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'vitest';
import { axe, PHONE, pageServer } from './harness.ts';

const server = pageServer();

server.test('the one-time link opens the page, under its name, and signs the browser in', async ({ context }) => {
  await context.clearCookies();
  const page = await context.newPage();
  await page.goto(await server.link());
  expect(new URL(page.url()).pathname).toBe('/');
  expect(await page.title()).toContain('Throughline');
  await page.locator('#root > *').first().waitFor();
  expect((await context.cookies()).map(({ name }) => name)).toEqual([`throughline-${new URL(server.url).port}`]);
});

server.test(
  'its files are kept for ever, its document is not, and none comes from elsewhere',
  async ({ open, context }) => {
    const answers: { path: string; kept: string | undefined; encoding: string | undefined }[] = [];
    context.on('response', (response) => {
      const { pathname } = new URL(response.url());
      const { 'cache-control': kept, 'content-encoding': encoding } = response.headers();
      if (!pathname.startsWith('/v1/')) answers.push({ path: pathname, kept, encoding });
    });
    await open('/');
    // What the browser says of its requests may come after the page is loaded.
    await expect.poll(() => answers.find(({ path }) => path === '/')?.kept).toBe('no-cache');
    const scripts = () => answers.filter(({ path }) => path.endsWith('.js'));
    await expect.poll(() => scripts().map(({ encoding }) => encoding)).toContain('br');
    const files = answers.filter(({ path }) => path !== '/');
    expect(files.filter(({ path, kept }) => !path.startsWith('/assets/') || !kept?.includes('immutable'))).toEqual([]);
  },
);

server.test(
  'it has no serious findings, also on a phone',
  async ({ open }) => {
    const page = await open('/');
    await page.getByRole('heading', { name: 'Inbox' }).waitFor();
    await axe(page);
  },
  PHONE,
);

server.test('a control says what it does when a pointer rests on it, and when keys lead to it', async ({ open }) => {
  const page = await open('/');
  const tip = page.getByRole('tooltip');
  await page.getByRole('button', { name: 'New conversation' }).hover();
  await tip.waitFor();
  expect(await tip.innerText()).toMatch(/^New conversation\s*c$/); // with the key that does the same
  await page.getByRole('heading', { name: 'Inbox' }).hover();
  await tip.waitFor({ state: 'detached' });
  await page.getByRole('complementary').getByRole('link', { name: 'Throughline' }).focus();
  await page.keyboard.press('Tab');
  await tip.waitFor();
  await page.keyboard.press('Escape');
  await tip.waitFor({ state: 'detached' });
});

server.test(
  'the previous conversation stays for a moment, and then a skeleton stands in for the next',
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
    const mayAnswer = Promise.withResolvers<void>();
    await page.route(new RegExp(`/v1/conversations/${ids[1]}/turns`), async (route) => {
      await mayAnswer.promise;
      await route.continue();
    });
    await page.evaluate(() => {
      const seen: [what: string, at: number][] = [];
      const look = () => {
        const main = document.querySelector('main');
        const has = (words: string) => main?.querySelector('article')?.textContent.includes(words) === true;
        const isBusy = main?.querySelector('[aria-busy="true"]') !== null;
        const what = has('The first one.')
          ? 'first'
          : has('The second one.')
            ? 'second'
            : isBusy
              ? 'skeleton'
              : 'nothing';
        if (seen.at(-1)?.[0] !== what) seen.push([what, performance.now()]);
      };
      addEventListener('click', () => seen.push(['click', performance.now()]), true);
      new MutationObserver(look).observe(document.body, { subtree: true, childList: true, characterData: true });
      Object.assign(globalThis, { seen });
    });
    await next.click();
    const seen = () => page.evaluate(() => (globalThis as unknown as { seen: [string, number][] }).seen);
    await expect.poll(async () => (await seen()).at(-1)?.[0]).toBe('skeleton');
    mayAnswer.resolve();
    await page.getByText('The second one.', { exact: true }).waitFor();
    const all = await seen();
    expect(all.map(([what]) => what).filter((what) => what !== 'click' && what !== 'first')).toEqual([
      'skeleton',
      'second',
    ]);
    const at = (what: string) => all.find(([each]) => each === what)?.[1] ?? Number.NaN;
    expect(at('skeleton') - at('click')).toBeGreaterThan(145);
  },
);

server.test(
  'nothing pulses while an agent works and asks, and nothing moves for those who want no motion',
  async (visit) => {
    const tl = await server.tl();
    const chat = tl.conversation('calm');
    await chat.send('/ask May I?', { permissions: 'ask' }).accepted;
    const page = await visit.open(`/c/${(await chat.get()).id}`);
    await page.getByRole('button', { name: 'Allow' }).click({ trial: true });
    const endless = () =>
      page.evaluate(
        () => document.getAnimations().filter(({ effect }) => effect?.getComputedTiming().endTime === Infinity).length,
      );
    expect(await endless()).toBe(0);
    await page.emulateMedia({ reducedMotion: 'reduce' });
    const longest = await page.evaluate(() => {
      const seconds = (list: string) => Math.max(...list.split(',').map((each) => Number.parseFloat(each)));
      const durations = [...document.querySelectorAll('*')].map((element) => {
        const { transitionDuration, animationDuration } = getComputedStyle(element);
        return Math.max(seconds(transitionDuration), seconds(animationDuration));
      });
      return Math.max(...durations);
    });
    expect(longest).toBeLessThan(0.001);
    await chat.cancel();
  },
);

server.test('the harness notices every kind of fault', async ({ open, takeFaults, allow }) => {
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
  const own = await open('/');
  await own.evaluate(() => console.error('this one is expected'));
});
