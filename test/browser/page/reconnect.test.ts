// What the page shows while it and the server do not hear each other, and that it catches up: after a crash, and after the sign-in ended.
import { renameSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import { pageServer } from './harness.ts';

const server = pageServer();

/** What a browser says of requests to a server that is gone. */
const GONE = /Failed to load resource|ERR_|Failed to fetch/;

server.test('a crash: a strip after 3 seconds, what was read stays, and nothing runs for ever', async (visit) => {
  visit.allow(GONE);
  const chat = (await server.tl()).conversation('crash', { title: 'Crash' });
  await chat.ask('/say Before the crash.');
  await chat.send('/say I begin.\n/hang').accepted;
  const { id } = await chat.get();
  // The page loads it ahead, and the server may be gone just then.
  const without = new Set<Page>();
  await visit.context.route(/assets\/palette/, async (route) => {
    await route.abort();
    without.add(route.request().frame().page());
  });
  const [page, inbox] = [await visit.open(`/c/${id}`), await visit.open('/')];
  await page.getByText('I begin.', { exact: true }).waitFor();
  await inbox.getByRole('region', { name: 'Running' }).getByRole('link', { name: /Crash/ }).waitFor();
  await page.getByRole('textbox', { name: /prompt/i }).fill('A draft');
  await expect.poll(() => without.size).toBe(2);

  const stopped = Date.now(); // before: the browser may notice it earlier than we do
  await server.stop('SIGKILL');
  for (const each of [page, inbox]) await each.getByText(/Not connected since/).waitFor();
  expect(Date.now() - stopped).toBeGreaterThan(2_500);
  await page.getByText('Before the crash.', { exact: true }).waitFor();
  await inbox.getByRole('link', { name: /Crash/ }).first().waitFor();
  // A view that was not loaded before cannot be now. Everything else stays.
  await inbox.getByRole('link', { name: 'Tasks' }).click();
  await inbox.getByRole('alert').getByText('This part of the page could not be loaded.').waitFor();

  // The page stays away until more has happened.
  await visit.context.setOffline(true);
  await server.start();
  const again = (await server.tl()).conversation('crash');
  await expect.poll(async () => (await again.show()).turns[1]?.state).toBe('interrupted');
  await again.ask('/say After the crash.');
  // It is shown for five seconds, in both at about the same time.
  const caughtUp = [page, inbox].map((each) =>
    each.getByText(/Connected again\. Caught up on (\d+ events|one event)\./).waitFor(),
  );
  await visit.context.setOffline(false);
  await Promise.all(caughtUp);
  await page.getByText('After the crash.', { exact: true }).waitFor();
  await inbox.getByRole('link', { name: 'Inbox' }).click();
  // Somebody looks at it in the other tab: it has not changed since.
  await inbox.getByRole('region', { name: 'Idle' }).getByRole('link', { name: /Crash/ }).waitFor();
  await expect.poll(() => inbox.getByRole('region', { name: 'Running' }).count()).toBe(0);
  expect(await page.getByRole('textbox', { name: /prompt/i }).inputValue()).toBe('A draft');
  for (const each of [page, inbox]) await each.getByText(/Connected again/).waitFor({ state: 'detached' });
  await visit.context.unrouteAll();
  await page.keyboard.press('Control+k');
  await page.getByRole('dialog').getByRole('button', { name: 'Reload the page' }).click();
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  await page.getByText('After the crash.', { exact: true }).waitFor();
  await page.keyboard.press('Control+k');
  await page.getByRole('dialog').getByRole('combobox').waitFor();
});

server.test(
  'the data file is gone: every tab says so, keeps what was read, and goes on when it is back',
  async (visit) => {
    visit.allow(/503/);
    const file = join(server.home.path, 'home', 'throughline.db');
    const chat = (await server.tl()).conversation('gone', { title: 'Gone' });
    await chat.ask('/say Before it was moved.');
    const [page, inbox] = [await visit.open(`/c/${(await chat.get()).id}`), await visit.open('/')];
    await page.getByText('Before it was moved.', { exact: true }).waitFor();
    await inbox.getByRole('link', { name: /Gone/ }).first().waitFor();
    renameSync(file, `${file}.kept`);
    for (const each of [page, inbox]) await each.getByText(/The data file .* was deleted or moved/).waitFor();
    await page.getByText('Before it was moved.', { exact: true }).waitFor();
    const back = [page, inbox].map((each) => each.getByText(/Connected again/).waitFor()); // shown for five seconds
    renameSync(`${file}.kept`, file);
    await Promise.all(back);
    await chat.ask('/say After it was back.');
    await page.getByText('After it was back.', { exact: true }).waitFor();
  },
);

server.test('a stream that died while the device slept is noticed, and what was missed comes', async (visit) => {
  // A connection that was lost unnoticed is open, and brings nothing. The timers of a device that sleeps do not go on.
  await visit.context.addInitScript(() => {
    const { setTimeout: timer } = globalThis;
    const asleep = (work: () => void, ms = 0) => (ms > 10_000 ? 0 : timer(work, ms));
    Object.assign(globalThis, { setTimeout: asleep });
    const { fetch: real } = globalThis;
    const streams: { isDead: boolean }[] = [];
    Object.assign(globalThis, { streams });
    globalThis.fetch = async (...request) => {
      const answer = await real(...request);
      if (!/event-stream/.test(answer.headers.get('content-type') ?? '')) return answer;
      const stream = { isDead: false };
      streams.push(stream);
      const heard = new TransformStream<Uint8Array<ArrayBuffer>>({
        transform: (chunk, to) => (stream.isDead ? undefined : to.enqueue(chunk)),
      });
      return new Response(answer.body?.pipeThrough(heard), answer);
    };
  });
  const chat = (await server.tl()).conversation('asleep', { title: 'Asleep' });
  await chat.ask('/say Good night.');
  const page = await visit.open(`/c/${(await chat.get()).id}`);
  await page.getByText('Good night.', { exact: true }).waitFor();
  await chat.ask('/say Still awake.');
  await page.getByText('Still awake.', { exact: true }).waitFor();
  await page.evaluate(() => {
    for (const stream of (globalThis as unknown as { streams: { isDead: boolean }[] }).streams) stream.isDead = true;
  });
  await chat.ask('/say While it slept.');
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  expect(await page.getByText('While it slept.', { exact: true }).count()).toBe(0);
  // It wakes up a minute later, and somebody looks at it.
  await page.evaluate(() => {
    const { now } = Date;
    Date.now = () => now() + 60_000;
    document.dispatchEvent(new Event('visibilitychange'));
  });
  await page.getByText('While it slept.', { exact: true }).waitFor();
  await page.getByText(/Not connected since/).waitFor({ state: 'detached' });
});

server.test('the sign-in ends while the page is open: it says so, keeps the draft, and goes on', async (visit) => {
  visit.allow(/401/);
  const chat = (await server.tl()).conversation('expired', { title: 'Expired' });
  await chat.ask('/say Still readable.');
  const page = await visit.open(`/c/${(await chat.get()).id}`);
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
  await chat.ask('/say Heard again.');
  await page.getByText('Heard again.', { exact: true }).waitFor();
  expect(await field.inputValue()).toBe('A draft');
});

/** What an agent offers to choose from, as it says so. */
const ANNOUNCED = `/update ${JSON.stringify({
  sessionUpdate: 'config_option_update',
  configOptions: [
    { id: 'model', name: 'Model', type: 'select', currentValue: 'osprey-1', options: [{ value: 'osprey-1' }] },
    { id: 'effort', name: 'Effort', type: 'select', currentValue: 'low', options: [{ value: 'low' }] },
  ],
})}`;

/** A conversation with a turn that has ended, one whose restore failed, one that runs, and one that waits. */
async function manyStates(title: string) {
  const chat = (await server.tl()).conversation(title, { title, agent: 'forgetful' });
  await chat.ask(`${ANNOUNCED}\n/say Still readable.`);
  await chat.kill();
  await expect(chat.ask('And now?', { restore: { rung: 'resume' } })).rejects.toThrow();
  await chat.send('/say I begin.\n/hang').accepted;
  await chat.send('/say It waited.').accepted;
  return chat;
}

server.test('a page offers nothing that it may not do, and says whose it is', async ({ context }) => {
  const chat = await manyStates('Guarded');
  const { id } = await chat.get();
  const page = await context.newPage();
  const openWith = async (scopes: readonly string[], path: string) => {
    await page.goto('about:blank');
    await context.clearCookies();
    const { link } = await server.caller.ok('POST', '/links', { scopes });
    await context.request.get(link, { maxRedirects: 0 });
    await page.goto(server.url + path);
  };
  const options = page.getByRole('button', { name: /^Options for the next prompt/ });
  const choices = page.getByRole('combobox', { name: /^(Mode|Effort)\b/ });
  await openWith(['read'], '/');
  await page.getByRole('button', { name: 'Signed in as local. Scopes: read' }).waitFor();
  await page.getByText('read only').waitFor();
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
  // The seam opens where its address leads.
  await page.goto(`${server.url}/c/${id}/seam/2`);
  const seam = page.getByRole('region', { name: 'Seam before turn 2', exact: true });
  await seam.getByText('Ladder').waitFor();
  expect(await seam.getByRole('button', { name: /^Send/ }).count()).toBe(0);
  await page.getByRole('button', { name: 'Actions for turn 2' }).click();
  await page.getByRole('menuitem', { name: 'Copy link' }).waitFor();
  expect(await page.getByRole('menuitem').allTextContents()).toEqual([
    ...['Copy link', 'Copy answer', 'Copy prompt', 'What the session was told'],
  ]);

  await openWith(['read', 'prompt'], `/c/${id}`);
  await queue.getByRole('button', { name: 'Edit' }).waitFor();
  await options.click();
  // Now it is known what the agent offers.
  await page.getByPlaceholder('osprey-1').waitFor();
  expect(await choices.count()).toBe(0);

  await openWith(['read', 'prompt', 'approve'], `/c/${id}`);
  await options.click();
  await expect.poll(() => choices.count()).toBe(2);
  await chat.cancel();
});
