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
  await optionButton(one, 'Allow once').click();
  await one.getByText(`Changing ${target} was allowed once by you`).waitFor();
  await other.getByText(`Changing ${target} was allowed once by you`).waitFor();
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
    await enabledButton(page, 'Refuse').waitFor();
    const [question] = await openQuestions(id);
    // Another client answers while the answer of this page is under way.
    await page.route('**/v1/permissions/*', async (route) => {
      if (route.request().method() !== 'POST') return route.continue();
      const allowOption = question?.options.find(({ kind }) => kind === 'allow_once')?.optionId ?? '';
      await (await server.tl()).answer(question?.id ?? '', allowOption);
      await route.continue();
    });
    await optionButton(page, 'Refuse').click();
    await page.getByText(/was allowed once by .*Your answer came later and does not count/).waitFor();
  },
);

server.test(
  'a question is disabled at first, and is not answered by a held key, by a click where it appears, or by typing',
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
    // The key that sends the prompt is still held down when the card appears and takes the focus.
    await page.keyboard.down('Enter');
    await cards(page).waitFor();
    await enabledButton(page, 'Allow').waitFor();
    expect((await openQuestions(id)).length, 'disabled in the first half second').toBe(1);
    await optionButton(page, 'Allow').focus();
    for (let repeat = 0; repeat < 5; repeat += 1) await page.keyboard.down('Enter');
    await waitForRender(page);
    expect((await openQuestions(id)).length, 'a held key').toBe(1);
    await page.keyboard.up('Enter');
    // Somebody who does not look at the screen begins to write.
    await page.keyboard.type('and another thing');
    await page.waitForTimeout(600); // longer than a letter waits for the next key
    expect((await openQuestions(id)).length, 'typing').toBe(1);
    expect(sentAnswers).toEqual([]);
    await optionButton(page, 'Allow').press('Enter');
    await expect.poll(async () => (await conversation.turns())[0]?.state).toBe('completed');
    expect(sentAnswers).toHaveLength(1);
  },
);

server.test('a new question takes the focus on Refuse, never on Allow, and not from a draft', async ({ open }) => {
  const ask = async (draft: string) => {
    const conversation = (await server.tl()).conversation(randomUUID());
    const { id } = await conversation.ensure();
    const page = await open(`/c/${id}`);
    await field(page).fill(draft);
    await conversation.send('/ask May I?\n/say Done.', { permissions: 'ask' }).accepted;
    await enabledButton(page, 'Allow').waitFor();
    return { page, conversation };
  };
  const { page: busy } = await ask('half a prompt');
  expect(await busy.evaluate(() => document.activeElement?.id)).toBe('composer');
  await busy.keyboard.type('a');
  expect(await field(busy).inputValue()).toBe('half a prompta');
  const { page, conversation } = await ask('');
  expect(await page.evaluate(() => document.activeElement?.textContent)).toMatch(/^Refuse/);
  await page.keyboard.press('a');
  await page.getByText('was allowed once by you').waitFor();
  await expect.poll(async () => (await conversation.turns())[0]?.state).toBe('completed');
});

server.test('the letters answer only while the question has the focus', async ({ open }) => {
  const { id, path } = await newQuestion('/ask May I?', '/say Done.');
  const page = await open(path);
  await enabledButton(page, 'Refuse').waitFor();
  await page.getByRole('log', { name: 'Turns' }).focus();
  await page.keyboard.press('a');
  await page.waitForTimeout(600); // longer than a letter waits for the next key
  expect(await openQuestions(id)).toHaveLength(1);
  await optionButton(page, 'Allow once').focus();
  await page.keyboard.press('r');
  await page.getByText('was refused by you').waitFor();
});

server.test('a decision stays in its turn, also after a reload', async ({ open }) => {
  const { conversation, path } = await newQuestion('/ask May I write?', '/tool edit a.txt', '/say Done.');
  const page = await open(path);
  await enabledButton(page, 'Allow').waitFor();
  await optionButton(page, 'Allow once').click();
  await page.getByText('Done.', { exact: true }).waitFor();
  await conversation.ask('/ask And this?\n/say Nobody was there.', { permissions: 'deny' });
  const first = page.getByRole('article', { name: 'Turn 1' });
  const second = page.getByRole('article', { name: 'Turn 2' });
  for (const _ of ['live', 'after a reload']) {
    await first.getByText(/Changing .*a\.txt was allowed once by you, \d/).waitFor();
    await second.getByText(/was not allowed: nobody can answer here/).waitFor();
    expect(await first.getByText('was not allowed').count()).toBe(0);
    await page.reload();
  }
  await axe(page);
});

/** Shows the open question of a conversation with other contents, which the scripted agent cannot ask. */
async function askInstead(page: Page, conversation: string, ...others: readonly object[]) {
  await page.route(/\/v1\/permissions\?/, async (route) => {
    if (!route.request().url().includes('open=true')) return route.continue();
    const [one] = await openQuestions(conversation);
    const permissions = others.map((other, index) => ({ ...one, ...(index > 0 && { id: randomUUID() }), ...other }));
    await route.fulfill({ headers: { [INTERFACE_HEADER]: INTERFACE }, json: { permissions } });
  });
}

server.test(
  'a command is shown whole at any width, and with characters that hide something it can be allowed only once',
  async ({ open }) => {
    const { id, path } = await newQuestion('/ask May I?', '/hang');
    const command = `echo ${'long'.repeat(400)} # \u202e; rm -rf ~`;
    const options = [
      { optionId: 'always', name: 'Always allow echo', kind: 'allow_always' },
      { optionId: 'allow', name: 'Yes', kind: 'allow_once' },
      { optionId: 'reject', name: 'No', kind: 'reject_once' },
    ];
    const asked = { options, toolCall: { title: 'Bash', kind: 'execute', rawInput: { command } } };
    const plain = { ...asked, toolCall: { title: 'Bash', kind: 'execute', rawInput: { command: 'ls' } } };
    const page = await open('/');
    await askInstead(page, id, asked, plain);
    await page.setViewportSize({ width: 390, height: 844 });
    await page.goto(server.url + path);
    const [first, second] = [cards(page).first(), cards(page).nth(1)];
    await first.getByRole('heading', { name: 'May scripted run this command?' }).waitFor();
    await first.getByText('1 of 2').waitFor();
    await first.getByText(/A character here is not what it looks like: U\+202E/).waitFor();
    await first.getByText('With marked characters only once').waitFor();
    expect(await first.getByRole('button').allInnerTexts()).toEqual(['Refuse\nR', 'Allow once\nA']);
    expect(await second.getByRole('button').allInnerTexts()).toEqual([
      'Refuse\nR',
      'Always allow echo',
      'Allow once\nA',
    ]);
    const box = first.getByRole('region', { name: 'Command' });
    expect(await box.evaluate((e) => [e.scrollWidth - e.clientWidth, e.scrollHeight - e.clientHeight])).toEqual([0, 0]);
    await axe(page);
  },
);

server.test('a question that was withdrawn says why', async ({ open }) => {
  const { conversation, path } = await newQuestion('/ask May I?', '/hang');
  const page = await open(path);
  await cards(page).waitFor();
  await conversation.cancel();
  await page.getByText(/was not answered: /).waitFor();
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
  await page.getByText('was allowed once by you').waitFor();
});

server.test('several questions are all shown, and answering one leaves the others open', async ({ open }) => {
  const { id, path } = await newQuestion('/ask May I?', '/hang');
  const page = await open('/');
  // Some agents ask several questions at once. The scripted agent cannot, so the test adds the second one to the response.
  await page.route(/\/v1\/permissions\?/, async (route) => {
    if (!route.request().url().includes('open=true')) return route.continue();
    const permissions = await openQuestions(id);
    const [one] = await (await server.tl()).permissions({ conversation: id });
    const second = { id: randomUUID(), title: 'And this?', state: 'open', answeredBy: null, optionId: null };
    const json = { permissions: [...permissions, { ...one, ...second }] };
    await route.fulfill({ headers: { [INTERFACE_HEADER]: INTERFACE }, json });
  });
  await page.goto(server.url + path);
  await cards(page).nth(1).waitFor();
  await cards(page).first().getByText('1 of 2').waitFor();
  await cards(page).nth(1).getByText('And this?').waitFor();
  await cards(page).first().locator('button[aria-disabled=false]', { hasText: 'Allow' }).click();
  await page.getByText('was allowed once by you').waitFor();
  await expect.poll(() => cards(page).count()).toBe(1);
  await cards(page).getByText('And this?').waitFor();
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
