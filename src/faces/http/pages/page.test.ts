import { mkdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { beforeEach, expect, test } from 'vitest';
import { temporaryFolder } from '../../../../test/temporary-folder.ts';
import { BuiltPage, isOfPage, isOpenToAll } from './page.ts';

const SCRIPT = 'export const answer = 42;\n'.repeat(100);

let folder: string;
beforeEach(() => {
  folder = temporaryFolder();
});

/** A build as scripts/page.js leaves it. */
function build(document: string, name: string, changed = 1): void {
  mkdirSync(join(folder, 'assets'), { recursive: true });
  writeFileSync(join(folder, 'assets', name), SCRIPT);
  writeFileSync(join(folder, 'assets', `${name}.br`), brotliCompressSync(SCRIPT));
  writeFileSync(join(folder, 'assets', `${name}.gz`), gzipSync(SCRIPT));
  writeFileSync(join(folder, 'index.html'), document);
  utimesSync(join(folder, 'index.html'), changed, changed);
}

const asking =
  (headers: Record<string, string> = {}) =>
  (name: string) =>
    headers[name];

test('the document is requested each time, and sent again only when it has changed', async () => {
  build('<p>one</p>', 'main-1.js');
  const page = new BuiltPage(folder, { rereads: false });
  const first = await page.document(asking());
  expect(first).toMatchObject({ status: 200, headers: { 'cache-control': 'no-cache' } });
  expect(String(first.body)).toBe('<p>one</p>');
  const { etag = '' } = first.headers;
  for (const known of [etag, `W/${etag}`, `"x", ${etag}`]) {
    expect(await page.document(asking({ 'if-none-match': known }))).toMatchObject({ status: 304, body: null });
  }
  expect((await page.document(asking({ 'if-none-match': '"x"' }))).status).toBe(200);
});

test.each([
  ['gzip, deflate, br', 'br'],
  ['gzip;q=1.0, br;q=0', 'gzip'],
  ['GZIP', 'gzip'],
  ['identity', undefined],
  ['', undefined],
])('a file is sent in an encoding that the browser accepts: %j', async (accepted, encoding) => {
  build('<p>', 'main-1.js');
  const page = new BuiltPage(folder, { rereads: false });
  const answer = await page.asset('main-1.js', asking({ 'accept-encoding': accepted }));
  expect(answer?.headers['content-encoding']).toBe(encoding);
  expect(answer?.headers).toMatchObject({
    'cache-control': 'public, max-age=31536000, immutable',
    'content-type': 'text/javascript; charset=utf-8',
    vary: 'Accept-Encoding',
    'content-length': String(answer?.body?.length),
  });
});

test.each(['../index.html', '..', '', 'main-1.js.gz', 'sub/x.js', '/etc/passwd', '__proto__'])(
  'a name that is not a file of the build is not found: %j',
  async (name) => {
    build('<p>', 'main-1.js');
    expect(await new BuiltPage(folder, { rereads: false }).asset(name, asking())).toBeNull();
  },
);

test('files are read once: a new build changes nothing for a server of the package', async () => {
  build('one', 'main-1.js');
  const page = new BuiltPage(folder, { rereads: false });
  const { headers } = await page.document(asking());
  build('another', 'main-2.js', 2);
  expect((await page.document(asking())).headers.etag).toBe(headers.etag);
  expect(await page.asset('main-2.js', asking())).toBeNull();
  rmSync(folder, { recursive: true });
  expect((await page.asset('main-1.js', asking()))?.status).toBe(200);
});

test('a server of a checkout uses a new build, and keeps the files of the last one for pages that are open', async () => {
  build('one', 'main-1.js');
  const page = new BuiltPage(folder, { rereads: true });
  const { headers } = await page.document(asking());
  rmSync(folder, { recursive: true }); // it is replaced at this moment
  expect((await page.document(asking())).headers.etag).toBe(headers.etag);
  build('another', 'main-2.js', 2);
  expect((await page.document(asking())).headers.etag).not.toBe(headers.etag);
  for (const name of ['main-1.js', 'main-2.js']) expect((await page.asset(name, asking()))?.status).toBe(200);
});

test('without a build the server says what to do, until there is one', async () => {
  const page = new BuiltPage(folder, { rereads: false });
  const missing = await page.document(asking());
  expect(missing).toMatchObject({ status: 503, body: expect.stringContaining('npm run page') });
  expect(missing.body).toContain('href="/reference"');
  build('<p>', 'main-1.js');
  expect((await page.document(asking())).status).toBe(200);
  expect((await page.asset('main-1.js', asking()))?.status).toBe(200);
});

test('a page that could not be read is read again for the next request', async () => {
  mkdirSync(join(folder, 'index.html'));
  const page = new BuiltPage(folder, { rereads: false });
  await expect(page.document(asking())).rejects.toThrow('EISDIR');
  rmSync(join(folder, 'index.html'), { recursive: true });
  build('<p>', 'main-1.js');
  expect((await page.document(asking())).status).toBe(200);
});

const BROWSER = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' };

test.each([
  ['/', {}, true],
  ['/c/0198', BROWSER, true],
  ['/tasks', BROWSER, true],
  ['/health', BROWSER, true],
  ['/c/0198', { accept: 'application/json' }, false],
  ['/nothing.png', { accept: 'image/avif,*/*' }, false],
  ['/v1/nothing', BROWSER, false],
  ['/v1', BROWSER, false],
  ['/assets/nothing.js', BROWSER, false],
  ['/enter/x', BROWSER, false],
])('%s with %o is an address of the page: %s', (path, headers, is) => {
  expect(isOfPage(path, asking(headers))).toBe(is);
});

test.each(['/v1', '/v1/me', '/enter', '/backup', '/metrics'])('%s is not open to all', (path) => {
  expect(isOpenToAll(path)).toBe(false);
});
