// Many tabs of one browser share one stream, whichever of them closes, freezes or loses the server.
import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import { pageServer } from './harness.ts';

const server = pageServer();
const TABS = 10;

/** How many streams the server has. */
async function readers(): Promise<number> {
  const { body } = await server.caller.get('//metrics');
  return Number(/^throughline_readers (\d+)$/m.exec(body)?.[1]);
}

/** Whether this tab has the lock of the leader. A lock that only this tab asks for tells its id. */
function leads(page: Page): Promise<boolean> {
  return page.evaluate(async () => {
    const probe = crypto.randomUUID();
    return navigator.locks.request(probe, async () => {
      const { held = [] } = await navigator.locks.query();
      const own = held.find(({ name }) => name === probe)?.clientId;
      return held.some(({ name, clientId }) => name === 'throughline local leader' && clientId === own);
    });
  });
}

async function leaderOf(tabs: readonly Page[]): Promise<Page> {
  let found: Page | undefined;
  await expect
    .poll(async () => {
      const all = await Promise.all(tabs.map(leads));
      found = tabs[all.indexOf(true)];
      return all.filter(Boolean).length;
    })
    .toBe(1);
  return found as Page;
}

server.test('ten tabs work, with one stream; it moves when its tab goes, and survives the server', async (visit) => {
  const tl = await server.tl();
  const chat = tl.conversation('notes');
  await chat.ask('/say The first answer.');
  const { id } = await chat.get();
  const tabs = await Promise.all(Array.from({ length: TABS }, () => visit.open(`/c/${id}`)));
  /** Each tab shows it, once. */
  const shown = async (text: string) => {
    await Promise.all(tabs.map((tab) => tab.getByText(text, { exact: true }).first().waitFor()));
    const counts = await Promise.all(tabs.map((tab) => tab.getByText(text, { exact: true }).count()));
    expect(counts, text).toEqual(tabs.map(() => 1));
  };
  await shown('The first answer.');
  await leaderOf(tabs);
  await expect.poll(readers).toBe(1);
  await chat.ask('/say The second answer.');
  await shown('The second answer.');
  await expect.poll(readers).toBe(1); // two for a moment, where a leader was too slow and another tab took over

  const leader = await leaderOf(tabs);
  tabs.splice(tabs.indexOf(leader), 1);
  await leader.close();
  await chat.ask('/say The third answer.');
  await shown('The third answer.');
  expect(await leaderOf(tabs)).not.toBe(leader);
  await expect.poll(readers).toBe(1);

  // A tab in the background is told before it is frozen. Headless Chromium has no background, so the event is ours.
  const frozen = await leaderOf(tabs);
  await frozen.evaluate(() => void document.dispatchEvent(new Event('freeze')));
  await expect.poll(() => leads(frozen)).toBe(false);
  await chat.ask('/say The fourth answer.');
  await shown('The fourth answer.');
  await frozen.evaluate(() => void document.dispatchEvent(new Event('resume')));
  await expect.poll(readers).toBe(1);

  // One that hangs is told nothing. Another one takes over while it does.
  const hung = await leaderOf(tabs);
  const hanging = hung.evaluate(() => {
    for (const end = performance.now() + 8_000; performance.now() < end; );
  });
  tabs.splice(tabs.indexOf(hung), 1);
  await chat.ask('/say The fifth answer.');
  await shown('The fifth answer.');
  await leaderOf(tabs);
  await hanging;
  tabs.push(hung);
  await shown('The fifth answer.');
  await expect.poll(readers).toBe(1);

  visit.allow(/net::ERR_/);
  await server.stop('SIGKILL');
  await server.start();
  const again = (await server.tl()).conversation('notes');
  await again.ask('/say The sixth answer.');
  await shown('The sixth answer.');
  await expect.poll(readers).toBe(1);
});
