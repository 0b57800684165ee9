import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { BrowserContext, CDPSession, Page } from 'playwright-core';
import { connect } from '../../src/client.ts';
import { sharedBrowser } from '../../test/browser/browser.ts';
import type { Finding, Measure } from '../finding.ts';
import { median, quantile } from '../support/statistics.ts';

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));

/** A conversation in a real Chromium, with the built page and a real server: how soon it is shown, and what a long answer costs. */
const measure: Measure = async ({ quick }) => {
  const browser = await sharedBrowser();
  if (typeof browser === 'string') throw new Error(browser);
  await using server = await Served.start();
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  try {
    await context.request.get(await server.link(), { maxRedirects: 0 });
    return [
      ...(await firstPaint(server, context, quick ? 1_000 : 10_000, quick ? 2 : 7)),
      ...(await switching(server, context, quick ? 6 : 20)),
      ...(await streaming(server, context, quick ? 1_000 : 10_000)),
    ];
  } finally {
    await context.close();
    await browser.close();
  }
};

/** The time from the start of the navigation until the last turn is on the screen. */
async function firstPaint(server: Served, context: BrowserContext, turns: number, times: number): Promise<Finding[]> {
  const sizes = [10, turns];
  const ids = await Promise.all(sizes.map((size) => server.imported(size)));
  const found = new Map(sizes.map((size) => [size, [] as number[]]));
  for (let i = 0; i < times + 1; i += 1) {
    for (const [index, size] of sizes.entries()) {
      const page = await context.newPage();
      await page.goto(`${server.url}/c/${ids[index]}`);
      const ms = await shownAfter(page, size);
      if (i > 0) found.get(size)?.push(ms);
      await page.close();
    }
  }
  const [short = 0, long = 0] = sizes.map((size) => median(found.get(size) ?? []));
  const name = `first correct paint of a conversation of ${turns.toLocaleString('en')} turns`;
  return [
    {
      ...{ name: `${name}, to one of 10 turns`, value: long / short, unit: '×', target: { kind: 'must', most: 1.5 } },
      note: `${long.toFixed(0)} ms to ${short.toFixed(0)} ms; the script is in the cache of the browser`,
    },
    { name, value: long, unit: 'ms', target: { kind: 'aim', most: 1_000 }, note: 'p50, from the navigation on' },
  ];
}

async function shownAfter(page: Page, n: number): Promise<number> {
  return page.evaluate(`new Promise((resolve) => {
    const look = () =>
      document.querySelector('[data-turn="${n}"] article') ? resolve(performance.now()) : requestAnimationFrame(look);
    look();
  })`);
}

/** The time from the click until the last turn of another conversation is on the screen: of one that is new to this tab, and of one that is not. */
async function switching(server: Served, context: BrowserContext, times: number): Promise<Finding[]> {
  const names = Array.from({ length: times + 1 }, (_, index) => `conversation ${index}`);
  const ids: string[] = [];
  for (const name of names) ids.push(await server.imported(SWITCHED, name));
  const page = await context.newPage();
  await page.goto(`${server.url}/c/${ids[0]}`);
  await shownAfter(page, SWITCHED);
  const to = (index: number) => shownAt(page, `/c/${ids[index]}`, `of ${names[index]}.`);
  const cold: number[] = [];
  for (let index = 1; index <= times; index += 1) cold.push(await to(index));
  const hot: number[] = [];
  for (let index = 0; index < times; index += 1) hot.push(await to(times - 1 + (index % 2)));
  await page.close();
  const finding = (kind: string, values: number[], most: number): Finding => ({
    ...{ name: `switching to ${kind}, first correct paint`, value: median(values), unit: 'ms' },
    ...{
      target: { kind: 'aim', most },
      note: `p50 of ${values.length}, ${SWITCHED} turns each; p95 ${quantile(values, 0.95).toFixed(0)} ms`,
    },
  });
  return [finding('a conversation', cold, 100), finding('one that was shown before', hot, 30)];
}

const SWITCHED = 200;

/** Navigates, and waits for a frame with the words in its last turn. */
function shownAt(page: Page, path: string, words: string): Promise<number> {
  return page.evaluate(`new Promise((resolve) => {
    const began = performance.now();
    const isShown = () => [...document.querySelectorAll('article')].at(-1)?.textContent.includes(${JSON.stringify(words)});
    const look = () => (isShown() ? setTimeout(() => resolve(performance.now() - began)) : requestAnimationFrame(look));
    history.pushState(null, '', ${JSON.stringify(path)});
    requestAnimationFrame(look);
  })`);
}

/** The heap after a garbage collection, before and after a long answer; and the time between frames while it streams. */
async function streaming(server: Served, context: BrowserContext, chunks: number): Promise<Finding[]> {
  const id = await server.imported(20);
  const page = await context.newPage();
  const session = await context.newCDPSession(page);
  await page.goto(`${server.url}/c/${id}`);
  await shownAfter(page, 20);
  const tl = await connect({ url: server.url, token: server.token });
  const before = await heap(session);
  await session.send('Emulation.setCPUThrottlingRate', { rate: 4 });
  await page.evaluate(WATCH_FRAMES);
  const answer = tl.conversation(id).send(`/stream ${chunks} 1`);
  await answer.result;
  await page.getByText(`chunk ${chunks} `).waitFor();
  await session.send('Emulation.setCPUThrottlingRate', { rate: 1 });
  const frames = (await page.evaluate('frames')) as number[];
  const after = await heap(session);
  await tl.close();
  return [
    {
      name: `heap of the page after ${chunks.toLocaleString('en')} streamed chunks`,
      ...{ value: (after - before) / 2 ** 20, unit: 'MiB more', target: { kind: 'must', most: 8 } },
      note: `${(before / 2 ** 20).toFixed(1)} MiB before, ${(after / 2 ** 20).toFixed(1)} MiB after, each after a collection`,
    },
    {
      ...{ name: 'frames while it streams, p95, processor 4 × slower', value: quantile(frames, 0.95), unit: 'ms' },
      ...{ target: { kind: 'aim', most: 33 }, note: `${frames.length} frames, p50 ${median(frames).toFixed(1)} ms` },
    },
  ];
}

/** In the page: the time between frames. */
const WATCH_FRAMES = `
  globalThis.frames = [];
  let last = performance.now();
  const look = (now) => {
    frames.push(now - last);
    last = now;
    requestAnimationFrame(look);
  };
  requestAnimationFrame(look);`;

async function heap(session: CDPSession): Promise<number> {
  await session.send('HeapProfiler.collectGarbage');
  return (await session.send('Runtime.getHeapUsage')).usedSize;
}

/** `throughline serve` with the scripted agent and its own data home. */
class Served {
  readonly #home: string;
  readonly #child: ChildProcess;
  readonly url: string;
  readonly token: string;

  private constructor(home: string, child: ChildProcess, url: string) {
    this.#home = home;
    this.#child = child;
    this.url = url;
    this.token = readFileSync(join(home, 'home', 'server', 'token'), 'utf8').trim();
  }

  static async start(): Promise<Served> {
    const built = spawn(process.execPath, [here('../../scripts/page.js')], { stdio: 'ignore' });
    await once(built, 'exit');
    const home = mkdtempSync(join(tmpdir(), 'throughline-bench-'));
    const config = join(home, 'throughline.config.json');
    writeFileSync(config, JSON.stringify({ agents: { scripted: { adapter: 'scripted' } } }));
    const program = [here('../../bin/throughline.js'), '--config', config, 'serve', '--json', '--port', '0'];
    const env = { PATH: process.env.PATH ?? '', HOME: home, THROUGHLINE_HOME: join(home, 'home') };
    const child = spawn(process.execPath, program, { env, stdio: ['ignore', 'pipe', 'ignore'] });
    for await (const output of child.stdout) {
      const [line] = /\{"kind":"serving".*\}/.exec(String(output)) ?? [];
      if (line !== undefined) return new Served(home, child, JSON.parse(line).url);
    }
    throw new Error('The server has ended.');
  }

  async link(): Promise<string> {
    const headers = { authorization: `Bearer ${this.token}`, 'content-type': 'application/json' };
    const answer = await fetch(`${this.url}/v1/links`, { method: 'POST', headers, body: '{}' });
    return ((await answer.json()) as { link: string }).link;
  }

  /** Imports a conversation with this number of turns. Returns its id. */
  async imported(turns: number, name = 'this'): Promise<string> {
    const messages = Array.from({ length: turns }, (_, index) => [
      { role: 'user', content: `Question ${index + 1}` },
      { role: 'assistant', content: `Answer ${index + 1}.\n\n- with a list\n- and \`code\` of ${name}.` },
    ]).flat();
    await using tl = await connect({ url: this.url, token: this.token });
    return (await tl.engine.import(messages, { agent: 'scripted' })).id;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill();
    await once(this.#child, 'exit');
    rmSync(this.#home, { recursive: true, force: true });
  }
}

export default measure;
