// A new conversation: its first prompt, where it works, who answers; and where the keys go before and after.
import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import { AGENTS } from '../../e2e/cli/agents.ts';
import { MANY_SLOTS } from '../../e2e/cli/process.ts';
import { axe, PHONE, pageServer } from './harness.ts';

const server = pageServer();
/** Where a person may choose a directory. */
const work = join(server.home.path, 'work');
mkdirSync(work);
const settings = { defaultAgent: 'scripted', agents: AGENTS, turns: MANY_SLOTS, sandbox: { directories: [work] } };
server.home.configure(settings);

const field = (page: Page) => page.getByRole('textbox', { name: 'Prompt', exact: true });
const isFocused = (page: Page) => field(page).evaluate((one) => one === document.activeElement);
const conversationOf = async (page: Page) => {
  await page.waitForURL(/\/c\//);
  return (await server.tl()).conversation(new URL(page.url()).pathname.split('/')[2] ?? '');
};

server.test('one types at once: in a new conversation, and after its first prompt', async ({ open }) => {
  const page = await open('/');
  await page.getByRole('button', { name: 'New conversation' }).first().click();
  await page.waitForURL(/\/new$/);
  await field(page).waitFor();
  // Without the focus in the field, "/" opens the search and the rest is typed there.
  await page.keyboard.type('/say First.');
  expect(await field(page).inputValue()).toBe('/say First.');
  await page.keyboard.press('Enter');
  await page.keyboard.type('/say Sec');
  const conversation = await conversationOf(page);
  await page.getByText('First.', { exact: true }).waitFor();
  await expect.poll(() => isFocused(page)).toBe(true);
  await page.keyboard.type('ond.');
  await expect.poll(() => field(page).inputValue()).toBe('/say Second.');
  await page.keyboard.press('Enter');
  await page.getByText('Second.', { exact: true }).waitFor();
  expect((await conversation.turns()).map(({ reply }) => reply.trim())).toEqual(['First.', 'Second.']);
  await page.goto(`${server.url}/new`);
  await expect.poll(() => isFocused(page)).toBe(true);
  expect(await field(page).inputValue()).toBe('');
});

/** A git repository with one commit on `main`, and a conversation that works in it. */
async function projectNamed(name: string, prompt = '/say Hello.') {
  const path = join(work, name);
  mkdirSync(path);
  const git = (...args: string[]) =>
    execFileSync('git', ['-C', path, '-c', 'user.name=a', '-c', 'user.email=a@b', ...args]);
  git('init', '-q', '-b', 'main');
  writeFileSync(join(path, 'a.txt'), 'a');
  git('add', '.');
  git('commit', '-qm', 'One');
  const conversation = (await server.tl()).conversation(randomUUID(), { title: `In ${name}`, cwd: path });
  await conversation.ask(prompt);
  return path;
}

const projects = (page: Page) => page.getByRole('radiogroup', { name: 'Project' }).getByRole('radio');
const projectNames = (page: Page) =>
  projects(page).evaluateAll((all) => all.map((one) => one.closest('label')?.querySelector('b')?.textContent ?? 'new'));

server.test(
  'used directories are offered, Alt and a digit chooses one, and a sentence says where it works',
  async ({ open }) => {
    const infra = await projectNamed('infra');
    const harbor = await projectNamed('harbor-api');
    const page = await open('/new');
    // The one that was used last comes first, and is chosen.
    await expect.poll(async () => (await projectNames(page)).slice(0, 2)).toEqual(['harbor-api', 'infra']);
    await page.getByText('In harbor-api: works in a worktree of its own, from main.').waitFor();
    expect(await isFocused(page)).toBe(true);
    await page.keyboard.type('/say Where am I?');
    await page.keyboard.press('Alt+2');
    await page.getByText('In infra: works in a worktree of its own, from main.').waitFor();
    await page.getByRole('switch', { name: 'Own worktree' }).click();
    await page.getByText('In infra, in the directory itself, on main.').waitFor();
    await axe(page);
    await page.keyboard.press('Alt+1');
    await page.getByText('In harbor-api, in the directory itself, on main.').waitFor();
    await page.getByRole('switch', { name: 'Own worktree' }).click();
    await field(page).press('Enter');
    const made = await (await conversationOf(page)).get();
    expect(made).toMatchObject({
      project: { path: harbor, name: 'harbor-api' },
      worktree: true,
      title: '/say Where am I?',
    });
    // By a part of its name.
    await page.goto(`${server.url}/new`);
    await page.getByRole('textbox', { name: 'Name or path of a directory' }).fill('inf');
    await expect.poll(() => projectNames(page)).toEqual(['infra', 'new']);
    await page.keyboard.press('Enter');
    await page.getByText('In infra: works in a worktree of its own, from main.').waitFor();
    await page.getByRole('radio', { name: 'A new, empty directory' }).check({ force: true });
    await page.getByText('In a new, empty directory.').waitFor();
    await field(page).fill('/say Alone.');
    await field(page).press('Enter');
    expect(await (await conversationOf(page)).get()).toMatchObject({ cwd: null, project: null, worktree: false });
    expect(infra).toContain(work);
  },
);

server.test('any directory below the roots of the server can be found and chosen', async ({ open }) => {
  mkdirSync(join(work, 'notes', 'drafts', '.hidden'), { recursive: true });
  const page = await open('/new');
  await page.getByRole('radio', { name: 'A new, empty directory' }).check({ force: true });
  await page.getByRole('button', { name: /^Browse/ }).click();
  const list = page.getByRole('region', { name: 'Directories' });
  await list.getByRole('button', { name: 'notes' }).click();
  await list.getByRole('button', { name: 'drafts' }).click();
  await list.getByText('No directories in it.').waitFor();
  await list.getByRole('checkbox', { name: 'Hidden ones' }).check();
  await list.getByRole('button', { name: '.hidden' }).waitFor();
  await axe(page);
  await list.getByRole('button', { name: /^Up to/ }).click();
  await list.getByRole('button', { name: 'drafts' }).waitFor();
  await list.getByRole('button', { name: /^Use .*notes$/ }).click();
  await page.getByText('In notes, in the directory itself.').waitFor();
  await field(page).fill('/say Found.');
  await field(page).press('Enter');
  expect(await (await conversationOf(page)).get()).toMatchObject({ cwd: join(work, 'notes') });
});

server.test('without the scope admin there is no choice of directories, and the page says so', async ({ context }) => {
  const { link } = await server.caller.ok('POST', '/links', { scopes: ['read', 'prompt'] });
  await context.clearCookies();
  await context.request.get(link, { maxRedirects: 0 });
  const page = await context.newPage();
  await page.goto(`${server.url}/new`);
  await page.getByText('In a directory of its own on the server.').waitFor();
  await page.getByText('To choose another one needs the scope admin.').waitFor();
  expect(await page.getByRole('radiogroup', { name: 'Project' }).count()).toBe(0);
  expect(await page.getByRole('button', { name: /^Browse/ }).count()).toBe(0);
  await field(page).fill('/say Mine.');
  await field(page).press('Enter');
  await page.getByText('Mine.', { exact: true }).waitFor();
  expect((await (await conversationOf(page)).get()).cwd).toBeNull();
});

server.test('the agent and its model are chosen before the first turn', async ({ open, allow }) => {
  allow(/status of 422/);
  const values = ['small', 'large'].map((value) => ({ value, name: value === 'small' ? 'Small' : 'Large' }));
  const model = {
    id: 'model',
    name: 'Model',
    category: 'model',
    type: 'select',
    currentValue: 'small',
    options: values,
  };
  const update = { sessionUpdate: 'config_option_update', configOptions: [model] };
  const known = (await server.tl()).conversation(randomUUID());
  await known.ask(`/update ${JSON.stringify(update)}`, { agent: 'slow' });
  const page = await open('/new');
  const agents = page.getByRole('radiogroup', { name: 'Agent' });
  await expect.poll(() => agents.getByRole('radio', { name: /^scripted/ }).isChecked()).toBe(true);
  await agents.getByRole('radio', { name: /^slow/ }).check();
  await agents.getByRole('button', { name: 'Model: Its default' }).click();
  const choice = page.getByRole('combobox', { name: 'Model' });
  await expect
    .poll(() =>
      choice.evaluate((input) => [...((input as HTMLInputElement).list?.options ?? [])].map((one) => one.value)),
    )
    .toEqual(['small', 'large']);
  await choice.fill('large');
  await page.keyboard.press('Escape');
  await agents.getByRole('button', { name: 'Model: Large' }).waitFor();
  const sent: unknown[] = [];
  page.on('request', (request) => request.url().endsWith('/turns') && sent.push(request.postDataJSON()));
  await field(page).fill('/say Chosen.');
  await field(page).press('Enter');
  // The scripted agent announces what it is told to, and takes none of it.
  await page.getByText('this agent has no model, mode or config options to choose').waitFor();
  expect(sent).toMatchObject([{ model: 'large' }]);
  await agents.getByRole('button', { name: 'Model: Large' }).click();
  await choice.fill('');
  await page.keyboard.press('Escape');
  await field(page).press('Enter');
  const conversation = await conversationOf(page);
  await expect.poll(async () => (await conversation.turns()).map(({ agent }) => agent)).toEqual(['slow']);
});

server.test(
  'a key that exists says so before anything is sent, with a link to its conversation',
  async ({ open, allow }) => {
    allow(/404/); // the page asks whether there is a conversation with the key
    const key = `taken-${randomUUID()}`;
    const conversation = (await server.tl()).conversation(key, { title: 'It was here first' });
    await conversation.ask('/say Hello.');
    const page = await open('/new');
    await field(page).fill('/say Not there.');
    await page.getByRole('button', { name: 'More' }).click();
    const input = page.getByRole('textbox', { name: 'Key', exact: true });
    await input.fill(key);
    // At once, before it was looked up while typing.
    await field(page).press('Enter');
    const note = page.getByRole('alert').filter({ hasText: `The key “${key}” exists` });
    await note.waitFor();
    await axe(page);
    expect(await conversation.turns()).toHaveLength(1);
    await input.fill(`${key}-free`);
    await note.waitFor({ state: 'detached' });
    await input.fill(key);
    await note.getByRole('link', { name: 'It was here first' }).click();
    await page.waitForURL(new RegExp((await conversation.get()).id));
    expect(await conversation.turns()).toHaveLength(1);
  },
);

server.test('conversations about the same are offered while one types', async ({ open }) => {
  const conversation = (await server.tl()).conversation(randomUUID(), { title: 'Stop double payouts' });
  await conversation.ask('/say Then write the refundation script for the quarantined seven.');
  const page = await open('/new');
  await expect.poll(() => isFocused(page)).toBe(true);
  await page.keyboard.type('Add a dry run to the refundation of quarantined ones');
  const alike = page.getByRole('region', { name: 'Conversations alike' });
  await alike.getByRole('link', { name: /Stop double payouts/ }).waitFor();
  expect(await alike.locator('mark').allTextContents()).toContain('refundation');
  await axe(page);
  await alike.getByRole('link').click();
  await page.waitForURL(new RegExp(`${(await conversation.get()).id}/turn/1`));
});

server.test('Escape closes it, and the draft is kept', async ({ open }) => {
  const page = await open('/new');
  await expect.poll(() => isFocused(page)).toBe(true);
  await page.keyboard.type('Half a thought');
  await page.keyboard.press('Escape');
  await page.waitForURL((url) => url.pathname === '/');
  await page.goto(`${server.url}/new`);
  await expect.poll(() => field(page).inputValue()).toBe('Half a thought');
});

server.test(
  'on a phone everything can be tapped, and nothing is wider than the screen',
  async ({ open }) => {
    await projectNamed('a-project-with-a-name-that-is-longer-than-most-names-of-projects');
    const page = await open('/new');
    await projects(page).nth(1).waitFor();
    await page.getByRole('button', { name: 'More' }).tap();
    await axe(page);
    const targets = page
      .locator('main')
      .locator('button:visible, select:visible, a:visible, label:has(input[type=radio]):visible');
    const tooSmall = await targets.evaluateAll((all) =>
      all.filter((one) => one.getBoundingClientRect().height < 43.9).map((one) => one.outerHTML),
    );
    expect(tooSmall).toEqual([]);
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(390);
  },
  PHONE,
);
