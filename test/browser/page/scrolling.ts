import type { Locator, Page } from 'playwright-core';
import { expect } from 'vitest';

/* The scroll position of the timeline. It changes over several frames, so these functions wait until it stays the same. */

/** The element that scrolls, with all turns of a conversation. */
export const timeline = (page: Page): Locator => page.getByRole('log', { name: 'Turns' });

/** How many pixels of the timeline are below the visible part. */
export const pixelsBelow = (page: Page): Promise<number> =>
  timeline(page).evaluate((box) => box.scrollHeight - box.clientHeight - box.scrollTop);

/** Waits until the scroll position has been the same for ten frames, and returns it. */
export const stableScrollTop = (box: Locator): Promise<number> =>
  box.evaluate(async (element) => {
    for (let [top, frames] = [element.scrollTop, 0]; frames < 10; frames += 1) {
      await new Promise((done) => requestAnimationFrame(done));
      if (element.scrollTop !== top) [top, frames] = [element.scrollTop, 0];
    }
    return element.scrollTop;
  });

/** Waits until the timeline is at its end, where a conversation opens. Before all heights are known, the page would undo scrolling. */
export async function waitUntilAtEnd(page: Page): Promise<void> {
  await expect.poll(() => pixelsBelow(page)).toBeLessThan(2);
  await stableScrollTop(timeline(page));
}
