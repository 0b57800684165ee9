import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import type Axe from 'axe-core';
import type { BrowserContext, BrowserContextOptions, ConsoleMessage, Page } from 'playwright-core';
import { afterAll, beforeAll, expect } from 'vitest';
import { connect } from '../../../src/client.ts';
import { CliHome, type Running } from '../../e2e/cli/process.ts';
import { Caller } from '../../e2e/http/support/caller.ts';
import { browserTest, sharedBrowser } from '../browser.ts';

/*
 * Tests of the page in a real Chromium. A real `throughline serve` with scripted agents serves the production build:
 *
 *   const server = pageServer();                                        // one server for all tests of a file, with its own data home
 *   server.test('a turn is shown', async ({ open }) => {
 *     await (await server.tl()).conversation('notes').ask('/say Hello.'); // prepares data through the client; server.caller is plain HTTP
 *     const page = await open('/');                                     // a tab of a browser that is signed in; each call opens another tab
 *     await page.getByText('Hello.').waitFor();
 *     await axe(page);                                                  // fails on serious findings, in both colour schemes
 *   });
 *   server.test('on a phone', async ({ open }) => …, { ...PHONE, colorScheme: 'dark', reducedMotion: 'reduce', slowdown: 4 });
 *
 * The prompt says what the scripted agent does (docs/scripted-agent.md): /say, /stream, /tool, /ask, /hang, /die. Its settings
 * are in test/e2e/cli/agents.ts. A test fails on every fault of the page: a violation of its Content Security Policy, a request to another
 * origin, an uncaught error, an error on the console. `allow(pattern)` allows errors on the console that the test causes, such as a request to
 * a server that was stopped. Uncaught errors and violations of the policy cannot be allowed.
 */

const BUILD = fileURLToPath(new URL('../../../scripts/page.js', import.meta.url));

/** A touch screen of the size of a phone. */
export const PHONE: BrowserContextOptions = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true };

interface VisitOptions extends BrowserContextOptions {
  /** How many times slower the processor is for the page. */
  readonly slowdown?: number;
}

/** What a test gets: a browser that is signed in. */
export interface Visit {
  readonly context: BrowserContext;
  /** A new tab at a path of the page. */
  open(path?: string): Promise<Page>;
  /** A tab of another browser of the same person. */
  openElsewhere(path?: string): Promise<Page>;
  /** Errors on the console that match are expected. */
  allow(pattern: RegExp): void;
  /** Returns the faults so far, and forgets them. */
  takeFaults(): string[];
}

/** Global, because each test file has its own copy of this module. */
const shared = globalThis as { throughlinePage?: Promise<void> };

/** Builds the page if its sources have changed, which is checked once in a process. Throws the output of a build that fails. */
export function buildPage(): Promise<void> {
  shared.throughlinePage ??= build();
  return shared.throughlinePage;
}

async function build(): Promise<void> {
  const { NODE_ENV, ...env } = process.env;
  const child = spawn(process.execPath, [BUILD], { env, stdio: ['ignore', 'ignore', 'pipe'] });
  const [errors, [code]] = await Promise.all([text(child.stderr), once(child, 'exit')]);
  if (code !== 0) throw new Error(`The page could not be built:\n${errors}`);
}

/** A server for the tests of one file. `settings`: by default the scripted agents of test/e2e/cli/agents.ts. `flags`: further arguments of `serve`. */
export function pageServer(settings?: object, flags: readonly string[] = []): PageServer {
  const server = new PageServer(settings, flags);
  beforeAll(async () => {
    if (typeof (await sharedBrowser()) === 'string') return; // its tests are skipped
    await buildPage();
    await server.start();
  });
  afterAll(() => server.remove());
  return server;
}

export class PageServer {
  readonly home = new CliHome();
  url = '';
  token = '';
  readonly #flags: readonly string[];
  #running: Running | null = null;
  #clients: { close(): Promise<void> }[] = [];

  constructor(settings?: object, flags: readonly string[] = []) {
    this.#flags = flags;
    if (settings !== undefined) this.home.configure(settings);
  }

  /** Starts it; after a stop, at the same address. */
  async start(): Promise<void> {
    const port = this.url === '' ? '0' : new URL(this.url).port;
    this.#running = this.home.start(['serve', '--json', '--port', port, ...this.#flags]);
    const [line = ''] = await this.#running.until('stdout', /^\{"kind":"serving".*\}$/m);
    this.url = JSON.parse(line).url;
    this.token = readFileSync(join(this.home.path, 'home', 'server', 'token'), 'utf8').trim();
  }

  /** `SIGKILL`: as in a crash. */
  async stop(signal: 'SIGTERM' | 'SIGKILL' = 'SIGTERM'): Promise<void> {
    this.#running?.kill(signal);
    await this.#running?.ended;
  }

  async remove(): Promise<void> {
    await Promise.all(this.#clients.map((client) => client.close()));
    await this.home.remove();
  }

  /** Plain HTTP, with the token. */
  get caller(): Caller {
    return new Caller(this.url, { authorization: `Bearer ${this.token}` });
  }

  /** `throughline/client`, with the token. */
  async tl() {
    const tl = await connect({ url: this.url, token: this.token });
    this.#clients.push(tl);
    return tl;
  }

  /** A link that signs a browser in, once. */
  async link(): Promise<string> {
    return (await this.caller.ok('POST', '/links')).link;
  }

  test(name: string, run: (visit: Visit) => Promise<void>, options: VisitOptions = {}): void {
    const { slowdown = 1, ...contextOptions } = options;
    browserTest(
      name,
      async (context, newContext) => {
        const faults = new Faults(this.url);
        await context.request.get(await this.link(), { maxRedirects: 0 });
        const open = async (path = '/') => {
          const page = await context.newPage();
          if (slowdown > 1) {
            const session = await context.newCDPSession(page);
            await session.send('Emulation.setCPUThrottlingRate', { rate: slowdown });
          }
          await page.goto(this.url + path);
          return page;
        };
        const openElsewhere = async (path = '/') => {
          const other = await newContext(contextOptions);
          await faults.watch(other);
          await other.request.get(await this.link(), { maxRedirects: 0 });
          const page = await other.newPage();
          await page.goto(this.url + path);
          return page;
        };
        await faults.watch(context);
        await run({
          context,
          open,
          openElsewhere,
          allow: (pattern) => faults.allowed.push(pattern),
          takeFaults: () => faults.take(),
        });
        expect(faults.take(), 'faults of the page').toEqual([]);
      },
      contextOptions,
    );
  }
}

/** Collects the faults of all pages of the contexts that it watches. */
class Faults {
  readonly allowed: RegExp[] = [];
  readonly #origin: string;
  #seen: { readonly fault: string; readonly consoleText?: string }[] = [];

  constructor(url: string) {
    this.#origin = new URL(url).origin;
  }

  async watch(context: BrowserContext): Promise<void> {
    context.on('weberror', (error) => {
      const { name, message, stack } = error.error();
      this.#seen.push({ fault: `uncaught: ${stack || `${name}: ${message}`}` });
    });
    context.on('console', (message) => this.#readConsole(message));
    context.on('request', (request) => {
      const { protocol, origin } = new URL(request.url());
      const isForeign = /^(https?|wss?):$/.test(protocol) && origin !== this.#origin;
      if (isForeign) this.#seen.push({ fault: `foreign: ${request.url()}` });
    });
    await context.addInitScript((prefix) => {
      addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI, sourceFile }) =>
        console.error(`${prefix} ${violatedDirective} ${blockedURI} ${sourceFile}`),
      );
    }, VIOLATION);
  }

  take(): string[] {
    const isAllowed = (text: string | undefined) =>
      text !== undefined && this.allowed.some((pattern) => pattern.test(text));
    const seen = this.#seen.filter(({ consoleText }) => !isAllowed(consoleText));
    this.#seen = [];
    return seen.map(({ fault }) => fault);
  }

  #readConsole(message: ConsoleMessage): void {
    if (message.type() !== 'error') return;
    const text = message.text();
    const fault = `console: ${text} (${message.location().url})`;
    this.#seen.push(text.startsWith(VIOLATION) ? { fault } : { fault, consoleText: text });
  }
}

/** The beginning of the console message about a violation of the policy. */
const VIOLATION = 'securitypolicyviolation:';

/** Waits for two frames, so that everything that has arrived is rendered. */
export async function waitForRender(page: Page): Promise<void> {
  await page.evaluate(
    () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done)))),
  );
}

/** Kills the live session of the open conversation by its menu. */
export async function killSession(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Conversation actions' }).click();
  await page.getByRole('menuitem', { name: 'Kill the live session' }).click();
  await page.getByText('Session ended. Nothing that was said is lost.').first().waitFor();
}

/** The source of axe. The driver @axe-core/playwright injects it for every check, which takes longer than the check itself. */
const AXE = readFileSync(createRequire(import.meta.resolve('@axe-core/playwright')).resolve('axe-core'), 'utf8');
/** The rules about colours. Only these can differ between the colour schemes, so the second check runs only these. */
const COLOUR_RULES = ['color-contrast', 'link-in-text-block'];

/** Fails on serious findings of axe, in both colour schemes. The page keeps the scheme that it had. */
export async function axe(page: Page): Promise<void> {
  // The answers of a permission card are disabled in its first moments. They must not change while axe runs.
  await page.locator('[aria-label^="Permission: "] [aria-disabled="true"]').first().waitFor({ state: 'detached' });
  const before = await page.evaluate(() => ({
    colorScheme: matchMedia('(prefers-color-scheme: dark)').matches ? ('dark' as const) : ('light' as const),
    reducedMotion: matchMedia('(prefers-reduced-motion: reduce)').matches
      ? ('reduce' as const)
      : ('no-preference' as const),
  }));
  if (!(await page.evaluate(() => 'axe' in globalThis))) await page.evaluate(AXE);
  const found: string[] = [];
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
    found.push(
      ...(await seriousFindings(page, colorScheme === 'dark' ? COLOUR_RULES : null)).map(
        (finding) => `${colorScheme}: ${finding}`,
      ),
    );
  }
  await page.emulateMedia(before);
  if (found.length > 0) throw new Error(`axe found:\n${found.join('\n')}`);
}

/** The serious findings of axe, when all animations have ended. `rules`: null for all. */
function seriousFindings(page: Page, rules: string[] | null): Promise<string[]> {
  return page.evaluate(async (only) => {
    // The contrast is wrong while a colour is in transition. When a transition ends, that of a child may begin, which inherits the colour: so
    // three frames in a row must be without animations. Animations that never end are ignored.
    const isChanging = ({ effect, playState }: Animation) =>
      playState === 'running' && effect?.getComputedTiming().endTime !== Infinity;
    for (let quietFrames = 0; quietFrames < 3; ) {
      await new Promise(requestAnimationFrame);
      quietFrames = document.getAnimations().some(isChanging) ? 0 : quietFrames + 1;
    }
    const { axe } = globalThis as unknown as { axe: typeof Axe };
    const runOnly = only === null ? {} : { runOnly: { type: 'rule' as const, values: only } };
    const { violations } = await axe.run(document, { resultTypes: ['violations'], preload: false, ...runOnly });
    return violations
      .filter(({ impact }) => impact === 'serious' || impact === 'critical')
      .flatMap(({ id, impact, nodes }) =>
        nodes.map(({ target, failureSummary }) => `${id} (${impact}) at ${target.join(' ')}: ${failureSummary}`),
      );
  }, rules);
}
