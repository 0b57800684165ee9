// What lies behind a conversation: its sessions as a graph, what it cost, every event; two sessions beside each other.
import { execFileSync } from 'node:child_process';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import { axe, PHONE, pageServer } from './harness.ts';

const server = pageServer();

/** A conversation that has lived in three sessions of two agents. */
async function moved(key: string): Promise<string> {
  const chat = (await server.tl()).conversation(key, { agent: 'forgetful' });
  await chat.ask('The codeword is osprey.');
  await chat.ask('/say Two.');
  await chat.kill();
  await chat.ask('/say Three.');
  await chat.ask('/say Four.', { agent: 'scripted' });
  return (await chat.get()).id;
}

const withPanel = async (page: Page, tab: string) => {
  await page.getByRole('button', { name: 'Show the panel' }).click();
  await page.getByRole('tab', { name: tab }).click();
};

server.test('lineage shows which session answered what, and every node leads to its turn', async ({ open }) => {
  const page = await open(`/c/${await moved('lineage')}`);
  await withPanel(page, 'Lineage');
  const nodes = page.getByRole('button', { name: /go to turn/ });
  await expect.poll(() => nodes.allTextContents()).toHaveLength(3);
  for (const name of [
    /^Turns 1–2\s*forgetful\s*new session · .*: go to turn 1$/,
    /^Turn 3\s*forgetful\s*rebuilt by transcript · .*: go to turn 3$/,
    /^Turn 4\s*scripted\s*rebuilt by transcript · .*: go to turn 4$/,
  ]) {
    await expect.poll(() => page.getByRole('button', { name }).count(), { message: String(name) }).toBe(1);
  }
  const circles = page.getByRole('complementary', { name: 'Panel' }).locator('svg circle');
  const colours = () => circles.evaluateAll((all) => all.map((circle) => getComputedStyle(circle).fill));
  await expect.poll(async () => new Set(await colours()).size).toBe(3);
  await nodes.nth(1).click();
  await page.waitForURL(/\/turn\/3$/);
  await axe(page);
});

server.test('a fork is shown in both conversations, and leads from one to the other', async ({ open }) => {
  const chat = (await server.tl()).conversation('forked');
  await chat.ask('/say One.');
  await chat.ask('/say Two.');
  const copy = await (await chat.fork({ turn: 1, key: 'the fork', title: 'Another way' })).get();
  const page = await open(`/c/${(await chat.get()).id}`);
  // What the rail shows does not matter.
  await page.getByRole('complementary', { name: 'Conversations' }).getByLabel('State').selectOption('Running');
  await page.getByText('No conversation matches the filters.').waitFor();
  await withPanel(page, 'Lineage');
  await page.getByRole('button', { name: /^Another way\s*fork after turn 1/ }).click();
  await expect.poll(() => page.url()).toContain(copy.id);
  await page.getByRole('button', { name: /forked from it after turn 1/ }).waitFor();
});

server.test('usage has figures of every session, and what nobody reported is not a zero', async ({ open }) => {
  const page = await open(`/c/${await moved('usage')}`);
  await withPanel(page, 'Usage');
  await page.getByRole('img', { name: /^Tokens in and out of 4 turns; other sessions began at turn 3, 4/ }).waitFor();
  const rows = page.getByRole('complementary', { name: 'Panel' }).locator('tbody tr');
  await expect.poll(() => rows.count()).toBe(3);
  await expect.poll(async () => (await rows.last().innerText()).split(/\s+/).at(-1)).toBe('–');
  await axe(page);
});

/** With one commit. */
async function repository(name: string) {
  const folder = join(server.home.path, name);
  await mkdir(folder);
  const git = (...args: string[]) => execFileSync('git', ['-C', folder, ...args], { encoding: 'utf8' });
  git('init', '-q');
  git('config', 'user.name', 'a');
  git('config', 'user.email', 'a@b');
  await writeFile(join(folder, 'notes.txt'), 'one\ntwo\n');
  git('add', '.');
  git('commit', '-q', '-m', 'first');
  return { folder, git };
}

server.test('what the agent changed in its repository is shown by file', async ({ open }) => {
  const { folder } = await repository('repository');
  const chat = (await server.tl()).conversation('changed', { agent: 'scripted', cwd: folder });
  await chat.ask('/say One.');
  await writeFile(join(folder, 'notes.txt'), 'one\nthree\n');
  await writeFile(join(folder, '<img src=x onerror=alert(1)>'), 'new\n');
  const page = await open(`/c/${(await chat.get()).id}`);
  await withPanel(page, 'Changes');
  await page.getByText('2 files have changed since').waitFor();
  await page.getByText('notes.txt').click();
  const patch = page.getByRole('region', { name: 'Changes in notes.txt' });
  await expect.poll(async () => (await patch.innerText()).replaceAll(/\s+/g, ' ')).toContain('2 − two 2 + three');
  await axe(page);
});

server.test('what the agent changed in its worktree is committed and merged, or discarded', async ({ open, allow }) => {
  allow(/422/); // it cannot be merged at first
  const { folder, git } = await repository('trees');
  const chat = (await server.tl()).conversation('tree', { agent: 'scripted', cwd: folder, worktree: true });
  await chat.ask('/tool write made.txt');
  const page = await open(`/c/${(await chat.get()).id}`);
  await withPanel(page, 'Changes');
  await page.getByText('In a separate worktree, on the branch').waitFor();
  await page.getByRole('button', { name: 'Keep…' }).click();
  const keeping = page.getByRole('dialog', { name: 'Keep the agent’s changes' });
  expect(await keeping.getByRole('button', { name: 'Commit and merge' }).isDisabled()).toBe(true);
  await keeping.getByLabel('Commit message').fill('Make it');
  await keeping.getByText("throughline changes tree --commit 'Make it' --merge").waitFor();
  await axe(page);
  // It is committed, and a file of somebody else is in the way of the merge.
  await writeFile(join(folder, 'made.txt'), 'mine');
  await keeping.getByRole('button', { name: 'Commit and merge' }).click();
  await keeping.getByRole('alert').getByText('Commit or stash them.').waitFor();
  await page.getByText('1 commit not merged').waitFor();
  await rm(join(folder, 'made.txt'));
  await keeping.getByRole('button', { name: 'Merge', exact: true }).click();
  await keeping.waitFor({ state: 'detached' });
  await page.getByText('Nothing has changed').waitFor();
  expect(git('log', '--format=%s', '-1', '--', 'made.txt')).toBe('Make it\n');
  await chat.ask('/tool write other.txt');
  await page.getByText('1 file has changed').waitFor();
  await page.getByRole('button', { name: 'Discard…' }).click();
  const discarding = page.getByRole('dialog', { name: 'Discard the agent’s changes' });
  await discarding.getByText('throughline changes tree --discard --yes').waitFor();
  await discarding.getByRole('button', { name: 'Discard' }).click();
  await page.getByText('Nothing has changed').waitFor();
  expect((await chat.changes()).files).toEqual([]);
  // A worktree with changes goes with the conversation only if somebody says so.
  await chat.ask('/tool write unsaved.txt');
  await page.getByRole('button', { name: 'Conversation actions' }).click();
  await page.getByRole('menuitem', { name: 'Erase…' }).click();
  const erasing = page.getByRole('dialog', { name: 'Erase the conversation' });
  const discard = erasing.getByLabel('Also discard uncommitted changes in its worktree');
  expect(await discard.count()).toBe(0);
  await erasing.getByLabel('Also delete its own sandbox with all files in it').check();
  await erasing.getByRole('button', { name: 'Erase' }).click();
  await erasing.getByRole('alert').getByText('discard').waitFor();
  await discard.check();
  await erasing.getByText('throughline erase tree --sandbox --discard --yes').waitFor();
  await erasing.getByRole('button', { name: 'Erase' }).click();
  await page.getByText('Erased.').waitFor();
  expect(git('worktree', 'list').trim().split('\n')).toHaveLength(1);
});

server.test('raw shows every event as it is stored, and newer ones as they come', async ({ open }) => {
  const chat = (await server.tl()).conversation('raw');
  await chat.ask('/say One.');
  const page = await open(`/c/${(await chat.get()).id}`);
  await withPanel(page, 'Raw');
  await page.getByRole('button', { name: /turn\.ended/ }).click();
  await page.getByText('"outcome": "completed"').waitFor();
  const events = page.getByRole('complementary', { name: 'Panel' }).locator('li');
  const missing = async () => (await chat.get()).lastSeq - (await events.count());
  await expect.poll(missing).toBe(0);
  await chat.ask('/say Two.');
  await expect.poll(missing).toBe(0);
  // No turn has to end for it.
  const { lastSeq } = await chat.get();
  await chat.kill();
  expect((await chat.get()).lastSeq).toBeGreaterThan(lastSeq);
  await expect.poll(missing).toBe(0);
});

server.test('a turn with more events than a page leaves no gap in raw', async ({ open }) => {
  const chat = (await server.tl()).conversation('raw-long');
  await chat.ask('/say One.');
  const page = await open(`/c/${(await chat.get()).id}`);
  await withPanel(page, 'Raw');
  const events = page.getByRole('complementary', { name: 'Panel' }).locator('li');
  await events.first().waitFor();
  await chat.ask(Array.from({ length: 80 }, () => '/tool look notes').join('\n'));
  expect((await chat.get()).lastSeq).toBeGreaterThan(150);
  await expect.poll(async () => (await chat.get()).lastSeq - (await events.count())).toBe(0);
});

server.test('two sessions are compared: what each had, and what each was told', async ({ open }) => {
  const page = await open(`/c/${await moved('compared')}/compare`);
  const one = page.getByRole('region', { name: 'First session' });
  const other = page.getByRole('region', { name: 'Second session' });
  await one.getByText('1 answered · 2 restored').waitFor();
  await other.getByText('1 answered · 3 restored').waitFor();
  await other.getByText('The codeword is osprey.').waitFor();
  await one.getByRole('combobox').selectOption({ index: 0 });
  await one.getByText('2 answered · 0 restored · 2 missing').waitFor();
  await axe(page);
});

server.test(
  'on a phone the panel is a sheet, which closes when somebody goes elsewhere',
  async ({ open }) => {
    const page = await open(`/c/${await moved('phone')}`);
    await withPanel(page, 'Lineage');
    const sheet = page.getByRole('dialog', { name: 'Panel' });
    await sheet.getByRole('button', { name: /go to turn 4/ }).waitFor();
    await axe(page);
    // It covers the turn that it leads to, and what a reload shows.
    await sheet.getByRole('button', { name: /go to turn 4/ }).tap();
    await sheet.waitFor({ state: 'detached' });
    await page.getByRole('article', { name: 'Turn 4' }).waitFor();
    await withPanel(page, 'Usage');
    await page.reload();
    await page.getByRole('article', { name: 'Turn 4' }).waitFor();
    expect(await sheet.count()).toBe(0);
  },
  PHONE,
);
