// Turns that were not answered: what happened, what is kept, and the ways on, each by a button.
import { randomUUID } from 'node:crypto';
import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import { axe, pageServer } from './harness.ts';

const server = pageServer();

const box = (page: Page, n = 1) => page.getByRole('region', { name: `Turn ${n} was not answered` });
const field = (page: Page) => page.getByRole('textbox', { name: 'Prompt' });

/** A conversation whose turn has ended. */
async function ended(prompt: string, agent = 'scripted') {
  const conversation = (await server.tl()).conversation(randomUUID());
  await conversation.ask(prompt, { agent }).catch(() => {});
  const { id } = await conversation.get();
  return { conversation, id, path: `/c/${id}` };
}

server.test(
  'an expired sign-in of the agent says so, leads to the sign-in, and the prompt can be sent again',
  async ({ open }) => {
    const { conversation, path } = await ended('/fail signed_out');
    const page = await open(path);
    await box(page).getByText('Not answered: scripted’s sign-in has expired or is missing.').waitFor();
    await box(page).getByText('Your prompt is kept.').waitFor();
    await axe(page);
    await box(page).getByRole('button', { name: 'Sign in again' }).click();
    const way = box(page).getByRole('region', { name: 'Sign in to scripted' });
    // The scripted agent reports no sign-in, so only the general command can help. It is printed as it runs here.
    await way.getByText(/^(npx )?throughline .*agents$/).waitFor();
    await way.getByRole('button', { name: 'Check again' }).click();
    await box(page).getByRole('button', { name: 'Send again' }).click();
    await box(page, 2).getByRole('button', { name: 'Sign in again' }).waitFor();
    expect((await conversation.turns())[1]?.retryOf).toBe((await conversation.turns())[0]?.id);
    // The conversation went on: the buttons are gone, what happened stays.
    await expect.poll(() => box(page).getByRole('button').allInnerTexts()).toEqual(['Details']);
  },
);

server.test('a failed prompt can be edited, or sent with another agent', async ({ open }) => {
  const { conversation, path } = await ended('/fail agent_failed\n/say No.');
  const page = await open(path);
  await box(page).getByText('Not answered: scripted reported an error.').waitFor();
  await box(page).getByRole('button', { name: 'Details' }).click();
  await box(page).getByText('agent_failed', { exact: true }).waitFor();
  await box(page).getByRole('button', { name: 'Edit the prompt' }).click();
  expect(await field(page).inputValue()).toBe('/fail agent_failed\n/say No.');
  expect(await page.evaluate(() => document.activeElement?.id)).toBe('composer');
  await box(page).getByRole('button', { name: 'Send with another agent' }).click();
  await page.getByRole('menuitem').first().click();
  await expect.poll(async () => (await conversation.turns()).length).toBe(2);
  expect((await conversation.turns())[1]?.agent).not.toBe('scripted');
});

server.test('a turn whose restore failed can be restored in another way', async ({ open }) => {
  const conversation = (await server.tl()).conversation(randomUUID());
  await conversation.ask('/say First.', { agent: 'forgetful' });
  await conversation.kill();
  await conversation.ask('/say Second.', { agent: 'forgetful', restore: { rung: 'resume' } }).catch(() => {});
  const { id } = await conversation.get();
  const page = await open(`/c/${id}`);
  await box(page, 2).getByText('Not sent: no session could be given the history.').waitFor();
  await box(page, 2).getByText('Your prompt is kept; it was not sent.').waitFor();
  await box(page, 2).getByRole('button', { name: 'Restore with…' }).click();
  await page.getByRole('menuitem', { name: 'A new session without the history' }).click();
  await page.getByText('Second.', { exact: true }).waitFor();
});

server.test('a stopped turn is one quiet line with who stopped it', async ({ open }) => {
  const conversation = (await server.tl()).conversation(randomUUID());
  const { id } = await conversation.ensure();
  const page = await open(`/c/${id}`);
  await field(page).fill('/hang');
  await page.keyboard.press('Enter');
  const turn = page.getByRole('article', { name: 'Turn 1' });
  await expect.poll(async () => (await conversation.turns())[0]?.state).toBe('running');
  await page
    .getByRole('button', { name: /^(Stop|Cancel the running turn)/ })
    .first()
    .click();
  await turn.getByText('Stopped by you.').waitFor();
  expect(await turn.innerText()).not.toMatch(/Cancelled|by local|by page/);
  expect(await box(page).count()).toBe(0);
});

server.test(
  'a prompt that is sent with an expired sign-in stays a draft, and the page leads to the sign-in',
  async ({ open, context, allow }) => {
    allow(/status of 401|WebSocket|EventSource/);
    const conversation = (await server.tl()).conversation(randomUUID());
    const { id } = await conversation.ensure();
    const page = await open(`/c/${id}`);
    await field(page).fill('/say Kept.');
    await context.clearCookies();
    await page.keyboard.press('Enter');
    await page.getByText('You are signed out. Your drafts are kept.').waitFor();
    await page.getByText(/^(npx )?throughline .*link$/).waitFor();
    expect(await field(page).inputValue()).toBe('/say Kept.');
    // The outline beside the conversation could not be read either.
    await page.locator('form').getByText('This browser is not signed in any more.').waitFor();
    await context.request.get(await server.link(), { maxRedirects: 0 });
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByText('You are signed out.').waitFor({ state: 'detached' });
    expect(await field(page).inputValue()).toBe('/say Kept.');
    await field(page).press('Enter');
    await page.getByText('Kept.', { exact: true }).waitFor();
    expect(await conversation.turns()).toHaveLength(1);
  },
);
