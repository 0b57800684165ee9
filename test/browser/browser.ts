import type { Browser, BrowserContext, BrowserContextOptions } from 'playwright-core';
import { type TestContext, test } from 'vitest';
import { launchChromium } from './chromium.ts';

/*
 * Tests in a real Chromium (chromium.ts finds it). If there is none, they are skipped with the reason. All test files of a process share
 * one browser. Every test has its own context: its own cookies, storage and cache. For tests of the server's page, see page/harness.ts.
 */

/** Global, because each test file has its own copy of this module. */
const shared = globalThis as { throughlineBrowser?: Promise<Browser | string> };

/** The browser of this process. A string: the reason why there is none. */
export function sharedBrowser(): Promise<Browser | string> {
  shared.throughlineBrowser ??= launchChromium();
  return shared.throughlineBrowser;
}

type NewContext = (options?: BrowserContextOptions) => Promise<BrowserContext>;

/** A test in a browser. If there is none, the test is skipped with the reason. `newContext` makes another context, closed after the test. */
export function browserTest(
  name: string,
  run: (context: BrowserContext, newContext: NewContext) => Promise<void>,
  options: BrowserContextOptions = {},
): void {
  test(name, async (testContext: TestContext) => {
    const browser = await sharedBrowser();
    if (typeof browser === 'string') return testContext.skip(browser);
    const contexts: BrowserContext[] = [];
    const newContext: NewContext = async (contextOptions) => {
      const context = await browser.newContext(contextOptions);
      contexts.push(context);
      context.setDefaultTimeout(120_000); // as for `expect.poll` (vitest.config.ts): on a busy machine, ten tabs take half a minute
      return context;
    };
    try {
      await run(await newContext(options), newContext);
    } finally {
      await Promise.all(contexts.map(closeContext));
    }
  });
}

async function closeContext(context: BrowserContext): Promise<void> {
  // A route handler of the test may still be running. Its errors do not matter any more.
  for (const page of context.pages()) await page.unrouteAll({ behavior: 'ignoreErrors' });
  await context.unrouteAll({ behavior: 'ignoreErrors' });
  await context.close();
}
