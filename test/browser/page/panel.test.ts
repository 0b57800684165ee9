// The panel of a conversation: its sessions as a graph, its usage, its changes and all events; and the comparison of two sessions.
import { execFileSync } from 'node:child_process';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'vitest';
import { axe, PHONE, pageServer } from './harness.ts';
import { showPanel } from './panels.ts';

const server = pageServer();

/** The id of a new conversation with three sessions of two agents. */
async function conversationWithThreeSessions(key: string): Promise<string> {
  const conversation = (await server.tl()).conversation(key, { agent: 'forgetful' });
  await conversation.ask('The codeword is osprey.');
  await conversation.ask('/say Two.');
  await conversation.kill();
  await conversation.ask('/say Three.');
  await conversation.ask('/say Four.', { agent: 'scripted' });
  return (await conversation.get()).id;
}

server.test(
  'the tab Sessions shows which session answered which turns, and every node leads to its turn',
  async ({ open }) => {
    const page = await open(`/c/${await conversationWithThreeSessions('lineage')}`);
    await showPanel(page, 'Sessions');
    const nodes = page.getByRole('button', { name: /go to turn/ });
    await expect.poll(() => nodes.allTextContents()).toHaveLength(3);
    for (const name of [
      /^Turns 1–2\s*forgetful\s*first session · .*: go to turn 1$/,
      /^Turn 3\s*forgetful\s*told what was said · .*: go to turn 3$/,
      /^Turn 4\s*scripted\s*told what was said · .*: go to turn 4$/,
    ]) {
      await expect.poll(() => page.getByRole('button', { name }).count(), { message: String(name) }).toBe(1);
    }
    const circles = page.getByRole('tabpanel').locator('svg circle');
    const colours = () => circles.evaluateAll((all) => all.map((circle) => getComputedStyle(circle).stroke));
    await expect.poll(async () => new Set(await colours()).size).toBe(3);
    await nodes.nth(1).click();
    await page.waitForURL(/\/turn\/3$/);
    await axe(page);
  },
);

server.test('a fork is shown in both conversations, and leads from one to the other', async ({ open }) => {
  const conversation = (await server.tl()).conversation('forked');
  await conversation.ask('/say One.');
  await conversation.ask('/say Two.');
  const copy = await (await conversation.fork({ turn: 1, key: 'the fork', title: 'Another way' })).get();
  const page = await open(`/c/${(await conversation.get()).id}`);
  // The panel must show the fork even if the rail does not.
  await (await server.tl()).conversation('the fork').arrange({ putAway: true });
  await page.getByRole('link', { name: '1 put away' }).waitFor();
  await showPanel(page, 'Sessions');
  await page.getByRole('button', { name: /^Another way\s*fork after turn 1/ }).click();
  await expect.poll(() => page.url()).toContain(copy.id);
  await page.getByRole('button', { name: /forked from it after turn 1/ }).waitFor();
});

server.test('the usage has figures for every session, and a dash where no figure was reported', async ({ open }) => {
  const page = await open(`/c/${await conversationWithThreeSessions('usage')}`);
  await showPanel(page, 'Usage');
  await page.getByRole('img', { name: /^Tokens in and out of 4 turns; other sessions began at turn 3, 4/ }).waitFor();
  const rows = page.getByRole('complementary', { name: 'Panel' }).locator('tbody tr');
  await expect.poll(() => rows.count()).toBe(3);
  await expect.poll(async () => (await rows.last().innerText()).split(/\s+/).at(-1)).toBe('–');
  await axe(page);
});

/** A new git repository with one commit. */
async function makeRepository(name: string) {
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

server.test('the changes in the repository of the agent are shown by file', async ({ open }) => {
  const { folder } = await makeRepository('repository');
  const conversation = (await server.tl()).conversation('changed', { agent: 'scripted', cwd: folder });
  await conversation.ask('/say One.');
  await writeFile(join(folder, 'notes.txt'), 'one\nthree\n');
  await writeFile(join(folder, '<img src=x onerror=alert(1)>'), 'new\n');
  const page = await open(`/c/${(await conversation.get()).id}`);
  await showPanel(page, 'Changes');
  await page.getByText('2 files have changed since').waitFor();
  await page.getByText('notes.txt').click();
  const patch = page.getByRole('region', { name: 'Changes in notes.txt' });
  await expect.poll(async () => (await patch.innerText()).replaceAll(/\s+/g, ' ')).toContain('1 one − two 2 + three');
  await axe(page);
});

server.test(
  'the changes in the worktree of the agent can be committed and merged, or discarded',
  async ({ open, allow }) => {
    allow(/422/); // the first merge fails
    const { folder, git } = await makeRepository('trees');
    const conversation = (await server.tl()).conversation('tree', { agent: 'scripted', cwd: folder, worktree: true });
    await conversation.ask('/tool write made.txt');
    const page = await open(`/c/${(await conversation.get()).id}`);
    await showPanel(page, 'Changes');
    await page.getByText('In a separate worktree, on the branch').waitFor();
    await page.getByRole('button', { name: 'Keep…' }).click();
    const keepDialog = page.getByRole('dialog', { name: 'Keep the agent’s changes' });
    expect(await keepDialog.getByRole('button', { name: 'Commit and merge' }).isDisabled()).toBe(true);
    await keepDialog.getByLabel('Commit message').fill('Make it');
    await keepDialog.getByText("throughline changes tree --commit 'Make it' --merge").waitFor();
    await axe(page);
    // The commit works, but a file of the user prevents the merge.
    await writeFile(join(folder, 'made.txt'), 'mine');
    await keepDialog.getByRole('button', { name: 'Commit and merge' }).click();
    await keepDialog.getByRole('alert').getByText('Commit or stash them.').waitFor();
    await page.getByText('1 commit not merged').waitFor();
    await rm(join(folder, 'made.txt'));
    await keepDialog.getByRole('button', { name: 'Merge', exact: true }).click();
    await keepDialog.waitFor({ state: 'detached' });
    await page.getByText('Nothing has changed').waitFor();
    expect(git('log', '--format=%s', '-1', '--', 'made.txt')).toBe('Make it\n');
    await conversation.ask('/tool write other.txt');
    await page.getByText('1 file has changed').waitFor();
    await page.getByRole('button', { name: 'Discard…' }).click();
    const discardDialog = page.getByRole('dialog', { name: 'Discard the agent’s changes' });
    await discardDialog.getByText('throughline changes tree --discard --yes').waitFor();
    await discardDialog.getByRole('button', { name: 'Discard' }).click();
    await page.getByText('Nothing has changed').waitFor();
    expect((await conversation.changes()).files).toEqual([]);
    // Erasing the conversation deletes a worktree with changes only if the user confirms it.
    await conversation.ask('/tool write unsaved.txt');
    await page.getByRole('button', { name: 'Conversation actions' }).click();
    await page.getByRole('menuitem', { name: 'Erase…' }).click();
    const eraseDialog = page.getByRole('dialog', { name: 'Erase the conversation' });
    const discardOption = eraseDialog.getByLabel('Also discard uncommitted changes in its worktree');
    expect(await discardOption.count()).toBe(0);
    await eraseDialog.getByLabel('Also delete its own sandbox with all files in it').check();
    await eraseDialog.getByRole('button', { name: 'Erase' }).click();
    await eraseDialog.getByRole('alert').getByText('discard').waitFor();
    await discardOption.check();
    await eraseDialog.getByText('throughline erase tree --sandbox --discard --yes').waitFor();
    await eraseDialog.getByRole('button', { name: 'Erase' }).click();
    await page.getByText('Erased.').waitFor();
    expect(git('worktree', 'list').trim().split('\n')).toHaveLength(1);
  },
);

server.test('the tab Raw shows every event as it is stored, and new events as they arrive', async ({ open }) => {
  const conversation = (await server.tl()).conversation('raw');
  await conversation.ask('/say One.');
  const page = await open(`/c/${(await conversation.get()).id}`);
  await showPanel(page, 'Raw');
  await page.getByRole('button', { name: /turn\.ended/ }).click();
  await page.getByText('"outcome": "completed"').waitFor();
  const events = page.getByRole('complementary', { name: 'Panel' }).locator('li');
  const missingEvents = async () => (await conversation.get()).lastSeq - (await events.count());
  await expect.poll(missingEvents).toBe(0);
  await conversation.ask('/say Two.');
  await expect.poll(missingEvents).toBe(0);
  // Also an event without a turn.
  const { lastSeq } = await conversation.get();
  await conversation.kill();
  expect((await conversation.get()).lastSeq).toBeGreaterThan(lastSeq);
  await expect.poll(missingEvents).toBe(0);
});

server.test('a turn with more events than one response holds leaves no gap in the tab Raw', async ({ open }) => {
  const conversation = (await server.tl()).conversation('raw-long');
  await conversation.ask('/say One.');
  const page = await open(`/c/${(await conversation.get()).id}`);
  await showPanel(page, 'Raw');
  const events = page.getByRole('complementary', { name: 'Panel' }).locator('li');
  await events.first().waitFor();
  await conversation.ask(Array.from({ length: 80 }, () => '/tool look notes').join('\n'));
  expect((await conversation.get()).lastSeq).toBeGreaterThan(150); // a response has 100 (web/src/panel/raw.tsx)
  await expect.poll(async () => (await conversation.get()).lastSeq - (await events.count())).toBe(0);
});

server.test(
  'the comparison of two sessions shows how many turns each answered, and what each was told',
  async ({ open }) => {
    const page = await open(`/c/${await conversationWithThreeSessions('compared')}/compare`);
    const first = page.getByRole('region', { name: 'First session' });
    const second = page.getByRole('region', { name: 'Second session' });
    await first.getByText('1 answered · 2 restored').waitFor();
    await second.getByText('1 answered · 3 restored').waitFor();
    await second.getByText('The codeword is osprey.').waitFor();
    await first.getByRole('combobox').selectOption({ index: 0 });
    await first.getByText('2 answered · 0 restored · 2 missing').waitFor();
    await axe(page);
  },
);

server.test(
  'on a phone the panel is a dialog, which closes on navigation and on a reload',
  async ({ open }) => {
    const page = await open(`/c/${await conversationWithThreeSessions('phone')}`);
    await showPanel(page, 'Sessions');
    const sheet = page.getByRole('dialog', { name: 'Panel' });
    await sheet.getByRole('button', { name: /go to turn 4/ }).waitFor();
    await axe(page);
    // Otherwise it would cover the turn that it leads to, and the conversation after a reload.
    await sheet.getByRole('button', { name: /go to turn 4/ }).tap();
    await sheet.waitFor({ state: 'detached' });
    await page.getByRole('article', { name: 'Turn 4' }).waitFor();
    await showPanel(page, 'Usage');
    await page.reload();
    await page.getByRole('article', { name: 'Turn 4' }).waitFor();
    expect(await sheet.count()).toBe(0);
  },
  PHONE,
);

server.test(
  'the outline shows the prompts along the line, leads to them, and marks the one that is read',
  async ({ open }) => {
    const messages = Array.from({ length: 60 }, (_, index) => [
      { role: 'user', content: `Question ${index + 1}\nand more of it` },
      { role: 'assistant', content: `Answer ${index + 1}. ${'Some words. '.repeat(60)}` },
    ]).flat();
    const tl = await server.tl();
    const { id } = await tl.engine.import(messages, { key: 'outlined', agent: 'forgetful' });
    await tl.conversation('outlined').ask('/say The end.');
    const page = await open(`/c/${id}`);
    const panel = page.getByRole('complementary', { name: 'Panel' });
    const prompts = panel.getByRole('list', { name: 'Prompts' });
    const entry = (n: number) => prompts.getByRole('button', { name: new RegExp(`, turn ${n}$`) });
    // Only the first line of a prompt, and the last turns at first.
    await entry(60).getByText('Question 60', { exact: true }).waitFor();
    await prompts.getByRole('button', { name: 'Seam before turn 61: told all' }).waitFor();
    await expect.poll(() => entry(61).getAttribute('aria-current')).toBe('true');
    await panel.getByText('2 sessions, one line').waitFor();
    await panel.getByText('0 dropped').waitFor();
    expect(await entry(41).count()).toBe(0);
    await panel.getByRole('button', { name: '41 earlier turns' }).click();
    await prompts.evaluate((list) => list.parentElement?.scrollTo(0, 0));
    await entry(3).getByText('Question 3', { exact: true }).click();
    await page.getByRole('article', { name: 'Turn 3', exact: true }).waitFor();
    await expect.poll(() => entry(3).getAttribute('aria-current')).toBe('true');
    await axe(page);
    // The same link leads there again after somebody has scrolled away.
    await page.getByRole('button', { name: 'Go to the end' }).click();
    await page.getByRole('article', { name: 'Turn 61', exact: true }).waitFor();
    await prompts.evaluate((list) => list.parentElement?.scrollTo(0, 0));
    await entry(3).click();
    await page.getByRole('article', { name: 'Turn 3', exact: true }).waitFor();
  },
);

server.test('below 74 rem the panel is behind a button', async ({ open }) => {
  const page = await open(`/c/${await conversationWithThreeSessions('narrow')}`);
  await page.getByRole('complementary', { name: 'Panel' }).getByRole('tab', { name: 'Turns' }).waitFor();
  await page.setViewportSize({ width: 1_150, height: 800 });
  await page.getByRole('complementary', { name: 'Panel' }).waitFor({ state: 'detached' });
  await page.getByRole('button', { name: 'Show the panel' }).click();
  await page.getByRole('dialog', { name: 'Panel' }).getByRole('list', { name: 'Prompts' }).waitFor();
});
