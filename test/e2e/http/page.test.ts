import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { BuiltPage } from '../../../src/faces/http/pages/page.ts';
import { rawRequest } from './support/raw-request.ts';
import { ServedHome } from './support/served-home.ts';

// What the server does with the files of the page, whatever is in them. The page itself: test/browser/page.

const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; connect-src 'self'; " +
  "worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const NAVIGATES = { accept: 'text/html,*/*', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' };

let folder: string;
let home: ServedHome;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'throughline-page-'));
  mkdirSync(join(folder, 'assets'));
  writeFileSync(join(folder, 'index.html'), '<!doctype html><title>Throughline</title>');
  writeFileSync(join(folder, 'assets/main-1.js'), 'export {};');
  writeFileSync(join(folder, 'secret.txt'), 'secret');
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));
beforeEach(async () => {
  home = await ServedHome.start({ server: { page: new BuiltPage(folder, { rereads: false }) } });
});
afterEach(() => home[Symbol.asyncDispose]());

const open = (path: string, headers: Record<string, string> = NAVIGATES, method = 'GET') =>
  fetch(home.url + path, { method, headers, redirect: 'manual' });

test('every address of the page is its document, under a strict policy, without signing in', async () => {
  for (const path of ['/', '/c/0198/t/3', '/tasks/x', '/health', '/search?q=a', '/compare/a/b']) {
    const answer = await open(path);
    expect({ path, status: answer.status }).toEqual({ path, status: 200 });
    expect(answer.headers.get('content-security-policy')).toBe(POLICY);
    expect(answer.headers.get('cache-control')).toBe('no-cache');
    expect(answer.headers.get('x-content-type-options')).toBe('nosniff');
    expect(await answer.text()).toContain('<title>Throughline</title>');
  }
});

test('what a program asks for is never the page', async () => {
  for (const path of ['/c/0198', '/favicon.ico']) {
    expect((await open(path, { accept: '*/*' })).status).toBe(404);
  }
  const wrong = await open('/v1/nothing');
  expect([wrong.status, wrong.headers.get('content-type')]).toEqual([404, 'application/problem+json']);
  expect((await open('/assets/nothing.js')).status).toBe(404);
  expect((await open('/c/0198', NAVIGATES, 'POST')).status).toBe(404);
});

test('a file of the page is kept for ever, and no other file can be had', async () => {
  const file = await open('/assets/main-1.js', {});
  expect(file.status).toBe(200);
  expect(file.headers.get('cache-control')).toBe('public, max-age=31536000, immutable');
  expect(file.headers.get('content-type')).toBe('text/javascript; charset=utf-8');
  const host = `127.0.0.1:${home.port}`;
  const outside = ['/assets/../secret.txt', '/assets/..%2fsecret.txt', '/assets/%2e%2e/secret.txt', '/secret.txt'];
  for (const path of [...outside, '/assets/..%5csecret.txt', '/assets/', '/assets/%00', '/assets/%E0%A4%A']) {
    const { status, text } = await rawRequest(home, path, { host });
    expect({ path, status, secret: text.includes('secret\n') || text === 'secret' }).toMatchObject({ secret: false });
    expect([400, 404]).toContain(status);
  }
});

test('HEAD gives the headers of what is open to all, and uses up no link', async () => {
  for (const path of ['/', '/assets/main-1.js', '/reference', '/healthz']) {
    const answer = await open(path, {}, 'HEAD');
    expect({ path, status: answer.status, body: await answer.text() }).toEqual({ path, status: 200, body: '' });
  }
  expect((await open('/', {}, 'HEAD')).headers.get('content-length')).toBe('41');
  const link = (await home.newLink()).slice(home.url.length);
  expect((await open(link, {}, 'HEAD')).status).toBe(405);
  expect((await open('/v1/events', {}, 'HEAD')).status).toBe(405);
  const entered = await open(link);
  expect([entered.status, entered.headers.get('location')]).toEqual([303, '/']);
});

test('a link on another site opens the page; no other site can frame it, load it or sign in with it', async () => {
  // `fetch` of Node sets some of these headers itself.
  const statusOf = async (path: string, headers: Record<string, string>) =>
    (await rawRequest(home, path, { host: `127.0.0.1:${home.port}`, ...headers })).status;
  const foreign = { ...NAVIGATES, 'sec-fetch-site': 'cross-site' };
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

test('a link that stands in a message on another site signs in when its reader says so, and not before', async () => {
  const host = `127.0.0.1:${home.port}`;
  const link = (await home.newLink()).slice(home.url.length);
  for (const site of ['cross-site', 'same-site']) {
    const asked = await rawRequest(home, link, { host, ...NAVIGATES, 'sec-fetch-site': site });
    expect([asked.status, asked.headers['set-cookie']]).toEqual([200, undefined]);
    expect(asked.text).toContain(`href="${link}"`);
    expect(asked.headers['content-security-policy']).toContain("default-src 'none'");
  }
  const odd = await rawRequest(home, '/enter?code=%22%3E%3Cb%3E', {
    host,
    ...NAVIGATES,
    'sec-fetch-site': 'cross-site',
  });
  expect(odd.text).not.toContain('<b>');
  const entered = await rawRequest(home, link, { host, ...NAVIGATES, 'sec-fetch-site': 'same-origin' });
  expect(entered.status).toBe(303);
});

test('a link that was used tells a person what to do, and a program what is wrong', async () => {
  const link = (await home.newLink()).slice(home.url.length);
  expect((await open(link)).status).toBe(303);
  const again = await open(link, { accept: 'text/html' });
  expect([again.status, again.headers.get('content-type')]).toEqual([401, 'text/html; charset=utf-8']);
  const text = await again.text();
  expect(text).toContain('throughline link');
  expect(text).toContain('href="/"');
  expect((await open(link, { accept: '*/*' })).headers.get('content-type')).toBe('application/problem+json');
});

test('the root of the interface is no path, whoever asks', async () => {
  for (const method of ['GET', 'POST']) expect((await open('/v1', { accept: 'text/html' }, method)).status).toBe(404);
});
