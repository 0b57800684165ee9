// Questions of agents on the page: all are shown, none is answered by accident, and every tab shows who answered.
import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import { INTERFACE, INTERFACE_HEADER } from '../../../src/wire/operations/operation.ts';
import { axe, pageServer, waitForRender } from './harness.ts';

const server = pageServer();

const field = (page: Page) => page.getByRole('textbox', { name: 'Prompt' });
const cards = (page: Page) => page.getByRole('region', { name: /^Permission: / });
const optionButton = (page: Page, name: string) => cards(page).getByRole('button', { name });
/** A button of a card that can be used: the first half second, all buttons of a card are disabled. */
const enabledButton = (page: Page, name: string) => page.locator('button[aria-disabled=false]', { hasText: name });

async function openQuestions(conversation: string) {
  return (await server.tl()).permissions({ conversation, open: true });
}

/** A conversation whose agent asks a question. */
async function newQuestion(...lines: string[]) {
  const conversation = (await server.tl()).conversation(randomUUID());
  await conversation.send(lines.join('\n'), { permissions: 'ask' }).accepted;
  const { id } = await conversation.get();
  await expect.poll(() => openQuestions(id)).toHaveLength(1);
  return { conversation, id, path: `/c/${id}` };
}

server.test('a question is answered in one tab, and the other says who answered', async ({ open }) => {
  const target = join(server.home.path, `written-${randomUUID()}`);
  const { conversation, path } = await newQuestion('/ask May I write?', `/tool edit ${target}`, '/say Done.');
  const [one, other] = [await open(path), await open(path)];
  await cards(other).getByText(target).waitFor();
  await enabledButton(one, 'Allow').waitFor();
  await axe(one);
  await optionButton(one, 'Allow').click();
  await one.getByText(/Answered “Allow/).waitFor();
  await other.getByText(/May I write\? Answered “Allow.*”, by /).waitFor();
  await expect.poll(() => cards(other).count()).toBe(0);
  await expect.poll(async () => (await conversation.turns())[0]?.state).toBe('completed');
  expect(existsSync(target)).toBe(true);
});

server.test(
  'when two people answer at the same time, the first answer counts, and the second page shows it',
  async ({ open, allow }) => {
    allow(/status of 409/);
    const { id, path } = await newQuestion('/ask May I?', '/say Done.');
    const page = await open(path);
    await enabledButton(page, 'Reject').waitFor();
    const [question] = await openQuestions(id);
    // Another client answers while the answer of this page is under way.
    await page.route('**/v1/permissions/*', async (route) => {
      if (route.request().method() !== 'POST') return route.continue();
      const allowOption = question?.options.find(({ kind }) => kind === 'allow_once')?.optionId ?? '';
      await (await server.tl()).answer(question?.id ?? '', allowOption);
      await route.continue();
    });
    await optionButton(page, 'Reject').click();
    await page.getByText(/May I\? Answered “Allow.*”, by /).waitFor();
  },
);

server.test(
  'a question never takes the focus, is disabled at first, and is not answered by a held key',
  async ({ open }) => {
    const conversation = (await server.tl()).conversation(randomUUID());
    const { id } = await conversation.ensure();
    const page = await open(`/c/${id}`);
    const sentAnswers: string[] = [];
    page.on('request', (request) => {
      if (request.method() === 'POST' && request.url().includes('/v1/permissions/')) sentAnswers.push(request.url());
    });
    await field(page).fill('/ask May I?\n/say Done.');
    // Clicks the button in the moment in which the card appears.
    await page.evaluate(() => {
      new MutationObserver((_changes, observer) => {
        const all = document.querySelectorAll<HTMLElement>('section[aria-label^="Permission:"] button');
        const allow = [...all].find((button) => button.textContent?.includes('Allow'));
        if (allow === undefined) return;
        observer.disconnect();
        allow.dispatchEvent(new PointerEvent('pointerdown', { bubbles: true }));
        allow.click();
      }).observe(document, { subtree: true, childList: true });
    });
    // The key that sends the prompt is still held down when the card appears.
    await page.keyboard.down('Enter');
    await cards(page).waitFor();
    expect(await page.evaluate(() => document.activeElement?.id)).toBe('composer');
    await enabledButton(page, 'Allow').waitFor();
    expect((await openQuestions(id)).length, 'disabled in the first half second').toBe(1);
    await optionButton(page, 'Allow').focus();
    for (let repeat = 0; repeat < 5; repeat += 1) await page.keyboard.down('Enter');
    await waitForRender(page);
    expect((await openQuestions(id)).length, 'a held key').toBe(1);
    expect(sentAnswers).toEqual([]);
    await page.keyboard.up('Enter');
    await page.keyboard.press('Enter');
    await expect.poll(async () => (await conversation.turns())[0]?.state).toBe('completed');
    expect(sentAnswers).toHaveLength(1);
  },
);

server.test('a question that was withdrawn says why', async ({ open }) => {
  const { conversation, path } = await newQuestion('/ask May I?', '/hang');
  const page = await open(path);
  await cards(page).waitFor();
  await conversation.cancel();
  await page.getByText(/May I\? Withdrawn: /).waitFor();
});

server.test('an answer that fails shows the error, and the question stays open', async ({ open, allow }) => {
  allow(/status of 422/);
  const { path } = await newQuestion('/ask May I?');
  const page = await open(path);
  await enabledButton(page, 'Allow').waitFor();
  const problem = { type: 'about:blank', title: 'No', status: 422, code: 'refused', detail: 'Not now.' };
  await page.route(
    '**/v1/permissions/*',
    (route) =>
      route.fulfill({
        status: 422,
        headers: { [INTERFACE_HEADER]: INTERFACE },
        contentType: 'application/problem+json',
        json: problem,
      }),
    { times: 1 },
  );
  await optionButton(page, 'Allow').click();
  await cards(page).getByText('Not now.').waitFor();
  await enabledButton(page, 'Allow').click();
  await page.getByText(/Answered “Allow/).waitFor();
});

server.test('several questions are all shown, and answering one leaves the others open', async ({ open }) => {
  const { id, path } = await newQuestion('/ask May I?', '/hang');
  const page = await open('/');
  // Some agents ask several questions at once. The scripted agent cannot, so the test adds the second one to the response.
  const second = { id: randomUUID(), title: 'And this?' };
  await page.route(/\/v1\/permissions\?/, async (route) => {
    const permissions = await openQuestions(id);
    const [one] = await (await server.tl()).permissions({ conversation: id });
    const json = { permissions: [...permissions, { ...one, ...second, state: 'open', answeredBy: null }] };
    await route.fulfill({ headers: { [INTERFACE_HEADER]: INTERFACE }, json });
  });
  await page.goto(server.url + path);
  await cards(page).nth(1).waitFor();
  expect(await cards(page).getByRole('heading').allTextContents()).toEqual(['May I?', 'And this?']);
  await cards(page).first().locator('button[aria-disabled=false]', { hasText: 'Allow' }).click();
  await page.getByText(/May I\? Answered “Allow/).waitFor();
  await expect.poll(() => cards(page).getByRole('heading').allTextContents()).toEqual(['And this?']);
});

server.test('without the scope approve, a question can be read but not answered', async ({ open, context }) => {
  const { path } = await newQuestion('/ask May I?', '/hang');
  const { link } = await server.caller.ok('POST', '/links', { scopes: ['read'] });
  await context.clearCookies();
  await context.request.get(link, { maxRedirects: 0 });
  const page = await open(path);
  await page.getByText('You may not answer this question: that needs the scope approve.').waitFor();
  await page.getByText('You have read-only access.').waitFor();
  expect(await page.getByRole('button', { name: 'Allow' }).count()).toBe(0);
});
