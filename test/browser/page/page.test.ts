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
