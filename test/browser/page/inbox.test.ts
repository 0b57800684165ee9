// The inbox, the rail, search, filters, palette and keyboard shortcuts, on one device and on two.
import { join } from 'node:path';
import type { Locator, Page } from 'playwright-core';
import { expect } from 'vitest';
import { INTERFACE, INTERFACE_HEADER } from '../../../src/wire/operations/operation.ts';
import { problem } from '../../../src/wire/problem.ts';
import { axe, PHONE, pageServer, waitForRender } from './harness.ts';

const server = pageServer();

const rail = (page: Page) => page.getByRole('complementary', { name: 'Conversations' });
const row = (page: Page, title: string | RegExp) => rail(page).getByRole('link', { name: title });
const section = (page: Page, name: string) => page.getByRole('region', { name, exact: true });

/** Runs the prompts one after the other in a conversation with this title. Those with `/fail` must fail. */
async function runPrompts(title: string, prompts: readonly string[], agent = 'scripted') {
  const conversation = (await server.tl()).conversation(title.toLowerCase().replaceAll(' ', '-'), { title, agent });
  for (const prompt of prompts) {
    if (prompt.startsWith('/fail')) await expect(conversation.ask(prompt)).rejects.toThrow();
    else await conversation.ask(prompt);
  }
  return conversation;
}

server.test(
  'a question is shown on two devices; when one answers it, the other shows the answer, and the count disappears',
  async (visit) => {
    const [firstDevice, secondDevice] = [await visit.open('/'), await visit.openElsewhere('/')];
    await firstDevice.getByText('Nothing needs you.').waitFor();
    await expect.poll(() => firstDevice.title()).toBe('Throughline');
    const conversation = (await server.tl()).conversation('cleaning', { title: 'Cleaning' });
    await conversation.send('/ask May I delete it?\n/tool write out.log', { permissions: 'ask' }).accepted;
    for (const page of [firstDevice, secondDevice]) {
      await section(page, 'Needs you').getByRole('heading', { name: 'May I delete it?' }).waitFor();
      await expect.poll(() => page.title()).toBe('(1) Throughline');
    }
    await row(firstDevice, /Cleaning/)
      .getByText('Asks you')
      .waitFor();
    await axe(firstDevice);
    const answerShown = secondDevice.getByText(/Answered “Allow”, by/).waitFor(); // shown for some seconds only
    // The buttons of a card are disabled at first.
    await section(firstDevice, 'Needs you').locator('button[aria-disabled=false]', { hasText: 'Allow' }).click();
    await answerShown;
    await expect.poll(async () => (await conversation.show()).turns[0]?.state).toBe('completed');
    for (const page of [firstDevice, secondDevice]) {
      await page.getByText('Nothing needs you.').waitFor();
      await expect.poll(() => page.title()).toBe('Throughline');
    }
  },
);

server.test(
  'a failed restore is listed under “Needs you” until it is dismissed; a failed turn is not listed',
  async ({ open }) => {
    await runPrompts('Forgetting', ['Hello'], 'forgetful');
    await runPrompts('Failing', ['/fail agent_failed']);
    const page = await open('/');
    await row(page, /Failing/)
      .getByText('Failed')
      .waitFor();
    expect(await section(page, 'Needs you').count()).toBe(0);
    // The sessions of this agent end with its process, so the rung resume fails.
    const forgetting = (await server.tl()).conversation('forgetting');
    await forgetting.kill();
    await expect(forgetting.ask('Again', { restore: { rung: 'resume' } })).rejects.toThrow();
    await section(page, 'Needs you').getByText('Not restored').waitFor();
    await expect.poll(() => page.title()).toBe('(1) Throughline');
    await page.getByRole('button', { name: 'Dismiss' }).click();
    await expect.poll(() => page.title()).toBe('Throughline');
    await forgetting.ask('Once more'); // then it is not listed in other browsers either
  },
);

server.test('an error is shown with what to do, until it is closed', async ({ open, allow }) => {
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

server.test('an error that nobody has closed stays, however many messages come after it', async ({ open, allow }) => {
  allow(/status of 409/);
  await (await server.tl()).conversation('failing', { title: 'Failing restore' }).ask('Hello');
  const page = await open('/');
  let [tries, message] = [0, (n: number) => `Error ${n}.`];
  await page.route('**/warm', (route) => {
    tries += 1;
    const headers = { [INTERFACE_HEADER]: INTERFACE };
    const contentType = 'application/problem+json';
    return route.fulfill({ status: 409, headers, contentType, json: problem('conflict', message(tries)) });
  });
  const messages = page.getByRole('status', { name: 'Messages' });
  const line = section(page, 'Idle').getByRole('listitem').filter({ hasText: 'Failing restore' });
  const fail = async () => {
    const before = tries;
    await line.getByRole('button', { name: 'Restore' }).press('Enter'); // messages may cover it
    await expect.poll(() => tries).toBe(before + 1);
    await page.getByText(message(tries)).waitFor();
  };
  for (let n = 1; n <= 12; n += 1) await fail();
  for (let n = 1; n <= 12; n += 1) expect([n, await page.getByText(`Error ${n}.`).count()]).toEqual([n, 1]);
  // The newest is in sight, and the first can be scrolled to.
  const bottomOf = async (what: Locator) => {
    const { y = 0, height = 0 } = (await what.boundingBox()) ?? {};
    return y + height;
  };
  await expect
    .poll(async () => (await bottomOf(messages.getByText('Error 12.'))) <= (await bottomOf(messages)))
    .toBe(true);
  const { height = 0 } = (await messages.boundingBox()) ?? {};
  expect(height).toBeLessThan((page.viewportSize()?.height ?? 0) * 0.6);
  await messages.getByText('Error 1.').scrollIntoViewIfNeeded();
  await axe(page);
  await messages.getByRole('listitem').filter({ hasText: 'Error 1.' }).getByRole('button', { name: 'Close' }).click();
  expect(await messages.getByText('Error 1.').count()).toBe(0);
  await messages.getByRole('button', { name: 'Close all 11 messages' }).click();
  expect(await messages.getByRole('listitem').count()).toBe(0);
  // The same error again and again is one message.
  message = () => 'It failed.';
  for (let n = 1; n <= 3; n += 1) await fail();
  await messages.getByText('(3 times)').waitFor();
  expect(await messages.getByRole('listitem').count()).toBe(1);
});

server.test('a stranded conversation says so in the lists and in its head, and can be moved here', async ({ open }) => {
  // Another data home uses the same store, and no process runs there any more.
  const otherHome = { THROUGHLINE_HOME: join(server.home.path, 'gone') };
  const store = `sqlite:${join(server.home.path, 'home', 'throughline.db')}`;
  const sendCommand = ['send', 'drifting', '--store', store, 'The codeword is heron\n/tool write work.txt'];
  expect(await server.home.start(sendCommand, { env: otherHome }).ended).toMatchObject({ code: 0 });
  const page = await open('/');
  const message = `"drifting" runs only at the data home ${otherHome.THROUGHLINE_HOME}, and no process takes it up there.`;
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
  // The seam is rendered again when the turn has ended, so it is opened after that.
  await page.getByText('I have seen these codewords: heron.').waitFor();
  await page.getByRole('button', { name: 'Send' }).waitFor();
  await page.getByRole('button', { name: /Moved here.*without its files/ }).click();
  await page.getByText(`The working files are not here, but at ${otherHome.THROUGHLINE_HOME}`).waitFor();
});

server.test('a task that asks is listed under “Needs you” until it no longer asks', async ({ open }) => {
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

server.test(
  'a conversation that has changed since it was opened is listed as changed, also after a reload, until it is opened',
  async ({ open }) => {
    await runPrompts('Reading', ['/say One.']);
    const page = await open('/');
    await row(page, /Reading/).waitFor();
    expect(await section(page, 'Changed since you looked').count()).toBe(0);
    await runPrompts('Reading', ['/say Two.']);
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
  },
);

server.test('the search marks the words, ignores late responses, and leads to the turn', async ({ open, context }) => {
  await runPrompts('Codewords', ['/say nothing', 'The codeword is <b>zinc-heron</b>', '/say nothing more']);
  const page = await open('/');
  await row(page, /Codewords/).waitFor();
  // The response of the first search arrives after that of the second.
  let release = () => {};
  const released = new Promise<void>((resolve) => (release = resolve));
  await context.route('**/v1/search?*', async (route) => {
    if (new URL(route.request().url()).searchParams.get('q') === 'nothing') await released;
    await route.continue();
  });
  const requested = page.waitForRequest('**/v1/search?q=nothing*');
  const responded = page.waitForResponse('**/v1/search?q=nothing*');
  await page.keyboard.press('/');
  await page.keyboard.type('nothing');
  await requested;
  await page.keyboard.press('Control+A');
  await page.keyboard.type('zinc-heron');
  const results = page.getByRole('list', { name: 'Search results' });
  await results.getByRole('link', { name: /Codewords.*turn 2/ }).waitFor();
  // If the keys come slowly, the page first searches for the beginning of the word.
  await expect.poll(() => results.locator('mark').allTextContents()).toContain('zinc-heron');
  release();
  await (await responded).finished();
  await waitForRender(page);
  expect(await results.getByRole('listitem').count()).toBe(1);
  expect(await results.textContent()).toContain('<b>zinc-heron</b>'); // as text, not as markup
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  const addressOfTurn = /\/c\/[\w-]+\/turn\/2\?find=zinc-heron$/;
  await page.waitForURL(addressOfTurn);
  /** The words that are marked in the turn that the search led to. */
  const markedWords = () => page.evaluate(() => [...(CSS.highlights.get('found-here') ?? [])].map(String));
  await expect.poll(markedWords).toContain('zinc-heron');
  // Enter opens the first result, even if it is pressed before the response arrives.
  await page.goto(server.url);
  await row(page, /Codewords/).waitFor();
  await page.keyboard.press('/');
  await page.keyboard.type('zinc codewo');
  await page.keyboard.press('Enter');
  await page.waitForURL(/\/c\/[\w-]+\/turn\/2\?find=zinc%20codewo$/);
  // Each word is marked separately, as the search has found them.
  await expect.poll(markedWords).toEqual(expect.arrayContaining(['codeword', 'zinc']));
  await page.getByRole('button', { name: 'Close', exact: true }).click();
  await expect.poll(() => page.evaluate(() => CSS.highlights.size)).toBe(0);
  // The same result leads there again.
  await results.getByRole('link', { name: /Codewords.*turn 2/ }).click();
  await expect.poll(markedWords).toContain('zinc');
});

server.test('the search finds conversations by their title, also by a new title', async ({ open }) => {
  const conversation = await runPrompts('Ledger of quarters', ['/say Two plus two.']);
  const page = await open('/');
  await row(page, /Ledger of quarters/).waitFor();
  await page.keyboard.press('/');
  await page.keyboard.type('quarters led');
  const results = page.getByRole('list', { name: 'Search results' });
  const hit = results.getByRole('link', { name: /Ledger of quarters.*title/ });
  await hit.waitFor();
  await expect.poll(() => results.locator('mark').allTextContents()).toEqual(['Ledger', 'quarters']);
  await conversation.rename('Budget of winters');
  await page.keyboard.press('Control+A');
  await page.keyboard.type('winters');
  await results.getByRole('link', { name: /Budget of winters.*title/ }).click();
  await page.waitForURL(/\/c\/[\w-]+$/);
});

server.test(
  'the rail is filtered by agent, state and date, and clearing the filters shows all conversations again',
  async ({ open, context }) => {
    await runPrompts('By another agent', ['Hello'], 'rotating');
    await runPrompts('Failed here', ['/fail agent_failed']);
    const page = await open('/');
    const titles = () =>
      rail(page).getByRole('list', { name: 'Conversations' }).getByRole('listitem').allTextContents();
    const { length: total } = (await server.caller.ok('GET', '/conversations')).conversations;
    expect(total).toBeGreaterThan(2);
    await expect.poll(async () => (await titles()).length).toBe(total);
    await page.getByLabel('Agent', { exact: true }).selectOption('rotating');
    await expect.poll(async () => (await titles()).join()).toMatch(/^By another agent[^,]*$/);
    await page.getByRole('button', { name: 'Clear the filters' }).click();
    await page.getByLabel('State').selectOption('Failed');
    // The old rows stay until the response arrives.
    await expect.poll(async () => (await titles()).join()).toMatch(/^(?!.*By another agent).*Failed here/);
    await page.getByLabel('State').selectOption('Running');
    await page.getByText('No conversation matches the filters.').waitFor();
    await page.getByRole('button', { name: 'Clear the filters' }).click();
    await expect.poll(async () => (await titles()).length).toBe(total);
    // Makes all conversations look two days old.
    await context.route(/\/v1\/conversations\?.*since=/, async (route) => {
      const url = new URL(route.request().url());
      const since = Date.parse(url.searchParams.get('since') ?? '');
      url.searchParams.set('since', new Date(since + 2 * 86_400_000).toISOString());
      await route.continue({ url: url.href });
    });
    await page.getByLabel('Date').selectOption('Last 24 hours');
    await page.getByText('No conversation matches the filters.').waitFor();
    await page.getByLabel('Date').selectOption('Last 7 days');
    await expect.poll(async () => (await titles()).length).toBe(total);
  },
);

server.test(
  'the palette opens conversations and shows command lines, and keyboard shortcuts move in the rail',
  async ({ open }) => {
    await runPrompts('Palette neighbour', ['Hello']);
    await runPrompts('Palette target', ['Hello']);
    const page = await open('/');
    await row(page, /Palette target/).waitFor();
    await page.keyboard.press('Control+K');
    const palette = page.getByRole('dialog', { name: 'Palette' });
    await palette.getByRole('combobox').waitFor();
    await expect
      .poll(() => palette.getByRole('combobox').evaluate((field) => field === document.activeElement))
      .toBe(true);
    // In the palette, letters are text and not shortcuts.
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
    await page.keyboard.press('c'); // in the dialog this is no shortcut for a new conversation
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    expect(page.url()).toBe(before);
    await page.keyboard.press('j');
    await expect.poll(() => page.evaluate(() => document.activeElement?.getAttribute('href'))).toMatch(/^\/c\//);
    await page.keyboard.press('Enter');
    await expect.poll(() => page.url()).not.toBe(before);
  },
);

server.test('the browser notifies once for all tabs, and only when no tab is visible', async ({ open, context }) => {
  await context.addInitScript(() => {
    class FakeNotification {
      static permission = 'granted';
      static requestPermission = async () => 'granted';
      constructor(title: string) {
        const shown = JSON.parse(localStorage.getItem('shown') ?? '[]');
        localStorage.setItem('shown', JSON.stringify([...shown, title]));
      }
    }
    Object.assign(window, { Notification: FakeNotification });
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
  // A question that is open before the list is loaded causes no notification.
  for (const page of pages) await page.getByRole('heading', { name: 'Inbox' }).waitFor();
  await first.getByRole('button', { name: 'Notify me when something needs me' }).click();
  await first.getByRole('button', { name: 'Notifications are on: turn them off' }).waitFor();
  /** Holds matching requests until they are released. */
  const holdRequests = async (pattern: string) => {
    let release = () => {};
    const released = new Promise<void>((resolve) => (release = resolve));
    await context.route(pattern, async (route) => {
      await released;
      await route.continue();
    });
    return { release };
  };
  const askQuestion = async (title: string) => {
    const conversation = (await server.tl()).conversation(title, { title });
    await conversation.send('/ask May I?\n/tool write x.log', { permissions: 'ask' }).accepted;
    const openQuestions = async () =>
      (await (await server.tl()).permissions({ conversation: title, open: true })).length;
    await expect.poll(openQuestions).toBe(1);
    return conversation;
  };
  /** Waits until the tabs have decided about the notification of a question: one has stored its id, and has released the lock. */
  const waitForDecision = async ({ id }: { id: string }) => {
    const [question] = await (await server.tl()).permissions({ conversation: id, open: true });
    const storedIds = () => first.evaluate(() => localStorage.getItem('throughline.notified'));
    await expect.poll(storedIds).toContain(question?.id ?? '');
    await first.evaluate(() => navigator.locks.request('throughline.notified', async () => {}));
  };
  const whileVisible = await askQuestion('while looking');
  await waitForDecision(await whileVisible.get());
  for (const page of pages) await page.evaluate(() => (window as never as { hide(s: string): void }).hide('hidden'));
  // The questions are read before the list has the conversation of the third one.
  const questions = await holdRequests('**/v1/permissions?*');
  const whileHidden = await askQuestion('while away');
  await Promise.all(
    pages.map((page) =>
      row(page, /while away/)
        .getByText('Asks you')
        .waitFor(),
    ),
  );
  const lists = await holdRequests('**/v1/conversations?*');
  const unlisted = await askQuestion('not listed yet');
  questions.release();
  for (const conversation of [whileHidden, unlisted]) await waitForDecision(await conversation.get());
  const shown = () => first.evaluate(() => JSON.parse(localStorage.getItem('shown') ?? '[]') as string[]);
  const expectedOnce = ['while away asks you', 'not listed yet asks you'];
  await expect.poll(shown).toEqual(expectedOnce);
  lists.release();
  for (const conversation of [whileVisible, whileHidden, unlisted]) await conversation.cancel();
  await expect.poll(() => first.title()).toBe('Throughline');
  expect((await shown()).filter((title) => title.includes('asks'))).toEqual(expectedOnce);
});

server.test(
  'on a phone there is one column with a navigation bar, and all controls are at least 44 px high and wide',
  async ({ open }) => {
    await runPrompts('Listed', ['Hello']);
    const page = await open('/');
    await page.getByRole('heading', { name: 'Inbox' }).waitFor();
    expect(await rail(page).isVisible()).toBe(false);
    await page.getByRole('navigation', { name: 'Main' }).getByRole('button', { name: 'Conversations' }).tap();
    const sheet = page.getByRole('dialog', { name: 'Conversations' });
    await sheet.getByRole('link', { name: /Listed/ }).waitFor();
    await axe(page);
    const tooSmall = await sheet.locator('a, button, select, input').evaluateAll((targets) =>
      targets.flatMap((target) => {
        const { height, width } = target.getBoundingClientRect();
        return height < 44 || width < 44 ? [`${target.textContent || target.ariaLabel}: ${width} × ${height}`] : [];
      }),
    );
    expect(tooSmall).toEqual([]);
    expect(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true);
    await sheet.getByRole('link', { name: /Listed/ }).tap();
    await page.waitForURL(/\/c\//);
    await sheet.waitFor({ state: 'detached' });
  },
  PHONE,
);

server.test(
  'of hundreds of conversations only some rows are rendered, and scrolling reaches the last one',
  async ({ open }) => {
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
      .toContain('Cleaning'); // of the first test in this file
    expect(await list.getByRole('listitem').count()).toBeLessThan(60);
  },
);
