// Questions of agents on the page: all are shown, none is answered by accident, and everybody sees who answered.
import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import { axe, pageServer } from './harness.ts';

const server = pageServer();

const field = (page: Page) => page.getByRole('textbox', { name: 'Prompt' });
const cards = (page: Page) => page.getByRole('region', { name: /^Permission: / });
const option = (page: Page, name: string) => cards(page).getByRole('button', { name });
/** For half a second a card does nothing. */
const ready = (page: Page, name: string) => page.locator('button[aria-disabled=false]', { hasText: name });

async function openQuestions(conversation: string) {
  return (await server.tl()).permissions({ conversation, open: true });
}

async function asking(...lines: string[]) {
  const talk = (await server.tl()).conversation(randomUUID());
  await talk.send(lines.join('\n'), { permissions: 'ask' }).accepted;
  const { id } = await talk.get();
  await expect.poll(() => openQuestions(id)).toHaveLength(1);
  return { talk, id, path: `/c/${id}` };
}

server.test('a question is answered in one tab, and the other says who answered', async ({ open }) => {
  const target = join(server.home.path, `written-${randomUUID()}`);
  const { talk, path } = await asking('/ask May I write?', `/tool edit ${target}`, '/say Done.');
  const [one, other] = [await open(path), await open(path)];
  await cards(other).getByText(target).waitFor();
  await ready(one, 'Allow').waitFor();
  await axe(one);
  await option(one, 'Allow').click();
  await one.getByText(/Answered “Allow/).waitFor();
  await other.getByText(/May I write\? Answered “Allow.*”, by /).waitFor();
  await expect.poll(() => cards(other).count()).toBe(0);
  await expect.poll(async () => (await talk.turns())[0]?.state).toBe('completed');
  expect(existsSync(target)).toBe(true);
});

server.test('two who answer at once: the first wins, and the second is told so', async ({ open, allow }) => {
  allow(/status of 409/);
  const { id, path } = await asking('/ask May I?', '/say Done.');
  const page = await open(path);
  await ready(page, 'Reject').waitFor();
  const [question] = await openQuestions(id);
  // Somebody else answers while the answer of this page is on its way.
  await page.route('**/v1/permissions/*', async (route) => {
    if (route.request().method() !== 'POST') return route.continue();
    const yes = question?.options.find(({ kind }) => kind === 'allow_once')?.optionId ?? '';
    await (await server.tl()).answer(question?.id ?? '', yes);
    await route.continue();
  });
  await option(page, 'Reject').click();
  await page.getByText(/May I\? Answered “Allow.*”, by /).waitFor();
});

server.test('it never takes the focus, is inert at first, and a held key approves nothing', async ({ open }) => {
  const talk = (await server.tl()).conversation(randomUUID());
  const { id } = await talk.ensure();
  const page = await open(`/c/${id}`);
  await field(page).fill('/ask May I?\n/say Done.');
  // Somebody clicks where the card appears, in the moment in which it does.
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
  // Held down when the card appears, as by somebody who sends.
  await page.keyboard.down('Enter');
  await cards(page).waitFor();
  expect(await page.evaluate(() => document.activeElement?.id)).toBe('composer');
  await ready(page, 'Allow').waitFor();
  expect((await openQuestions(id)).length, 'inert in the first half second').toBe(1);
  await option(page, 'Allow').focus();
  for (let repeat = 0; repeat < 5; repeat += 1) await page.keyboard.down('Enter');
  expect((await openQuestions(id)).length, 'a held key').toBe(1);
  await page.keyboard.up('Enter');
  await page.keyboard.press('Enter');
  await expect.poll(async () => (await talk.turns())[0]?.state).toBe('completed');
});

server.test('a question that is over says why', async ({ open }) => {
  const { talk, path } = await asking('/ask May I?', '/hang');
  const page = await open(path);
  await cards(page).waitFor();
  await talk.cancel();
  await page.getByText(/May I\? Withdrawn: /).waitFor();
});

server.test('an answer that fails is told, and the question stays', async ({ open, allow }) => {
  allow(/status of 422/);
  const { path } = await asking('/ask May I?');
  const page = await open(path);
  await ready(page, 'Allow').waitFor();
  const problem = { type: 'about:blank', title: 'No', status: 422, code: 'refused', detail: 'Not now.' };
  await page.route(
    '**/v1/permissions/*',
    (route) =>
      route.fulfill({
        status: 422,
        headers: { 'throughline-interface': '3' },
        contentType: 'application/problem+json',
        json: problem,
      }),
    { times: 1 },
  );
  await option(page, 'Allow').click();
  await cards(page).getByText('Not now.').waitFor();
  await ready(page, 'Allow').click();
  await page.getByText(/Answered “Allow/).waitFor();
});

server.test('several questions are all shown, and answering one leaves the others as they are', async ({ open }) => {
  const { id, path } = await asking('/ask May I?', '/hang');
  const page = await open('/');
  // Agents that work in parallel ask in parallel; the scripted one does not.
  const second = { id: randomUUID(), title: 'And this?' };
  await page.route(/\/v1\/permissions\?/, async (route) => {
    const permissions = await openQuestions(id);
    const [one] = await (await server.tl()).permissions({ conversation: id });
    const json = { permissions: [...permissions, { ...one, ...second, state: 'open', answeredBy: null }] };
    await route.fulfill({ headers: { 'throughline-interface': '3' }, json });
  });
  await page.goto(server.url + path);
  await cards(page).nth(1).waitFor();
  expect(await cards(page).getByRole('heading').allTextContents()).toEqual(['May I?', 'And this?']);
  await cards(page).first().locator('button[aria-disabled=false]', { hasText: 'Allow' }).click();
  await page.getByText(/May I\? Answered “Allow/).waitFor();
  await expect.poll(() => cards(page).getByRole('heading').allTextContents()).toEqual(['And this?']);
});

server.test('who may not approve can read a question, and not answer it', async ({ open, context }) => {
  const { path } = await asking('/ask May I?', '/hang');
  const { link } = await server.caller.ok('POST', '/links', { scopes: ['read'] });
  await context.clearCookies();
  await context.request.get(link, { maxRedirects: 0 });
  const page = await open(path);
  await page.getByText('You may not answer this question: that needs the scope approve.').waitFor();
  await page.getByText('You have read-only access.').waitFor();
  expect(await page.getByRole('button', { name: 'Allow' }).count()).toBe(0);
});
