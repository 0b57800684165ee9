// The line of a conversation through all its sessions, the seams on it, and what a session does not know.

import { randomUUID } from 'node:crypto';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import { AGENTS } from '../../e2e/cli/agents.ts';
import { axe, PHONE, pageServer } from './harness.ts';
import { showPanel } from './panels.ts';
import { waitUntilAtEnd } from './scrolling.ts';

/** So little that only the end of a long conversation is delivered. */
const SMALL = 1_000;

const server = pageServer({ defaultAgent: 'forgetful', agents: AGENTS, restore: { budgetTokens: SMALL } });

const ALL = { budgetTokens: 1_000_000 };

const turn = (page: Page, n: number) => page.getByRole('article', { name: `Turn ${n}`, exact: true });
const seam = (page: Page, n: number) => page.getByRole('region', { name: `Seam before turn ${n}`, exact: true });
const banner = (page: Page) => page.getByRole('status', { name: 'What the session does not know' });

/** The id of a new conversation with turns from elsewhere. */
async function importConversation(key: string, turns: number): Promise<string> {
  const messages = Array.from({ length: turns }, (_, index) => [
    { role: 'user', content: `Question ${index + 1}` },
    { role: 'assistant', content: `Answer ${index + 1}. ${'Some words. '.repeat(5)}` },
  ]).flat();
  return (await (await server.tl()).engine.import(messages, { key, agent: 'forgetful' })).id;
}

/** The line beside each turn on the screen: its colour and its distance from the edge, as they are drawn. */
const linesOf = (page: Page) =>
  page.locator('article[aria-label^="Turn "]').evaluateAll((rows) =>
    rows.map((row) => {
      const { borderLeftColor, left, content } = getComputedStyle(row, '::before');
      return [row.getAttribute('aria-label'), content === 'none' ? 'none' : `${borderLeftColor} ${left}`];
    }),
  );

/** The line of a turn, once it has one. */
const lineOf = async (page: Page, n: number) => {
  await expect.poll(() => turn(page, n).getAttribute('data-strand')).not.toBeNull();
  return (await linesOf(page)).find(([name]) => name === `Turn ${n}`)?.[1];
};

/** Everything about seams that is shown now. */
const shownSeams = (page: Page) =>
  page.locator('[data-seam]').evaluateAll((all) => all.map((one) => [one.getAttribute('data-seam'), one.textContent]));

const write = async (page: Page, prompt: string) => {
  // The field is focused first: then the session is prepared.
  await page.getByRole('textbox', { name: 'Prompt', exact: true }).click();
  await page.getByRole('textbox', { name: 'Prompt', exact: true }).fill(prompt);
  await page.keyboard.press('Enter');
};

/** Opens a conversation from elsewhere, sends a prompt, and compares what is shown at once with what is shown after a reload. */
async function expectTheSameAfterReload(page: Page, n: number): Promise<void> {
  await turn(page, n - 1).waitFor();
  await write(page, '/say Here it is.');
  await turn(page, n).getByText('Here it is.', { exact: true }).waitFor();
  await seam(page, n).getByText('did not fit').first().waitFor();
  await turn(page, n)
    .getByText(/^forgetful/)
    .waitFor();
  await lineOf(page, n);
  const [seams, line] = [await shownSeams(page), await lineOf(page, n)];
  expect(seams.map(([at]) => at)).toEqual([String(n)]);
  await page.reload();
  await turn(page, n).waitFor();
  await seam(page, n).waitFor();
  await waitUntilAtEnd(page);
  expect(await lineOf(page, n)).toBe(line);
  expect(await shownSeams(page)).toEqual(seams);
  expect(await lineOf(page, n)).not.toBe(await lineOf(page, n - 1));
}

server.test(
  'what a session was not told of an import is shown at once, and the same after a reload',
  async ({ open }) => {
    const page = await open(`/c/${await importConversation('imported', 60)}`);
    await seam(page, 61).getByText('Brought in with 60 turns. Not yet opened here.').waitFor();
    await expectTheSameAfterReload(page, 61);
    await page.goto(`${page.url()}/turn/1`);
    await turn(page, 1).waitFor();
    expect(await seam(page, 1).count()).toBe(0);
  },
);

server.test(
  'what a session was not told of a fork is shown at once, and no seam is before its first turn',
  async ({ open }) => {
    await importConversation('original', 60);
    const tl = await server.tl();
    const fork = await (await tl.conversation('original').fork({ key: 'copy' })).get();
    const page = await open(`/c/${fork.id}`);
    await seam(page, 61)
      .getByText(/^Branched from .* after turn 60\. Not yet opened here\.$/)
      .waitFor();
    await expectTheSameAfterReload(page, 61);
    await page.goto(`${server.url}/c/${fork.id}/turn/1`);
    await turn(page, 1).waitFor();
    expect(await seam(page, 1).count()).toBe(0);
  },
);

server.test(
  'the line goes on where an agent kept its session, and changes where it was told; also live',
  async ({ open }) => {
    const conversation = (await server.tl()).conversation('line', { agent: 'scripted', restore: ALL });
    await conversation.ask('/say One.');
    const { id } = await conversation.get();
    const page = await open(`/c/${id}`);
    await turn(page, 1).waitFor();
    await conversation.kill();
    await conversation.ask('/say Two.'); // reopened by its agent
    await conversation.ask('/say Three.', { agent: 'forgetful' });
    await conversation.kill();
    await conversation.warm({ agent: 'forgetful' });
    await conversation.ask('/say Four.', { agent: 'forgetful' }); // finds the session of the warm-up
    await conversation.ask('/say Five.', { agent: 'scripted' });
    await turn(page, 5).getByText('Five.', { exact: true }).waitFor();
    const strands = (tab: Page) =>
      tab
        .locator('article[data-strand]')
        .evaluateAll((rows) => rows.map((row) => Number(row.getAttribute('data-strand'))));
    await expect.poll(() => strands(page)).toEqual([1, 1, 2, 3, 4]);
    const lines = await linesOf(page);
    const colours = lines.map(([, line]) => line);
    expect(colours[0]).toBe(colours[1]);
    expect(new Set(colours).size).toBe(4);
    const stitches = () =>
      page.locator('[data-stitch]').evaluateAll((all) => all.map((one) => one.getAttribute('data-stitch')));
    expect(await stitches()).toEqual(['resume', 'handoff', 'transcript', 'handoff']);
    await seam(page, 3).getByText('forgetful took over from scripted and was told all 2 turns.').waitFor();
    await seam(page, 4).getByText('forgetful was killed.').waitFor();
    const seams = await shownSeams(page);
    await page.reload();
    await turn(page, 5).waitFor();
    await seam(page, 4).getByText('forgetful was killed.').waitFor();
    expect(await linesOf(page)).toEqual(lines);
    expect(await shownSeams(page)).toEqual(seams);
    // The outline and the sessions say the same.
    await showPanel(page, 'Sessions');
    const nodes = page.getByRole('button', { name: /go to turn/ });
    await expect
      .poll(async () => (await nodes.allTextContents()).map((text) => text.replace(/ · .*/, '')))
      .toEqual([
        'Turns 1–2scriptedfirst session',
        'Turn 3forgetfultold what was said',
        'Turn 4forgetfultold what was said',
        'Turn 5scriptedtook over in its own session',
      ]);
    const circles = page.getByRole('tabpanel').locator('svg circle');
    const strokes = await circles.evaluateAll((all) => all.map((circle) => getComputedStyle(circle).stroke));
    expect(strokes).toEqual([0, 2, 3, 4].map((at) => colours[at]?.replace(/\) .*/, ')')));
  },
);

server.test(
  'an opened seam says in this order what it means, what is known, how, what was tried and told, and the cost',
  async ({ open }) => {
    const conversation = (await server.tl()).conversation('order', { restore: ALL });
    await conversation.ask('The codeword is osprey.');
    await conversation.kill();
    await conversation.ask('/say Two.');
    const page = await open(`/c/${(await conversation.get()).id}`);
    await seam(page, 2).getByText('forgetful was killed.').waitFor();
    const bar = seam(page, 2);
    expect(await bar.textContent()).toMatch(
      /^forgetful was killed\. A new session was told the one turn\.\s*delivered\s*\d\d:\d\d$/,
    );
    await bar.getByRole('button', { name: /A new session was told/ }).click();
    await bar.getByText('is the one on record').waitFor();
    const text = await bar.innerText();
    const order = [
      'A new session was told the one turn.',
      'What the session knows',
      '1 word for word',
      'How we know',
      'Ways tried, best first',
      'The exact text it was told',
      'Checked in this browser: SHA-256',
      'throughline told order 2',
      'Cost, once:',
    ].map((words) => text.indexOf(words));
    expect(order).toEqual(order.toSorted((a, b) => a - b));
    expect(order.every((at) => at >= 0)).toBe(true);
    // These words are for the tab Raw.
    expect(text).not.toMatch(/\b(rung|receipt|warm-up|ladder)\b/i);
    await axe(page);
  },
);

server.test(
  'a loss of most of the conversation has a block, a banner and a note, until a later seam mends it',
  async ({ open }) => {
    const id = await importConversation('lost', 60);
    const conversation = (await server.tl()).conversation('lost');
    await conversation.ask('/say One more.');
    await conversation.ask('/say And one.');
    const page = await open(`/c/${id}`);
    await turn(page, 62).waitFor();
    await banner(page)
      .getByText(/^This session knows \d+ of 61 turns\.$/)
      .waitFor();
    await page
      .locator('form')
      .getByText(/^does not know turns 1–\d+$/)
      .waitFor();
    await banner(page).getByRole('button', { name: 'Show where' }).click();
    const block = seam(page, 61);
    await block.getByRole('heading', { name: 'Most of this conversation did not fit.' }).waitFor();
    await block.getByText(/turns it does not know: 1–\d+/).waitFor();
    await block.getByText('What it was told was delivered whole.').waitFor();
    await axe(page);
    await conversation.ask('/say All of it.', { restore: { ...ALL, rebuild: true } });
    await banner(page).waitFor({ state: 'detached' });
    expect(await page.getByText(/^does not know turn/).count()).toBe(0);
    // What was lost there stays visible there.
    await block.getByRole('heading', { name: 'Most of this conversation did not fit.' }).waitFor();
  },
);

server.test(
  'a small loss is one sentence with a strip, and a session without the history says so',
  async ({ open }) => {
    const id = await importConversation('in-part', 10);
    const conversation = (await server.tl()).conversation('in-part');
    await conversation.ask('/say One more.', { restore: { lastTurns: 8, budgetTokens: null } });
    await conversation.ask('/say From the beginning.', { restore: { policy: 'off' } });
    const page = await open(`/c/${id}`);
    await seam(page, 11).getByText('It knows 8 of 10 turns; the 2 oldest did not fit.').waitFor();
    expect(await seam(page, 11).locator('svg[data-stitch]').getAttribute('data-stitch')).toBe('part');
    await seam(page, 12)
      .getByText('It started without the history, as you asked. It knows none of the 11 turns above.')
      .waitFor();
    await banner(page).getByText('This session knows none of 11 turns.').waitFor();
  },
);

server.test('while a restore runs the line ends, and the restore can be stopped', async ({ open }) => {
  const conversation = (await server.tl()).conversation('stopped', { restore: ALL });
  const releaseFile = join(server.home.path, `go-${randomUUID()}`);
  await writeFile(releaseFile, '');
  await conversation.ask(`/await ${releaseFile}\n/say One.`);
  const page = await open(`/c/${(await conversation.get()).id}`);
  await turn(page, 1).waitFor();
  await conversation.kill();
  await rm(releaseFile);
  await conversation.send('/say Two.', { restore: { rung: 'replay' } }).accepted;
  const restoring = page.getByRole('region', { name: 'Restoring context' });
  await restoring.getByText('Asking a new session the prompts again: 0 of 1 turn').waitFor();
  expect((await linesOf(page)).at(-1)).toEqual(['Turn 2', 'none']);
  await restoring.getByRole('button', { name: 'Stop' }).click();
  await restoring.waitFor({ state: 'detached' });
  await turn(page, 2)
    .getByText(/^Stopped by you/)
    .first()
    .waitFor();
});

server.test('the line and the strips stay visible in forced colours', async ({ open }) => {
  const conversation = (await server.tl()).conversation('forced', { restore: ALL });
  await conversation.ask('/say One.');
  await conversation.kill();
  await conversation.ask('/say Two.');
  const page = await open(`/c/${(await conversation.get()).id}/seam/2`);
  await page.emulateMedia({ forcedColors: 'active', colorScheme: 'light' });
  await seam(page, 2).getByText('What the session knows').waitFor();
  const drawn = await page.evaluate(() => {
    const row = document.querySelector('article[aria-label="Turn 2"]') as Element;
    const line = getComputedStyle(row, '::before');
    const cell = document.querySelector('[data-seam="2"] button[aria-label^="Turn 1: "] span') as Element;
    const stitch = document.querySelector('[data-stitch] path') as Element;
    return {
      line: [line.borderLeftWidth, line.borderLeftColor],
      strip: [getComputedStyle(cell).borderBottomWidth, getComputedStyle(cell).borderBottomColor],
      stitch: getComputedStyle(stitch).stroke,
    };
  });
  const black = 'rgb(0, 0, 0)';
  expect(drawn).toEqual({ line: ['3px', black], strip: ['24px', black], stitch: black });
});

server.test(
  'on a phone the line is nearer to the edge, and everything fits',
  async ({ open }) => {
    const id = await importConversation('small-screen', 30);
    await (await server.tl()).conversation('small-screen').ask('/say One more.');
    const page = await open(`/c/${id}/seam/31`);
    await seam(page, 31).getByRole('heading', { name: 'Most of this conversation did not fit.' }).waitFor();
    const box = page.getByRole('log', { name: 'Turns' });
    expect(await box.evaluate((log) => log.scrollWidth - log.clientWidth)).toBe(0);
    await turn(page, 31).waitFor();
    const distance = await turn(page, 31).evaluate((row) => {
      const { left, width } = row.getBoundingClientRect();
      const { left: lane } = getComputedStyle(row, '::before');
      return {
        line: left + Number.parseFloat(lane),
        text: (row.querySelector('.prose')?.getBoundingClientRect().left ?? 0) - left,
        width,
      };
    });
    expect(distance.line).toBeLessThan(26);
    expect(distance.text).toBe(34);
    await axe(page);
  },
  PHONE,
);
