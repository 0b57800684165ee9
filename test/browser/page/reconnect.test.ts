// What the page shows while it is not connected, and that it catches up: after a crash, after a sleep, and after a new sign-in.
import { renameSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import { pageServer, waitForRender } from './harness.ts';

const server = pageServer();

/** The messages of a browser about requests to a server that is not running. */
const NOT_RUNNING = /Failed to load resource|ERR_|Failed to fetch/;

server.test(
  'after a crash of the server, a strip shows after 3 seconds, what was loaded stays, and the page catches up',
  async (visit) => {
    visit.allow(NOT_RUNNING);
    const conversation = (await server.tl()).conversation('crash', { title: 'Crash' });
    await conversation.ask('/say Before the crash.');
    await conversation.send('/say I begin.\n/hang').accepted;
    const { id } = await conversation.get();
    // The page loads the palette in advance, and the server may crash during that. So it fails in both tabs before the crash.
    const tabsWithoutPalette = new Set<Page>();
    await visit.context.route(/assets\/palette/, async (route) => {
      await route.abort();
      tabsWithoutPalette.add(route.request().frame().page());
    });
    const [page, forYou] = [await visit.open(`/c/${id}`), await visit.open('/')];
    await page.getByText('I begin.', { exact: true }).waitFor();
    const working = forYou.getByRole('link', { name: /Working.*Crash/ });
    await working.waitFor();
    await page.getByRole('textbox', { name: /prompt/i }).fill('A draft');
    await expect.poll(() => tabsWithoutPalette.size).toBe(2);

    const stoppedAt = Date.now(); // taken before the stop: the page may notice the stop before this test does
    await server.stop('SIGKILL');
    for (const tab of [page, forYou]) await tab.getByText(/Not connected since/).waitFor();
    expect(Date.now() - stoppedAt).toBeGreaterThan(2_500); // 3 seconds, with a margin
    await page.getByText('Before the crash.', { exact: true }).waitFor();
    await forYou.getByRole('link', { name: /Crash/ }).first().waitFor();
    // A view that was not loaded before cannot be loaded now. Everything else stays.
    await forYou.getByRole('link', { name: 'Tasks' }).click();
    await forYou.getByRole('alert').getByText('This part of the page could not be loaded.').waitFor();

    // The page stays offline until there are new events.
    await visit.context.setOffline(true);
    await server.start();
    const restarted = (await server.tl()).conversation('crash');
    await expect.poll(async () => (await restarted.show()).turns[1]?.state).toBe('interrupted');
    await restarted.ask('/say After the crash.');
    // Both tabs show it for five seconds at about the same time, so they are watched in parallel.
    const caughtUp = [page, forYou].map((tab) =>
      tab.getByText(/Connected again\. Caught up on (\d+ events|one event)\./).waitFor(),
    );
    await visit.context.setOffline(false);
    await Promise.all(caughtUp);
    await page.getByText('After the crash.', { exact: true }).waitFor();
    await forYou.getByRole('link', { name: 'For you' }).click();
    // The other tab shows the conversation, so it is not listed as answered.
    await forYou.getByText('Nothing needs you.').waitFor();
    await expect.poll(() => working.count()).toBe(0);
    expect(await forYou.getByRole('region', { name: 'Answered since you looked' }).count()).toBe(0);
    expect(await page.getByRole('textbox', { name: /prompt/i }).inputValue()).toBe('A draft');
    for (const tab of [page, forYou]) await tab.getByText(/Connected again/).waitFor({ state: 'detached' });
    await visit.context.unrouteAll();
    // The palette could not be loaded above.
    await page.keyboard.press('Control+k');
    await page.getByRole('dialog').getByRole('button', { name: 'Reload the page' }).click();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await page.getByText('After the crash.', { exact: true }).waitFor();
    await page.keyboard.press('Control+k');
    await page.getByRole('dialog').getByRole('combobox').waitFor();
  },
);

server.test(
  'after an update of the server, an old tab says that it has to be reloaded, and works afterwards',
  async (visit) => {
    visit.allow(/Failed to load resource|ERR_|Failed to fetch/);
    const conversation = (await server.tl()).conversation('updated', { title: 'Updated' });
    await conversation.ask('/say Before the update.');
    const page = await visit.open(`/c/${(await conversation.get()).id}`);
    await page.getByText('Before the update.', { exact: true }).waitFor();
    await page.getByRole('textbox', { name: /prompt/i }).fill('A draft');
    // As a newer server answers a client of another interface.
    const headers = { 'throughline-interface': '99' };
    await visit.context.route(/\/v1\//, (route) => route.fulfill({ status: 400, headers, body: '{}' }));
    await server.stop('SIGKILL');
    await server.start();
    const strip = page.getByRole('status').filter({ hasText: 'This page is from another version than the server.' });
    await strip.waitFor();
    expect(await page.getByText(/Update Throughline here|Not connected since/).count()).toBe(0);
    await page.getByText('Before the update.', { exact: true }).waitFor();
    await visit.context.unrouteAll();
    await strip.getByRole('button', { name: 'Reload the page' }).click();
    await strip.waitFor({ state: 'detached' });
    await page.getByText('Before the update.', { exact: true }).waitFor();
    expect(await page.getByRole('textbox', { name: /prompt/i }).inputValue()).toBe('A draft');
  },
);

server.test(
  'if the data file is moved away, every tab says so and keeps what was loaded, and continues when it is back',
  async (visit) => {
    visit.allow(/503/);
    const file = join(server.home.path, 'home', 'throughline.db');
    const conversation = (await server.tl()).conversation('gone', { title: 'Gone' });
    await conversation.ask('/say Before it was moved.');
    const [page, forYou] = [await visit.open(`/c/${(await conversation.get()).id}`), await visit.open('/')];
    await page.getByText('Before it was moved.', { exact: true }).waitFor();
    await forYou.getByRole('link', { name: /Gone/ }).first().waitFor();
    renameSync(file, `${file}.kept`);
    for (const tab of [page, forYou]) await tab.getByText(/The data file .* was deleted or moved/).waitFor();
    await page.getByText('Before it was moved.', { exact: true }).waitFor();
    const connectedAgain = [page, forYou].map((tab) => tab.getByText(/Connected again/).waitFor()); // shown for five seconds
    renameSync(`${file}.kept`, file);
    await Promise.all(connectedAgain);
    await conversation.ask('/say After it was back.');
    await page.getByText('After it was back.', { exact: true }).waitFor();
  },
);

server.test('a stream that broke while the device slept is noticed, and the missed events are shown', async (visit) => {
  // A broken connection stays open, but nothing arrives. While a device sleeps, its timers stop: here those of more than 10 seconds.
  await visit.context.addInitScript(() => {
    const { setTimeout: realSetTimeout } = globalThis;
    const setTimeoutAsleep = (work: () => void, ms = 0) => (ms > 10_000 ? 0 : realSetTimeout(work, ms));
    Object.assign(globalThis, { setTimeout: setTimeoutAsleep });
    const { fetch: realFetch } = globalThis;
    const streams: { isDead: boolean }[] = [];
    Object.assign(globalThis, { streams });
    globalThis.fetch = async (...request) => {
      const answer = await realFetch(...request);
      if (!/event-stream/.test(answer.headers.get('content-type') ?? '')) return answer;
      const stream = { isDead: false };
      streams.push(stream);
      const dropIfDead = new TransformStream<Uint8Array<ArrayBuffer>>({
        transform: (chunk, to) => (stream.isDead ? undefined : to.enqueue(chunk)),
      });
      return new Response(answer.body?.pipeThrough(dropIfDead), answer);
    };
  });
  const conversation = (await server.tl()).conversation('asleep', { title: 'Asleep' });
  await conversation.ask('/say Good night.');
  const page = await visit.open(`/c/${(await conversation.get()).id}`);
  await page.getByText('Good night.', { exact: true }).waitFor();
  await conversation.ask('/say Still awake.');
  await page.getByText('Still awake.', { exact: true }).waitFor();
  await page.evaluate(() => {
    for (const stream of (globalThis as unknown as { streams: { isDead: boolean }[] }).streams) stream.isDead = true;
  });
  await conversation.ask('/say While it slept.');
  await waitForRender(page);
  expect(await page.getByText('While it slept.', { exact: true }).count()).toBe(0);
  // The device wakes up a minute later, and the tab becomes visible.
  await page.evaluate(() => {
    const { now } = Date;
    Date.now = () => now() + 60_000;
    document.dispatchEvent(new Event('visibilitychange'));
  });
  await page.getByText('While it slept.', { exact: true }).waitFor();
  await page.getByText(/Not connected since/).waitFor({ state: 'detached' });
});

server.test(
  'when the sign-in ends, an open page says so and keeps the draft, and continues after a new sign-in',
  async (visit) => {
    visit.allow(/401/);
    const conversation = (await server.tl()).conversation('expired', { title: 'Expired' });
    await conversation.ask('/say Still readable.');
    const page = await visit.open(`/c/${(await conversation.get()).id}`);
    await page.getByText('Still readable.', { exact: true }).waitFor();
    const field = page.getByRole('textbox', { name: /prompt/i });
    await field.fill('A draft');
    await visit.context.clearCookies();
    await page.evaluate(() => window.dispatchEvent(new Event('focus')));
    await page.getByText(/You are signed out/).waitFor();
    await page.getByText('Still readable.', { exact: true }).waitFor();
    await visit.context.request.get(await server.link(), { maxRedirects: 0 });
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByText(/You are signed out/).waitFor({ state: 'detached' });
    await conversation.ask('/say Heard again.');
    await page.getByText('Heard again.', { exact: true }).waitFor();
    expect(await field.inputValue()).toBe('A draft');
  },
);

/** Makes the scripted agent announce two options to choose from. */
const ANNOUNCE_OPTIONS = `/update ${JSON.stringify({
  sessionUpdate: 'config_option_update',
  configOptions: [
    { id: 'model', name: 'Model', type: 'select', currentValue: 'osprey-1', options: [{ value: 'osprey-1' }] },
    { id: 'effort', name: 'Effort', type: 'select', currentValue: 'low', options: [{ value: 'low' }] },
  ],
})}`;

/** A conversation with a completed turn, one whose restore failed, one that is running, and one that is queued. */
async function conversationInAllStates(title: string) {
  const conversation = (await server.tl()).conversation(title, { title, agent: 'forgetful' });
  await conversation.ask(`${ANNOUNCE_OPTIONS}\n/say Still readable.`);
  await conversation.kill();
  await expect(conversation.ask('And now?', { restore: { rung: 'resume' } })).rejects.toThrow();
  await conversation.send('/say I begin.\n/hang').accepted;
  await conversation.send('/say It waited.').accepted;
  return conversation;
}

server.test(
  'a page has only controls that its scopes allow, and shows the owner and the scopes',
  async ({ context }) => {
    const conversation = await conversationInAllStates('Guarded');
    const { id } = await conversation.get();
    const page = await context.newPage();
    const openWith = async (scopes: readonly string[], path: string) => {
      await page.goto('about:blank');
      await context.clearCookies();
      const { link } = await server.caller.ok('POST', '/links', { scopes });
      await context.request.get(link, { maxRedirects: 0 });
      await page.goto(server.url + path);
    };
    const options = page.getByRole('button', { name: /^Options for the next prompt/ });
    const mode = page.getByRole('button', { name: /^Mode: / });
    const choices = page.getByRole('combobox', { name: /^(Mode|Effort)\b/ });
    await openWith(['read'], '/');
    await page.getByText('Read only', { exact: true }).waitFor();
    await page.getByRole('link', { name: 'Settings and health' }).click();
    const signedIn = page.getByRole('region', { name: 'This browser' }).getByRole('definition');
    await signedIn.first().waitFor();
    expect(await signedIn.allTextContents()).toEqual(['local', 'read']);
    expect(await page.getByRole('button', { name: 'New conversation' }).count()).toBe(0);
    expect(await page.getByRole('link', { name: 'New conversation' }).count()).toBe(0);
    await page
      .getByRole('link', { name: /Guarded/ })
      .first()
      .click();
    await page.getByText('I begin.', { exact: true }).waitFor();
    expect(await page.getByRole('textbox', { name: /prompt/i }).count()).toBe(0);
    const queue = page.getByRole('region', { name: 'Queued prompts' });
    await queue.getByRole('listitem', { name: 'Queued prompt 1: /say It waited.' }).waitFor();
    expect(await queue.locator('button, [draggable=true]').count()).toBe(0);
    // The address of a seam opens it.
    await page.goto(`${server.url}/c/${id}/seam/2`);
    const seam = page.getByRole('region', { name: 'Seam before turn 2', exact: true });
    await seam.getByText('Ways tried, best first').waitFor();
    expect(await seam.getByRole('button', { name: /^(Send|Try again)/ }).count()).toBe(0);
    await page.getByRole('button', { name: 'Actions for turn 2' }).click();
    await page.getByRole('menuitem', { name: 'Copy link' }).waitFor();
    expect(await page.getByRole('menuitem').allTextContents()).toEqual([
      ...['Copy link', 'Copy answer', 'Copy prompt', 'What the session was told'],
    ]);

    await openWith(['read', 'prompt'], `/c/${id}`);
    await queue.getByRole('button', { name: 'Edit' }).waitFor();
    await page.getByRole('button', { name: /^Agent and model/ }).click();
    // The placeholder shows that the options of the agent are loaded.
    await page.getByPlaceholder('osprey-1').waitFor();
    await page.keyboard.press('Escape');
    await options.click();
    await page.getByRole('combobox', { name: 'Restore' }).waitFor();
    expect(await choices.count()).toBe(0);
    expect(await mode.count()).toBe(0);

    await openWith(['read', 'prompt', 'approve'], `/c/${id}`);
    await options.click();
    await expect.poll(() => choices.count()).toBe(1);
    await page.keyboard.press('Escape');
    await mode.click();
    await expect.poll(() => choices.count()).toBe(1);
    await conversation.cancel();
  },
);
