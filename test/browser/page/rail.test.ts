// The rail: projects, what needs somebody, search, palette and keys; and the same list on a phone.
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import type { Conversation } from '../../../src/client.ts';
import { axe, PHONE, pageServer, waitForRender } from './harness.ts';

const server = pageServer();

const rail = (page: Page) => page.getByRole('complementary', { name: 'Conversations' });
const row = (page: Page, title: string | RegExp) => rail(page).getByRole('link', { name: title });

/** Runs the prompts one after the other in a conversation with this title. Those with `/fail` must fail. */
async function runPrompts(title: string, prompts: readonly string[], agent = 'scripted') {
  const conversation = (await server.tl()).conversation(title.toLowerCase().replaceAll(' ', '-'), { title, agent });
  for (const prompt of prompts) {
    if (prompt.startsWith('/fail')) await expect(conversation.ask(prompt)).rejects.toThrow();
    else await conversation.ask(prompt);
  }
  return conversation;
}

/** A directory below the home of the server. */
function directory(name: string): string {
  const path = join(server.home.path, 'src', name);
  mkdirSync(path, { recursive: true });
  return path;
}

const lines = (page: Page) => rail(page).getByRole('list', { name: 'Conversations' }).getByRole('listitem');

server.test(
  'conversations are grouped by their directory, what was read is silent, and a project can be folded',
  async ({ open }) => {
    const tl = await server.tl();
    const [harbor, atlas] = [directory('harbor-api'), directory('atlas-web')];
    await tl.conversation('bundle', { title: 'Split the bundle', cwd: atlas }).ask('/say One.');
    await tl.conversation('locks', { title: 'Explain the locks', cwd: harbor }).ask('/say One.');
    await tl
      .conversation('broken', { title: 'Broken', cwd: harbor })
      .ask('/fail agent_failed')
      .catch(() => {});
    await tl.conversation('nowhere', { title: 'Nowhere' }).ask('/say One.');
    const page = await open('/tasks');
    await row(page, /Nowhere/).waitFor();
    const names = async () => (await lines(page).allTextContents()).map((text) => text.replace(/(now|\d+ min)$/, ''));
    await expect
      .poll(async () => (await names()).join())
      .toMatch(/^harbor-api.*,Broken,Explain the locks,atlas-web.*,Split the bundle,Without a directory,Nowhere$/);
    // Everything counts as seen on the first visit.
    expect(await lines(page).getByRole('img').count()).toBe(0);
    await tl.conversation('locks').ask('/say Two.');
    await row(page, /Explain the locks/)
      .getByRole('img', { name: 'New answer' })
      .waitFor();
    const busy = tl.conversation('busy', { title: 'Busy', cwd: atlas });
    await busy.send('/say I look.\n/hang').accepted;
    await row(page, /Busy/).getByRole('img', { name: 'Working' }).waitFor();
    // What needs somebody is listed once, with what it asks, and its project.
    const asking = tl.conversation('asking', { title: 'Asking', cwd: atlas });
    await asking.send('/ask May I?\n/tool write x.log', { permissions: 'ask' }).accepted;
    await row(page, /Asks you.*Asking.*atlas-web · asks: May I\?/).waitFor();
    expect(await row(page, /Asking/).count()).toBe(1);
    expect(await lines(page).first().textContent()).toBe('Needs you');
    await axe(page);
    await rail(page)
      .getByRole('button', { name: /^atlas-web/ })
      .click();
    await expect.poll(() => row(page, /Split the bundle/).count()).toBe(0);
    await page.reload();
    await row(page, /Broken/).waitFor();
    expect(await row(page, /Split the bundle/).count()).toBe(0);
    await rail(page)
      .getByRole('button', { name: /^atlas-web/ })
      .click();
    await row(page, /Split the bundle/).waitFor();
    for (const conversation of [asking, busy]) await conversation.cancel();
    await expect.poll(() => lines(page).first().textContent()).not.toBe('Needs you');
  },
);

server.test(
  'a conversation is pinned and put away by buttons and by keys, also for other tabs, and brought back',
  async ({ open }) => {
    const tl = await server.tl();
    for (const title of ['Older', 'Newer']) {
      await tl.conversation(title, { title, cwd: directory('pins') }).ask('/say One.');
    }
    const [page, other] = [await open('/tasks'), await open('/tasks')];
    const inPins = async (tab: Page) =>
      (await lines(tab).allTextContents())
        .join()
        .match(/(Older|Newer)/g)
        ?.join();
    await expect.poll(() => inPins(page)).toBe('Newer,Older');
    const line = (title: string) => lines(page).filter({ hasText: title });
    await line('Older').hover();
    await line('Older').getByRole('button', { name: 'Pin', exact: true }).click();
    for (const tab of [page, other]) await expect.poll(() => inPins(tab)).toBe('Older,Newer');
    await row(page, /Older.*Pinned/).focus();
    await page.keyboard.press('p');
    await expect.poll(() => inPins(page)).toBe('Newer,Older');
    await row(page, /Older/).focus();
    await page.keyboard.press('e');
    await page.getByText('“Older” is put away. Its next prompt brings it back.').waitFor();
    for (const tab of [page, other]) await expect.poll(() => inPins(tab)).toBe('Newer');
    await page.getByRole('link', { name: '1 put away' }).click();
    const putAway = page.getByRole('list', { name: 'Conversations that were put away' });
    await putAway.getByRole('link', { name: /Older/ }).waitFor();
    await axe(page);
    await putAway.getByRole('button', { name: 'Bring back' }).click();
    await page.getByText('Nothing is put away.').waitFor();
    for (const tab of [page, other]) await expect.poll(() => inPins(tab)).toBe('Newer,Older');
    // By the menu of the conversation; a new prompt undoes it.
    await row(page, /Older/).click();
    await page.getByRole('button', { name: 'Conversation actions' }).click();
    await page.getByRole('menuitem', { name: 'Put away' }).click();
    await expect.poll(() => inPins(page)).toBe('Newer');
    await tl.conversation('Older').ask('/say Two.');
    await expect.poll(() => inPins(page)).toBe('Older,Newer');
  },
);

server.test('a fork is told from its twin in the rail and in the header, and leads to it', async ({ open }) => {
  const tl = await server.tl();
  const original = tl.conversation('twin', { title: 'Twin' });
  for (const words of ['/say One.', '/say Two.']) await original.ask(words);
  const copy = await (await original.fork({ turn: 1 })).get();
  const page = await open(`/c/${copy.id}`);
  await row(page, /Twin.*branched after turn 1/).waitFor();
  await expect.poll(() => row(page, /Twin/).count()).toBe(2);
  await expect.poll(() => page.title()).toBe('Twin, branched after turn 1 · Throughline');
  await page.getByRole('main').getByRole('link', { name: 'branched after turn 1' }).click();
  await page.waitForURL(`**/c/${(await original.get()).id}/turn/1`);
  // With a title of its own, nothing has to be added in the rail.
  await tl.engine.rename(copy.id, 'Another way');
  await row(page, /Another way/).waitFor();
  expect(await row(page, /branched/).count()).toBe(0);
});

server.test('a conversation leads to its task, and the task to its directory and back', async ({ open }) => {
  const { tasks } = await server.tl();
  const cwd = directory('harbor-api');
  const [task] = await tasks.run({ goal: '/say Done.', name: 'polish', agent: 'scripted', cwd });
  const page = await open(`/c/${task?.progress.conversationId}`);
  await page.getByRole('main').getByRole('link', { name: 'Task', exact: true }).click();
  await page.waitForURL(`**/tasks/${task?.id}`);
  await page.getByText(cwd, { exact: true }).waitFor();
  await page.getByRole('link', { name: 'Open conversation' }).click();
  await page.getByRole('main').getByText('harbor-api').waitFor();
});

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
    // The closed dialog has given the focus to the composer, where J would be text.
    await expect.poll(() => page.evaluate(() => document.activeElement?.id)).toBe('composer');
    await page.evaluate(() => (document.activeElement as HTMLElement | null)?.blur());
    await page.keyboard.press('j');
    await expect.poll(() => page.evaluate(() => document.activeElement?.getAttribute('href'))).toMatch(/^\/c\//);
    await page.keyboard.press('Enter');
    await expect.poll(() => page.url()).not.toBe(before);
  },
);

server.test(
  'a phone has three tabs; a list opens without the screen keyboard; a conversation has no bar and leads back to its list',
  async ({ open }) => {
    await runPrompts('Listed', ['/say Hello there.']);
    const page = await open('/');
    const tabs = page.getByRole('navigation', { name: 'Main' });
    await page.getByRole('heading', { name: 'For you' }).waitFor();
    expect(await tabs.getByRole('link').allTextContents()).toEqual(['For you', 'All', 'Tasks']);
    expect(await rail(page).count()).toBe(0);
    await tabs.getByRole('link', { name: 'All' }).tap();
    await page.getByRole('heading', { name: 'All' }).waitFor();
    const list = page.getByRole('list', { name: 'Conversations' });
    await list.getByRole('link', { name: /Listed/ }).waitFor();
    const isTyping = () => page.evaluate(() => document.activeElement?.matches('input, textarea') === true);
    expect(await isTyping()).toBe(false);
    await axe(page);
    const tooSmall = await page.locator('a, button, select, input').evaluateAll((targets) =>
      targets.flatMap((target) => {
        const { height, width } = target.getBoundingClientRect();
        const isShown = target.checkVisibility({ opacityProperty: true });
        return isShown && (height < 44 || width < 44) ? [`${target.textContent}: ${width} × ${height}`] : [];
      }),
    );
    expect(tooSmall).toEqual([]);
    expect(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true);
    // Above the screen keyboard there is no bar.
    await page.getByRole('button', { name: 'Search', exact: true }).tap();
    await page.getByRole('textbox', { name: 'Search all conversations' }).waitFor();
    expect([await isTyping(), await tabs.isVisible()]).toEqual([true, false]);
    await page.getByRole('button', { name: 'End the search' }).tap();
    await expect.poll(() => tabs.isVisible()).toBe(true);
    await list.getByRole('link', { name: /Listed/ }).tap();
    await page.getByText('Hello there.', { exact: true }).waitFor();
    expect(await tabs.count()).toBe(0);
    await page.getByRole('link', { name: 'Back to the list' }).tap();
    await page.getByRole('heading', { name: 'All' }).waitFor();
  },
  PHONE,
);

server.test(
  'a sheet closes when a finger pulls it down, and not when the finger pulls little or scrolls',
  async ({ open, context }) => {
    const conversation = await runPrompts('Pulled', ['/say One.']);
    const page = await open(`/c/${(await conversation.get()).id}`);
    await page.getByRole('button', { name: 'Conversation actions' }).tap();
    await page.getByRole('menuitem', { name: 'Show the panel' }).tap();
    const sheet = page.getByRole('dialog', { name: 'Panel' });
    const head = sheet.getByRole('heading', { name: 'Panel' });
    await head.waitFor();
    const session = await context.newCDPSession(page);
    const pull = async (px: number) => {
      const { x = 0, y = 0 } = (await head.boundingBox()) ?? {};
      const at = (dy: number) => [{ x: x + 10, y: y + 5 + dy }];
      const touch = (type: 'touchStart' | 'touchMove' | 'touchEnd', touchPoints: { x: number; y: number }[]) =>
        session.send('Input.dispatchTouchEvent', { type, touchPoints });
      await touch('touchStart', at(0));
      for (const part of [0.3, 0.6, 1]) await touch('touchMove', at(px * part));
      await touch('touchEnd', []);
    };
    await pull(50);
    await expect.poll(() => sheet.evaluate((element) => element.style.translate)).toBe('');
    expect(await sheet.count()).toBe(1);
    await pull(160);
    await sheet.waitFor({ state: 'detached' });
  },
  PHONE,
);

server.test(
  'with a zoom of 400 % nothing is fixed, and the timeline can fill the window',
  async ({ open }) => {
    const conversation = await runPrompts('Zoomed', ['/say One.', '/say Two.']);
    const page = await open(`/c/${(await conversation.get()).id}`);
    await page.getByText('Two.', { exact: true }).waitFor();
    const log = page.getByRole('log');
    await log.evaluate((element) => element.scrollIntoView({ block: 'start' }));
    const shown = await log.evaluate((element) => {
      const { top, bottom } = element.getBoundingClientRect();
      return Math.min(bottom, innerHeight) - Math.max(top, 0);
    });
    expect(shown).toBeGreaterThan(200);
    const fixed = await page.locator('main *').evaluateAll((all) =>
      all.flatMap((element) => {
        const { position } = getComputedStyle(element);
        return (position === 'fixed' || position === 'sticky') && element.checkVisibility() ? [element.className] : [];
      }),
    );
    expect(fixed).toEqual([]);
    const field = page.getByRole('textbox', { name: 'Prompt', exact: true });
    await field.focus();
    const { y = -1, height = 0 } = (await field.boundingBox()) ?? {};
    expect([y >= 0, y + height <= 226]).toEqual([true, true]);
  },
  { viewport: { width: 360, height: 225 } },
);

server.test('the font size of the browser counts, and forced colours keep the glyphs', async ({ open }) => {
  const conversation = (await server.tl()).conversation('large', { title: 'Large' });
  await conversation.send('/hang').accepted;
  const page = await open('/tasks');
  await row(page, /Large/).waitFor();
  const heightOf = async () => (await row(page, /Large/).boundingBox())?.height ?? 0;
  const before = await heightOf();
  await page.evaluate(() => document.documentElement.style.setProperty('font-size', '200%'));
  await rail(page).getByRole('link', { name: 'For you' }).click();
  await expect.poll(heightOf).toBeGreaterThan(before * 1.6);
  await page.emulateMedia({ forcedColors: 'active' });
  const glyph = row(page, /Large/).getByRole('img', { name: 'Working' });
  const stroke = await glyph
    .locator('circle')
    .first()
    .evaluate((circle) => getComputedStyle(circle).stroke);
  const text = await page.evaluate(() => {
    const probe = document.body.appendChild(document.createElement('i'));
    probe.style.color = 'CanvasText';
    return getComputedStyle(probe).color;
  });
  expect(stroke).toBe(text);
  await conversation.cancel();
});

server.test(
  'of hundreds of conversations only some rows are rendered, and scrolling reaches the last one',
  async ({ open }) => {
    const tl = await server.tl();
    await tl.conversation('first-of-many', { title: 'First of many', cwd: directory('many') }).ensure();
    for (let n = 0; n < 300; n += 50) {
      await Promise.all(
        Array.from({ length: 50 }, (_, index) =>
          tl.engine.ensure({ key: `many-${n + index}`, cwd: directory('many') }),
        ),
      );
    }
    await tl.engine.ensure({ key: 'the newest', cwd: directory('many') });
    // The last line is the oldest without a directory, or else of this one.
    const listed: Conversation[] = [];
    for (let page = await tl.conversations({ limit: 200 }); page.length > 0; ) {
      listed.push(...page);
      page = await tl.conversations({ limit: 200, before: page.at(-1) as Conversation });
    }
    const last = listed.findLast(({ cwd }) => cwd === null) ?? listed.at(-1);
    const page = await open('/tasks');
    await row(page, /the newest/).waitFor();
    const list = rail(page).getByRole('list', { name: 'Conversations' });
    expect(await list.getByRole('listitem').count()).toBeLessThan(60);
    const box = list.locator('..');
    await expect
      .poll(async () => {
        await box.evaluate((element) => element.scrollTo(0, element.scrollHeight));
        return list.getByRole('listitem').last().textContent();
      })
      .toContain(last?.title || last?.key);
    expect(await list.getByRole('listitem').count()).toBeLessThan(60);
  },
);
