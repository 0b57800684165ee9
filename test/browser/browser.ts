import type { Browser, BrowserContext, BrowserContextOptions } from 'playwright-core';
import { type TestContext, test } from 'vitest';
import { launchChromium } from './chromium.ts';

/*
 * Tests in a real Chromium (chromium.ts says how it is found). Without any, they are skipped with the reason. One browser serves all
 * test files of a process; every test has a context of its own: its own cookies, storage and cache. Tests of the page of the server:
 * page/harness.ts.
 */

/** Across test files: each has its own copy of this module. */
const shared = globalThis as { throughlineBrowser?: Promise<Browser | string> };

/** The browser of this process, or why there is none. */
export function theBrowser(): Promise<Browser | string> {
  shared.throughlineBrowser ??= launchChromium();
  return shared.throughlineBrowser;
}

type NewContext = (options?: BrowserContextOptions) => Promise<BrowserContext>;

/** A test in a browser; skipped with the reason where there is none. `newContext`: another one, which ends with the test. */
export function browserTest(
  name: string,
  run: (context: BrowserContext, newContext: NewContext) => Promise<void>,
  options: BrowserContextOptions = {},
): void {
  test(name, async (running: TestContext) => {
    const browser = await theBrowser();
    if (typeof browser === 'string') return running.skip(browser);
    const contexts: BrowserContext[] = [];
    const newContext: NewContext = async (how) => {
      const context = await browser.newContext(how);
      contexts.push(context);
      context.setDefaultTimeout(120_000); // as `expect.poll`: on a busy machine, ten tabs take half a minute
      return context;
    };
    try {
      await run(await newContext(options), newContext);
    } finally {
      await Promise.all(contexts.map(end));
    }
  });
}

async function end(context: BrowserContext): Promise<void> {
  // A request that a test answers itself may be under way. What its handler still does is nobody's business.
  for (const page of context.pages()) await page.unrouteAll({ behavior: 'ignoreErrors' });
  await context.unrouteAll({ behavior: 'ignoreErrors' });
  await context.close();
}
