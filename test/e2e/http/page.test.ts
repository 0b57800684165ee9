import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { BuiltPage } from '../../../src/faces/http/pages/page.ts';
import { rawRequest } from './support/raw-request.ts';
import { ServedHome } from './support/served-home.ts';

// How the server serves the files of the page, with other files in their place. The page itself is tested in test/browser/page.

const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; connect-src 'self'; " +
  "worker-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const INDEX = '<!doctype html><title>Throughline</title>';
/** The headers of a browser that opens an address. */
const NAVIGATION = { accept: 'text/html,*/*', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' };

let folder: string;
let home: ServedHome;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'throughline-page-'));
  mkdirSync(join(folder, 'assets'));
  writeFileSync(join(folder, 'index.html'), INDEX);
  writeFileSync(join(folder, 'assets/main-1.js'), 'export {};');
  writeFileSync(join(folder, 'secret.txt'), 'secret');
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));
beforeEach(async () => {
  home = await ServedHome.start({ server: { page: new BuiltPage(folder, { rereads: false }) } });
});
afterEach(() => home[Symbol.asyncDispose]());

const open = (path: string, headers: Record<string, string> = NAVIGATION, method = 'GET') =>
  fetch(home.url + path, { method, headers, redirect: 'manual' });

test('every address of the page returns its HTML, with a strict Content-Security-Policy and without a login', async () => {
  for (const path of ['/', '/c/0198/t/3', '/tasks/x', '/health', '/search?q=a', '/compare/a/b']) {
    const answer = await open(path);
    expect({ path, status: answer.status }).toEqual({ path, status: 200 });
    expect(answer.headers.get('content-security-policy')).toBe(POLICY);
    expect(answer.headers.get('cache-control')).toBe('no-cache');
    expect(answer.headers.get('x-content-type-options')).toBe('nosniff');
    expect(await answer.text()).toBe(INDEX);
  }
});

test('the page is not returned to programs, for unknown paths below /v1 and /assets, or for a POST', async () => {
  for (const path of ['/c/0198', '/favicon.ico']) {
    expect((await open(path, { accept: '*/*' })).status).toBe(404);
  }
  const wrong = await open('/v1/nothing');
  expect([wrong.status, wrong.headers.get('content-type')]).toEqual([404, 'application/problem+json']);
  expect((await open('/assets/nothing.js')).status).toBe(404);
  expect((await open('/c/0198', NAVIGATION, 'POST')).status).toBe(404);
});

test('browsers may cache the files of the page for ever, and no other file can be read', async () => {
  const file = await open('/assets/main-1.js', {});
  expect(file.status).toBe(200);
  expect(file.headers.get('cache-control')).toBe('public, max-age=31536000, immutable');
  expect(file.headers.get('content-type')).toBe('text/javascript; charset=utf-8');
  const host = `127.0.0.1:${home.port}`;
  const outside = ['/assets/../secret.txt', '/assets/..%2fsecret.txt', '/assets/%2e%2e/secret.txt', '/secret.txt'];
  for (const path of [...outside, '/assets/..%5csecret.txt', '/assets/', '/assets/%00', '/assets/%E0%A4%A']) {
    const { status, text } = await rawRequest(home, path, { host });
    expect({ path, isSecret: text === 'secret' }).toEqual({ path, isSecret: false });
    expect([400, 404]).toContain(status);
  }
});

test('HEAD returns the headers of public addresses, and does not use up a sign-in link', async () => {
  for (const path of ['/', '/assets/main-1.js', '/reference', '/healthz']) {
    const answer = await open(path, {}, 'HEAD');
    expect({ path, status: answer.status, body: await answer.text() }).toEqual({ path, status: 200, body: '' });
  }
  expect((await open('/', {}, 'HEAD')).headers.get('content-length')).toBe(String(INDEX.length));
  const link = (await home.newLink()).slice(home.url.length);
  expect((await open(link, {}, 'HEAD')).status).toBe(405);
  expect((await open('/v1/events', {}, 'HEAD')).status).toBe(405);
  const signedIn = await open(link);
  expect([signedIn.status, signedIn.headers.get('location')]).toEqual([303, '/']);
});

test('another site can link to the page, but cannot frame it, load it as a script, read data or sign in', async () => {
  // `fetch` of Node sets some of these headers itself.
  const statusOf = async (path: string, headers: Record<string, string>) =>
    (await rawRequest(home, path, { host: `127.0.0.1:${home.port}`, ...headers })).status;
  const foreign = { ...NAVIGATION, 'sec-fetch-site': 'cross-site' };
  for (const path of ['/', '/c/0198', '/reference']) expect(await statusOf(path, foreign)).toBe(200);
  expect(await statusOf('/', { ...foreign, 'sec-fetch-dest': 'iframe' })).toBe(403);
  expect(await statusOf('/', { ...foreign, 'sec-fetch-mode': 'no-cors', 'sec-fetch-dest': 'script' })).toBe(403);
  expect(await statusOf('/', { ...foreign, origin: 'https://evil.example' })).toBe(403);
  const link = (await home.newLink()).slice(home.url.length);
  for (const path of ['/v1/conversations', '/backup', '/metrics']) {
    expect({ path, status: await statusOf(path, foreign) }).toEqual({ path, status: 403 });
  }
  for (const other of [{ 'sec-fetch-dest': 'iframe' }, { origin: 'https://evil.example' }]) {
    expect(await statusOf(link, { ...foreign, ...other })).toBe(403);
  }
});

test('a sign-in link that is opened from another site asks for confirmation before it signs in', async () => {
  const host = `127.0.0.1:${home.port}`;
  const link = (await home.newLink()).slice(home.url.length);
  for (const site of ['cross-site', 'same-site']) {
    const confirmation = await rawRequest(home, link, { host, ...NAVIGATION, 'sec-fetch-site': site });
    expect([confirmation.status, confirmation.headers['set-cookie']]).toEqual([200, undefined]);
    expect(confirmation.text).toContain(`href="${link}"`);
    expect(confirmation.headers['content-security-policy']).toContain("default-src 'none'");
  }
  const withMarkup = await rawRequest(home, '/enter?code=%22%3E%3Cb%3E', {
    host,
    ...NAVIGATION,
    'sec-fetch-site': 'cross-site',
  });
  expect(withMarkup.text).not.toContain('<b>');
  const confirmed = await rawRequest(home, link, { host, ...NAVIGATION, 'sec-fetch-site': 'same-origin' });
  expect(confirmed.status).toBe(303);
});

test('a used sign-in link returns HTML with what to do to a person, and a problem document to a program', async () => {
  const link = (await home.newLink()).slice(home.url.length);
  expect((await open(link)).status).toBe(303);
  const again = await open(link, { accept: 'text/html' });
  expect([again.status, again.headers.get('content-type')]).toEqual([401, 'text/html; charset=utf-8']);
  const text = await again.text();
  expect(text).toContain('throughline link');
  expect(text).toContain('href="/"');
  expect((await open(link, { accept: '*/*' })).headers.get('content-type')).toBe('application/problem+json');
});

test('/v1 itself is not found, not even for a browser', async () => {
  for (const method of ['GET', 'POST']) expect((await open('/v1', { accept: 'text/html' }, method)).status).toBe(404);
});
