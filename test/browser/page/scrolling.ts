import type { Locator, Page } from 'playwright-core';
import { expect } from 'vitest';

/* Where somebody is in the timeline. It moves over several frames, so it is never looked at only once. */

/** What scrolls: all turns of a conversation. */
export const log = (page: Page): Locator => page.getByRole('log', { name: 'Turns' });

/** How many pixels are below what is on the screen. */
export const left = (page: Page): Promise<number> =>
  log(page).evaluate((box) => box.scrollHeight - box.clientHeight - box.scrollTop);

/** Where the box is scrolled to, when it has been there for a while: the wheel moves it over several frames. */
export const stillness = (box: Locator): Promise<number> =>
  box.evaluate(async (element) => {
    for (let [top, since] = [element.scrollTop, 0]; since < 10; since += 1) {
      await new Promise((done) => requestAnimationFrame(done));
      if (element.scrollTop !== top) [top, since] = [element.scrollTop, 0];
    }
    return element.scrollTop;
  });

/** At the end, where a conversation opens, with all heights known: whoever scrolls before that is scrolled back. */
export async function atEnd(page: Page): Promise<void> {
  await expect.poll(() => left(page)).toBeLessThan(2);
  await stillness(log(page));
}
