// All tabs of a browser share one stream, even if a tab closes, freezes or hangs, and after the server has crashed.
import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import { pageServer } from './harness.ts';

const server = pageServer();
const TABS = 10;

/** How many streams the server has open. */
async function openStreams(): Promise<number> {
  const { body } = await server.caller.get('//metrics');
  return Number(/^throughline_readers (\d+)$/m.exec(body)?.[1]);
}

/** Whether this tab has the lock of the leader. To find the id of the tab, it takes a lock that no other tab has. */
function isLeader(page: Page): Promise<boolean> {
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
  let leader: Page | undefined;
  await expect
    .poll(async () => {
      const areLeaders = await Promise.all(tabs.map(isLeader));
      leader = tabs[areLeaders.indexOf(true)];
      return areLeaders.filter(Boolean).length;
    })
    .toBe(1);
  return leader as Page;
}

server.test(
  'ten tabs share one stream, which another tab takes over when its tab is gone, and which is opened again after a crash of the server',
  async (visit) => {
    const tl = await server.tl();
    const conversation = tl.conversation('notes');
    await conversation.ask('/say The first answer.');
    const { id } = await conversation.get();
    const tabs = await Promise.all(Array.from({ length: TABS }, () => visit.open(`/c/${id}`)));
    /** Every tab shows the text exactly once. */
    const expectInEveryTab = async (text: string) => {
      await Promise.all(tabs.map((tab) => tab.getByText(text, { exact: true }).first().waitFor()));
      const counts = await Promise.all(tabs.map((tab) => tab.getByText(text, { exact: true }).count()));
      expect(counts, text).toEqual(tabs.map(() => 1));
    };
    await expectInEveryTab('The first answer.');
    await leaderOf(tabs);
    await expect.poll(openStreams).toBe(1);
    await conversation.ask('/say The second answer.');
    await expectInEveryTab('The second answer.');
    await expect.poll(openStreams).toBe(1); // two for a moment, if the leader was too slow and another tab took over

    const leader = await leaderOf(tabs);
    tabs.splice(tabs.indexOf(leader), 1);
    await leader.close();
    await conversation.ask('/say The third answer.');
    await expectInEveryTab('The third answer.');
    expect(await leaderOf(tabs)).not.toBe(leader);
    await expect.poll(openStreams).toBe(1);

    // A tab in the background gets an event before it is frozen. Headless Chromium freezes no tabs, so the test dispatches the event.
    const frozenTab = await leaderOf(tabs);
    await frozenTab.evaluate(() => void document.dispatchEvent(new Event('freeze')));
    await expect.poll(() => isLeader(frozenTab)).toBe(false);
    await conversation.ask('/say The fourth answer.');
    await expectInEveryTab('The fourth answer.');
    await frozenTab.evaluate(() => void document.dispatchEvent(new Event('resume')));
    await expect.poll(openStreams).toBe(1);

    // A tab that hangs gets no event. After 4 seconds without a message from it (web/src/live/hub.ts), another tab takes over.
    const hangingTab = await leaderOf(tabs);
    const hasResumed = hangingTab.evaluate(() => {
      for (const end = performance.now() + 8_000; performance.now() < end; );
    });
    tabs.splice(tabs.indexOf(hangingTab), 1);
    await conversation.ask('/say The fifth answer.');
    await expectInEveryTab('The fifth answer.');
    await leaderOf(tabs);
    await hasResumed;
    tabs.push(hangingTab);
    await expectInEveryTab('The fifth answer.');
    await expect.poll(openStreams).toBe(1);

    visit.allow(/net::ERR_/);
    await server.stop('SIGKILL');
    await server.start();
    // The first client was connected to the server that has crashed.
    const restarted = (await server.tl()).conversation('notes');
    await restarted.ask('/say The sixth answer.');
    await expectInEveryTab('The sixth answer.');
    await expect.poll(openStreams).toBe(1);
  },
);
