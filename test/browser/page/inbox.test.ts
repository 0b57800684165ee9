// The inbox, the rail, search, filters, palette and keys in a browser, from one device and from two.
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import { axe, PHONE, pageServer } from './harness.ts';

const server = pageServer();

const rail = (page: Page) => page.getByRole('complementary', { name: 'Conversations' });
const row = (page: Page, title: string | RegExp) => rail(page).getByRole('link', { name: title });
const section = (page: Page, name: string) => page.getByRole('region', { name, exact: true });

async function talk(title: string, prompts: readonly string[], agent = 'scripted') {
  const chat = (await server.tl()).conversation(title.toLowerCase().replaceAll(' ', '-'), { title, agent });
  for (const prompt of prompts) await chat.send(prompt).result.catch(() => {}); // some fail, as they should
  return chat;
}

server.test(
  'a question shows on two devices; the answer of one is told on the other, and the count goes',
  async (visit) => {
    const [desk, couch] = [await visit.open('/'), await visit.openElsewhere('/')];
    await desk.getByText('Nothing needs you.').waitFor();
    await expect.poll(() => desk.title()).toBe('Throughline');
    const chat = (await server.tl()).conversation('cleaning', { title: 'Cleaning' });
    await chat.send('/ask May I delete it?\n/tool write out.log', { permissions: 'ask' }).accepted;
    for (const page of [desk, couch]) {
      await section(page, 'Needs you').getByRole('heading', { name: 'May I delete it?' }).waitFor();
      await expect.poll(() => page.title()).toBe('(1) Throughline');
    }
    await row(desk, /Cleaning/)
      .getByText('Asks you')
      .waitFor();
    await axe(desk);
    const told = couch.getByText(/Answered “Allow”, by/).waitFor(); // for some seconds only
    // The card is inert at first: a person looks before pressing.
    await section(desk, 'Needs you').locator('button[aria-disabled=false]', { hasText: 'Allow' }).click();
    await told;
    await expect.poll(async () => (await chat.show()).turns[0]?.state).toBe('completed');
    for (const page of [desk, couch]) {
      await page.getByText('Nothing needs you.').waitFor();
      await expect.poll(() => page.title()).toBe('Throughline');
    }
  },
);

server.test('a failed restore needs somebody, until it is left as it is; a failed turn does not', async ({ open }) => {
  await talk('Forgetting', ['Hello'], 'forgetful');
  await talk('Failing', ['/fail agent_failed']);
  const page = await open('/');
  await row(page, /Failing/)
    .getByText('Failed')
    .waitFor();
  expect(await section(page, 'Needs you').count()).toBe(0);
  // Nothing can be carried into a new session: the context cannot be restored.
  const forgetting = (await server.tl()).conversation('forgetting');
  await forgetting.kill();
  await forgetting.send('Again', { restore: { rung: 'resume' } }).result.catch(() => {});
  await section(page, 'Needs you').getByText('Not restored').waitFor();
  await expect.poll(() => page.title()).toBe('(1) Throughline');
  await page.getByRole('button', { name: 'Dismiss' }).click();
  await expect.poll(() => page.title()).toBe('Throughline');
  await forgetting.ask('Once more'); // and now for other browsers as well
});

server.test('what goes wrong is said with what to do, until somebody closes it', async ({ open, allow }) => {
  allow(/status of 400/);
  const { id } = await (await server.tl()).conversation('nothing said', { title: 'Nothing said' }).ensure();
  const page = await open(`/c/${id}`);
  await page.getByRole('button', { name: 'Conversation actions' }).click();
  await page.getByRole('menuitem', { name: 'Fork', exact: true }).click();
  await page.getByText('There is nothing to fork: the conversation has no turns yet.').waitFor();
  await page.getByText('Fork it after its first turn has ended, or start another conversation.').waitFor();
  await axe(page);
  await page.getByRole('button', { name: 'Close' }).click();
  await expect.poll(() => page.getByText(/There is nothing to fork/).count()).toBe(0);
});

server.test('what no process serves says so in the lists and in its head, and is moved here', async ({ open }) => {
  // Another data home in the same store, and nobody runs there any more.
  const gone = { THROUGHLINE_HOME: join(server.home.path, 'gone') };
  const store = `sqlite:${join(server.home.path, 'home', 'throughline.db')}`;
  const left = ['send', 'drifting', '--store', store, 'The codeword is heron\n/tool write work.txt'];
  expect(await server.home.start(left, { env: gone }).ended).toMatchObject({ code: 0 });
  const page = await open('/');
  const message = `"drifting" runs only at the data home ${gone.THROUGHLINE_HOME}, and no process takes it up there.`;
  await row(page, /codeword is heron/)
    .getByText('Stranded')
    .waitFor();
  const line = section(page, 'Idle').getByRole('listitem').filter({ hasText: message });
  expect(await line.getByRole('button', { name: 'Restore' }).count()).toBe(0);
  await line.getByRole('link').click();
  const note = page.getByRole('region', { name: 'Stranded' });
  await note.getByText(message).waitFor();
  await note.getByText('throughline move drifting', { exact: true }).waitFor();
  await axe(page);
  await note.getByRole('button', { name: 'Move here…' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Move here' }).click();
  await note.waitFor({ state: 'detached' });
  await row(page, /codeword is heron/)
    .getByText('Idle')
    .waitFor();
  await page.getByRole('textbox', { name: 'Prompt', exact: true }).fill('Which codewords have you seen?');
  await page.keyboard.press('Enter');
  // The seam is drawn anew when the turn has ended: it is opened after that.
  await page.getByText('I have seen these codewords: heron.').waitFor();
  await page.getByRole('button', { name: 'Send' }).waitFor();
  await page.getByRole('button', { name: /Moved here.*without its files/ }).click();
  await page.getByText(`The working files are not here, but at ${gone.THROUGHLINE_HOME}`).waitFor();
});

server.test('a task that asks needs somebody, until it asks no more', async ({ open }) => {
  const page = await open('/');
  await page.getByRole('heading', { name: 'Inbox' }).waitFor();
  const { tasks } = await server.tl();
  const [task] = await tasks.run({ goal: '/fail agent_failed', name: 'stuck', agent: 'scripted' });
  expect(task).toMatchObject({ state: 'asking' });
  const line = section(page, 'Needs you').getByRole('link', { name: /Task asks.*stuck/ });
  await line.waitFor();
  await expect.poll(() => page.title()).toBe('(1) Throughline');
  await line.click();
  await page.getByRole('heading', { name: 'stuck' }).waitFor();
  await page.goBack();
  await line.waitFor();
  await tasks.cancel(task?.id ?? '');
  await line.waitFor({ state: 'detached' });
  await expect.poll(() => page.title()).toBe('Throughline');
});

server.test('what has changed since somebody looked is kept in this browser, also over a reload', async ({ open }) => {
  await talk('Reading', ['/say One.']);
  const page = await open('/');
  await row(page, /Reading/).waitFor();
  expect(await section(page, 'Changed since you looked').count()).toBe(0);
  await talk('Reading', ['/say Two.']);
  const changed = section(page, 'Changed since you looked').getByRole('link', { name: /Reading/ });
  await changed.waitFor();
  await page.reload();
  await changed.waitFor();
  await changed.click();
  await page.waitForURL(/\/c\//);
  await page.getByRole('complementary').getByRole('link', { name: 'Inbox' }).click();
  await section(page, 'Idle')
    .getByRole('link', { name: /Reading/ })
    .waitFor();
  await expect.poll(() => section(page, 'Changed since you looked').count()).toBe(0);
});

server.test('search marks the words, leaves out late answers, and leads to the turn', async ({ open, context }) => {
  await talk('Codewords', ['/say nothing', 'The codeword is <b>zinc-heron</b>', '/say nothing more']);
  const page = await open('/');
  await row(page, /Codewords/).waitFor();
  // The first search answers late, after the second.
  let release = () => {};
  const held = new Promise<void>((resolve) => (release = resolve));
  await context.route('**/v1/search?*', async (route) => {
    if (new URL(route.request().url()).searchParams.get('q') === 'nothing') await held;
    await route.continue();
  });
  const asked = page.waitForRequest('**/v1/search?q=nothing*');
  const answered = page.waitForResponse('**/v1/search?q=nothing*');
  await page.keyboard.press('/');
  await page.keyboard.type('nothing');
  await asked;
  await page.keyboard.press('Control+A');
  await page.keyboard.type('zinc-heron');
  const results = page.getByRole('list', { name: 'Search results' });
  await results.getByRole('link', { name: /Codewords.*turn 2/ }).waitFor();
  // Somebody who types slowly searches for the beginning of the word before.
  await expect.poll(() => results.locator('mark').allTextContents()).toContain('zinc-heron');
  release();
  await (await answered).finished();
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  expect(await results.getByRole('listitem').count()).toBe(1);
  expect(await results.textContent()).toContain('<b>zinc-heron</b>'); // as it was said, not as markup
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  const there = /\/c\/[\w-]+\/turn\/2\?find=zinc-heron$/;
  await page.waitForURL(there);
  /** What is marked in the turn that the search led to. */
  const found = () => page.evaluate(() => [...(CSS.highlights.get('found-here') ?? [])].map(String));
  await expect.poll(found).toContain('zinc-heron');
  // Enter leads to the first one, also when it comes before the answer.
  await page.goto(server.url);
  await row(page, /Codewords/).waitFor();
  await page.keyboard.press('/');
  await page.keyboard.type('zinc codewo');
  await page.keyboard.press('Enter');
  await page.waitForURL(/\/c\/[\w-]+\/turn\/2\?find=zinc%20codewo$/);
  // Each word by itself, as the search has found them.
  await expect.poll(found).toEqual(expect.arrayContaining(['codeword', 'zinc']));
  await page.getByRole('button', { name: 'Close', exact: true }).click();
  await expect.poll(() => page.evaluate(() => CSS.highlights.size)).toBe(0);
  // The same hit leads there again.
  await results.getByRole('link', { name: /Codewords.*turn 2/ }).click();
  await expect.poll(found).toContain('zinc');
});

server.test('search finds conversations by their titles, also by a new one', async ({ open }) => {
  const chat = await talk('Ledger of quarters', ['/say Two plus two.']);
  const page = await open('/');
  await row(page, /Ledger of quarters/).waitFor();
  await page.keyboard.press('/');
  await page.keyboard.type('quarters led');
  const results = page.getByRole('list', { name: 'Search results' });
  const hit = results.getByRole('link', { name: /Ledger of quarters.*title/ });
  await hit.waitFor();
  await expect.poll(() => results.locator('mark').allTextContents()).toEqual(['Ledger', 'quarters']);
  await chat.rename('Budget of winters');
  await page.keyboard.press('Control+A');
  await page.keyboard.type('winters');
  await results.getByRole('link', { name: /Budget of winters.*title/ }).click();
  await page.waitForURL(/\/c\/[\w-]+$/);
});

server.test('filters by agent, state and date, and without them everything again', async ({ open, context }) => {
  await talk('By another agent', ['Hello'], 'rotating');
  await talk('Failed here', ['/fail agent_failed']);
  const page = await open('/');
  const titles = () => rail(page).getByRole('list', { name: 'Conversations' }).getByRole('listitem').allTextContents();
  const { length: all } = (await server.caller.ok('GET', '/conversations')).conversations;
  expect(all).toBeGreaterThan(2);
  await expect.poll(async () => (await titles()).length).toBe(all);
  await page.getByLabel('Agent', { exact: true }).selectOption('rotating');
  await expect.poll(async () => (await titles()).join()).toMatch(/^By another agent[^,]*$/);
  await page.getByRole('button', { name: 'Clear the filters' }).click();
  await page.getByLabel('State').selectOption('Failed');
  // Until those that match are here, the rows stay.
  await expect.poll(async () => (await titles()).join()).toMatch(/^(?!.*By another agent).*Failed here/);
  await page.getByLabel('State').selectOption('Running');
  await page.getByText('No conversation matches the filters.').waitFor();
  await page.getByRole('button', { name: 'Clear the filters' }).click();
  await expect.poll(async () => (await titles()).length).toBe(all);
  // As if all of them were two days old.
  await context.route(/\/v1\/conversations\?.*since=/, async (route) => {
    const url = new URL(route.request().url());
    const since = Date.parse(url.searchParams.get('since') ?? '');
    url.searchParams.set('since', new Date(since + 2 * 86_400_000).toISOString());
    await route.continue({ url: url.href });
  });
  await page.getByLabel('Date').selectOption('Last 24 hours');
  await page.getByText('No conversation matches the filters.').waitFor();
  await page.getByLabel('Date').selectOption('Last 7 days');
  await expect.poll(async () => (await titles()).length).toBe(all);
});

server.test('the palette opens conversations and shows command lines; keys move in the rail', async ({ open }) => {
  await talk('Palette neighbour', ['Hello']);
  await talk('Palette target', ['Hello']);
  const page = await open('/');
  await row(page, /Palette target/).waitFor();
  await page.keyboard.press('Control+K');
  const palette = page.getByRole('dialog', { name: 'Palette' });
  await palette.getByRole('combobox').waitFor();
  await expect
    .poll(() => palette.getByRole('combobox').evaluate((field) => field === document.activeElement))
    .toBe(true);
  // Letters are letters here, and not the keys of actions.
  await page.keyboard.type('c palette ta');
  await palette.getByText('No matches.').waitFor();
  await page.keyboard.press('Control+A');
  await page.keyboard.type('palette ta');
  await palette
    .getByRole('option', { name: /Palette target/ })
    .first()
    .waitFor();
  await palette.getByText('throughline show palette-target').waitFor();
  await axe(page);
  await page.keyboard.press('Enter');
  await page.waitForURL(/\/c\//);
  await expect.poll(() => row(page, /Palette target/).getAttribute('aria-current')).toBe('page');
  await expect.poll(() => page.title()).toBe('Palette target · Throughline');
  await page.evaluate(() => (document.activeElement as HTMLElement | null)?.blur());
  await page.keyboard.press('?');
  await page
    .getByRole('dialog', { name: 'Keyboard shortcuts and commands' })
    .getByText('throughline search WORDS')
    .first()
    .waitFor();
  const before = page.url();
  await page.keyboard.press('c'); // the dialog has the keys: no new conversation
  await page.keyboard.press('Escape');
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  expect(page.url()).toBe(before);
  await page.keyboard.press('j');
  await expect.poll(() => page.evaluate(() => document.activeElement?.getAttribute('href'))).toMatch(/^\/c\//);
  await page.keyboard.press('Enter');
  await expect.poll(() => page.url()).not.toBe(before);
});

server.test('the browser notifies once for all tabs, and only when nobody looks', async ({ open, context }) => {
  await context.addInitScript(() => {
    class Notice {
      static permission = 'granted';
      static requestPermission = async () => 'granted';
      constructor(title: string) {
        const shown = JSON.parse(localStorage.getItem('shown') ?? '[]');
        localStorage.setItem('shown', JSON.stringify([...shown, title]));
      }
    }
    Object.assign(window, { Notification: Notice });
    let state = 'visible';
    Object.defineProperty(document, 'visibilityState', { get: () => state });
    Object.assign(window, {
      hide: (next: string) => {
        state = next;
        document.dispatchEvent(new Event('visibilitychange'));
      },
    });
  });
  const pages = [await open('/'), await open('/')];
  const [first] = pages as [Page, Page];
  // What was there before the list was read is no news.
  for (const page of pages) await page.getByRole('heading', { name: 'Inbox' }).waitFor();
  await first.getByRole('button', { name: 'Notify me when something needs me' }).click();
  await first.getByRole('button', { name: 'Notifications are on: turn them off' }).waitFor();
  /** Requests that match reach the server when they are released. */
  const held = async (pattern: string) => {
    let release = () => {};
    const released = new Promise<void>((resolve) => (release = resolve));
    await context.route(pattern, async (route) => {
      await released;
      await route.continue();
    });
    return { release };
  };
  const ask = async (title: string) => {
    const chat = (await server.tl()).conversation(title, { title });
    await chat.send('/ask May I?\n/tool write x.log', { permissions: 'ask' }).accepted;
    const isAsked = async () => (await (await server.tl()).permissions({ conversation: title, open: true })).length;
    await expect.poll(isAsked).toBe(1);
    return chat;
  };
  /** Waits until it is decided whether a question is told: some tab has noted it, and has let go of its lock. */
  const decided = async ({ id }: { id: string }) => {
    const [question] = await (await server.tl()).permissions({ conversation: id, open: true });
    const noted = () => first.evaluate(() => localStorage.getItem('throughline.notified'));
    await expect.poll(noted).toContain(question?.id ?? '');
    await first.evaluate(() => navigator.locks.request('throughline.notified', async () => {}));
  };
  const seen = await ask('while looking');
  await decided(await seen.get());
  for (const page of pages) await page.evaluate(() => (window as never as { hide(s: string): void }).hide('hidden'));
  // The questions are read before the list has the conversation of the second one.
  const questions = await held('**/v1/permissions?*');
  const away = await ask('while away');
  await Promise.all(
    pages.map((page) =>
      row(page, /while away/)
        .getByText('Asks you')
        .waitFor(),
    ),
  );
  const lists = await held('**/v1/conversations?*');
  const unlisted = await ask('not listed yet');
  questions.release();
  for (const chat of [away, unlisted]) await decided(await chat.get());
  const shown = () => first.evaluate(() => JSON.parse(localStorage.getItem('shown') ?? '[]') as string[]);
  const once = ['while away asks you', 'not listed yet asks you'];
  await expect.poll(shown).toEqual(once);
  lists.release();
  for (const chat of [seen, away, unlisted]) await chat.cancel();
  await expect.poll(() => first.title()).toBe('Throughline');
  expect((await shown()).filter((title) => title.includes('asks'))).toEqual(once);
});

server.test(
  'on a phone there is one column, a bar within reach, and everything is large enough to touch',
  async ({ open }) => {
    const page = await open('/');
    await page.getByRole('heading', { name: 'Inbox' }).waitFor();
    expect(await rail(page).isVisible()).toBe(false);
    await page.getByRole('navigation', { name: 'Main' }).getByRole('button', { name: 'Conversations' }).tap();
    const sheet = page.getByRole('dialog', { name: 'Conversations' });
    await sheet.getByRole('link', { name: /Palette target/ }).waitFor();
    await axe(page);
    const small = await sheet.locator('a, button, select, input').evaluateAll((targets) =>
      targets.flatMap((target) => {
        const { height, width } = target.getBoundingClientRect();
        return height < 44 || width < 44 ? [`${target.textContent || target.ariaLabel}: ${width} × ${height}`] : [];
      }),
    );
    expect(small).toEqual([]);
    expect(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true);
    await sheet.getByRole('link', { name: /Palette target/ }).tap();
    await page.waitForURL(/\/c\//);
    await sheet.waitFor({ state: 'detached' });
  },
  PHONE,
);

server.test('hundreds of conversations are few rows, and the last one is reached', async ({ open }) => {
  const tl = await server.tl();
  for (let n = 0; n < 300; n += 50) {
    await Promise.all(Array.from({ length: 50 }, (_, index) => tl.engine.ensure({ key: `many-${n + index}` })));
  }
  await tl.engine.ensure({ key: 'the newest' });
  const page = await open('/');
  await row(page, /the newest/).waitFor();
  const list = rail(page).getByRole('list', { name: 'Conversations' });
  expect(await list.getByRole('listitem').count()).toBeLessThan(60);
  const box = list.locator('..');
  await expect
    .poll(async () => {
      await box.evaluate((element) => element.scrollTo(0, element.scrollHeight));
      return list.getByRole('listitem').last().textContent();
    })
    .toContain('Cleaning');
  expect(await list.getByRole('listitem').count()).toBeLessThan(60);
});
