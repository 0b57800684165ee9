// The timeline of a conversation: turns, streaming answers, and the seams where sessions were restored.
import { randomUUID } from 'node:crypto';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import { retryUpdate } from '../../../src/core/turn/update.ts';
import { axe, PHONE, pageServer } from './harness.ts';
import { pixelsBelow, stableScrollTop, timeline, waitUntilAtEnd } from './scrolling.ts';

const server = pageServer();

/** The id of a new conversation with so many turns. They are imported, which is faster than running them. */
async function importConversation(key: string, turns: number, answer = (n: number) => `Answer ${n}.`): Promise<string> {
  const messages = Array.from({ length: turns }, (_, index) => [
    { role: 'user', content: `Question ${index + 1}` },
    { role: 'assistant', content: answer(index + 1) },
  ]).flat();
  const tl = await server.tl();
  return (await tl.engine.import(messages, { key, agent: 'scripted' })).id;
}

const turn = (page: Page, n: number) => page.getByRole('article', { name: `Turn ${n}`, exact: true });
const seam = (page: Page, n: number) => page.getByRole('region', { name: `Seam before turn ${n}`, exact: true });

/** The number of the turn that is in the middle of the screen. */
const turnInTheMiddle = (page: Page) =>
  timeline(page).evaluate((box) => {
    const { left, top, height } = box.getBoundingClientRect();
    const row = document.elementFromPoint(left + 400, top + height / 2)?.closest('[data-turn]');
    return Number(row?.getAttribute('data-turn'));
  });

/** Records for every frame: how far the turn moved, whether it stayed the same element, whether any part was blank, and what was selected. */
async function recordFrames(page: Page, n: number): Promise<void> {
  await page.evaluate((at) => {
    const row = document.querySelector(`[data-turn="${at}"]`) as HTMLElement;
    const box = row.closest('[role="log"]') as HTMLElement;
    const recorded = {
      frames: 0,
      moved: 0,
      replaced: 0,
      blank: 0,
      selections: new Set<string>(),
    };
    const first = row.getBoundingClientRect().top;
    const recordFrame = () => {
      recorded.frames += 1;
      if (document.querySelector(`[data-turn="${at}"]`) !== row) recorded.replaced += 1;
      recorded.moved = Math.max(recorded.moved, Math.abs(row.getBoundingClientRect().top - first));
      recorded.selections.add(String(getSelection()));
      const { left, top, width, height } = box.getBoundingClientRect();
      for (const fraction of [0.1, 0.3, 0.5, 0.7, 0.9]) {
        const elementThere = document.elementFromPoint(left + width / 2, top + height * fraction);
        if (elementThere?.closest('[data-turn]') === null && elementThere.closest('button') === null)
          recorded.blank += 1;
      }
      Object.assign(globalThis, { recorded });
      requestAnimationFrame(recordFrame);
    };
    requestAnimationFrame(recordFrame);
  }, n);
}

const recordedFrames = (page: Page) =>
  page.evaluate(() => {
    const { recorded } = globalThis as unknown as {
      recorded: Record<'frames' | 'moved' | 'replaced' | 'blank', number> & { selections: Set<string> };
    };
    return { ...recorded, selections: [...recorded.selections] };
  });

server.test(
  'while an answer streams, the turn that is being read and the selection do not move in any frame',
  async ({ open }) => {
    const id = await importConversation('reading', 60, (n) => `Answer ${n}.\n\n${'Some words. '.repeat(40)}`);
    const page = await open(`/c/${id}`);
    await turn(page, 60).waitFor();
    await waitUntilAtEnd(page);
    await timeline(page).hover();
    // Rows are added above that are higher than estimated. The visible rows move with the wheel, and not a pixel more.
    for (let step = 0; step < 5; step += 1) {
      const row = page.locator(`[data-turn="${await turnInTheMiddle(page)}"]`);
      const top = () => row.evaluate((element) => element.getBoundingClientRect().top);
      const before = await top();
      await page.mouse.wheel(0, -300);
      await expect.poll(top).not.toBe(before);
      await stableScrollTop(timeline(page));
      expect((await top()) - before).toBeCloseTo(300, 0);
    }
    await page.getByRole('button', { name: 'Go to the end' }).waitFor();
    const n = await turnInTheMiddle(page);
    await page.evaluate((at) => {
      const words = document.querySelector(`[data-turn="${at}"] p`);
      if (words) getSelection()?.selectAllChildren(words);
    }, n);
    const selected = await page.evaluate(() => String(getSelection()));
    expect(selected).toMatch(/^(Question|Answer)/);
    await recordFrames(page, n);
    const tl = await server.tl();
    const releaseFile = join(server.home.path, `go-${randomUUID()}`);
    const prompt = `/stream 120 15\n/await ${releaseFile}\n/say ${'More. '.repeat(200)}`;
    const { result } = tl.conversation('reading').send(prompt);
    // The turn runs until enough frames were recorded, however long a frame takes on this machine.
    await expect.poll(async () => (await recordedFrames(page)).frames).toBeGreaterThan(20);
    await writeFile(releaseFile, '');
    await result;
    await page.getByRole('button', { name: 'Send' }).waitFor();
    await page.getByRole('button', { name: 'Send', exact: true }).waitFor();
    expect(await recordedFrames(page)).toMatchObject({ moved: 0, replaced: 0, blank: 0, selections: [selected] });
  },
  { slowdown: 4 },
);

server.test(
  'a selection in an answer is kept while it streams, when a code block closes and when the turn ends',
  async ({ open }) => {
    const conversation = (await server.tl()).conversation('selected');
    const { id } = await conversation.ensure();
    const page = await open(`/c/${id}`);
    const chunk = (text: string) =>
      `/update ${JSON.stringify({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } })}`;
    const releaseFiles = Array.from({ length: 4 }, () => join(server.home.path, `go-${randomUUID()}`));
    const [more = '', code = '', close = '', end = ''] = releaseFiles;
    await conversation.send(
      [
        `${chunk('```js\nlet zero = 0;\n```\n\n')}\n/say Words of the beginning`,
        `/await ${more}\n/say  and more of them.\n${chunk('\n\n```js\nconst first = 1;\n')}`,
        `/await ${code}\n${chunk('const second = 2;\n')}`,
        `/await ${close}\n${chunk('```\n\nWords after the code.')}`,
        `/await ${end}`,
      ].join('\n'),
    ).accepted;
    const answer = turn(page, 1).locator('.prose').last();
    const selected = () => page.evaluate(() => String(getSelection()));
    const select = async (text: string) => {
      await answer.getByText(text).evaluate((element, words) => {
        const node = document.createTreeWalker(element, NodeFilter.SHOW_TEXT).nextNode() as Text;
        const from = node.data.indexOf(words);
        getSelection()?.setBaseAndExtent(node, from, node, from + words.length);
      }, text);
      expect(await selected()).toBe(text);
    };
    // From now on the highlighter is loaded.
    await answer.locator('code .hljs-keyword').waitFor();
    // In a paragraph that grows, and is followed by a code block.
    await select('of the beginning');
    await writeFile(more, '');
    await answer.getByText('const first').waitFor();
    expect(await selected()).toBe('of the beginning');
    // In a code block that grows, and is closed.
    await select('first = 1');
    await writeFile(code, '');
    await answer.getByText('const second').waitFor();
    expect(await selected()).toBe('first = 1');
    await writeFile(close, '');
    await answer.getByText('Words after the code.', { exact: true }).waitFor();
    await stableScrollTop(timeline(page));
    expect(await selected()).toBe('first = 1');
    // The code is highlighted when nothing in it is selected any more. A selection below it is kept when the turn ends.
    await select('Words after');
    await expect.poll(() => answer.locator('code .hljs-keyword').count()).toBe(3);
    await writeFile(end, '');
    await page.getByRole('button', { name: 'Send' }).waitFor();
    await page.getByRole('button', { name: 'Send', exact: true }).waitFor();
    expect(await selected()).toBe('Words after');
  },
);

server.test('while a restore runs, its progress is shown, also in a tab that is opened meanwhile', async ({ open }) => {
  const conversation = (await server.tl()).conversation('replayed', { agent: 'forgetful' });
  const releaseFile = join(server.home.path, `go-${randomUUID()}`);
  await writeFile(releaseFile, '');
  await conversation.ask('The codeword is osprey.');
  await conversation.ask(`/await ${releaseFile}\n/say Through.`);
  await conversation.ask('/say Three.');
  const { id } = await conversation.get();
  const page = await open(`/c/${id}`);
  await turn(page, 3).waitFor();
  await conversation.kill();
  await rm(releaseFile);
  await conversation.send('Which codewords have you seen?', { restore: { rung: 'replay' } }).accepted;
  await page.getByRole('status').getByText('Asking a new session the prompts again: 1 of 3 turns').waitFor();
  const laterTab = await open(`/c/${id}`);
  await laterTab.getByRole('status').getByText('Asking a new session the prompts again: 1 of 3 turns').waitFor();
  expect(await seam(page, 4).count()).toBe(0);
  await writeFile(releaseFile, '');
  for (const tab of [page, laterTab]) {
    await seam(tab, 4).getByText('A new session was asked the 3 prompts again; its answers are new.').waitFor();
    await turn(tab, 4).getByText('osprey').waitFor();
    await expect.poll(() => tab.getByRole('region', { name: 'Restoring context' }).count()).toBe(0);
  }
});

server.test(
  'at the end the timeline follows the stream; scrolling up stops that, and scrolling back to the end resumes it',
  async ({ open }) => {
    const id = await importConversation('following', 30, (n) => `Answer ${n}.\n\n${'Some words. '.repeat(40)}`);
    const page = await open(`/c/${id}`);
    await turn(page, 30).waitFor();
    await waitUntilAtEnd(page);
    const tl = await server.tl();
    const releaseFile = () => join(server.home.path, `go-${randomUUID()}`);
    const [more, button, wheel, end] = [releaseFile(), releaseFile(), releaseFile(), releaseFile()];
    const prompt = [
      `/stream 90 25\n/await ${more}\n/stream 90 25\n/say  It goes on.`,
      `/await ${button}\n/stream 90 5\n/say  Back by the button.`,
      `/await ${wheel}\n/stream 90 5\n/say  Back by the wheel.\n/await ${end}`,
    ].join('\n');
    const answer = tl.conversation('following').send(prompt);
    await page
      .getByRole('status')
      .filter({ hasText: /^Writing$/ })
      .waitFor();
    const words = () => turn(page, 31).locator('.prose').last().textContent();
    await expect.poll(words).toContain('chunk 90');
    await expect.poll(() => pixelsBelow(page)).toBeLessThan(50);
    await timeline(page).hover();
    await page.mouse.wheel(0, -500);
    await page.getByRole('button', { name: 'Go to the end' }).waitFor();
    const scrollTop = await stableScrollTop(timeline(page));
    expect(await pixelsBelow(page)).toBeGreaterThan(300);
    await writeFile(more, '');
    await expect.poll(words).toContain('It goes on.');
    expect(await timeline(page).evaluate((box) => box.scrollTop)).toBe(scrollTop);
    /** The timeline is back at the end, and scrolls with the text that arrives then. */
    const expectFollowing = async (releaseFile: string, text: string) => {
      await waitUntilAtEnd(page);
      const top = () => timeline(page).evaluate((box) => box.scrollTop);
      const before = await top();
      await writeFile(releaseFile, '');
      await expect.poll(words).toContain(text);
      await expect.poll(top).toBeGreaterThan(before + 100);
      await expect.poll(() => pixelsBelow(page)).toBeLessThan(50);
    };
    await page.getByRole('button', { name: 'Go to the end' }).click();
    await expectFollowing(button, 'Back by the button.');
    // Opening a menu stops it as well, until the timeline is back at the end.
    await turn(page, 30).getByRole('button', { name: 'Actions for turn 30' }).click();
    await page.getByRole('menuitem', { name: 'Copy link' }).waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('menuitem', { name: 'Copy link' }).waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Go to the end' }).waitFor();
    await timeline(page).hover();
    await page.mouse.wheel(0, 10_000);
    await expectFollowing(wheel, 'Back by the wheel.');
    await writeFile(end, '');
    await answer.result;
    await turn(page, 31)
      .getByText(/scripted/)
      .waitFor();
    await expect.poll(() => pixelsBelow(page)).toBeLessThan(50);
  },
  { slowdown: 4 },
);

server.test(
  'a prompt that is sent from far above scrolls to its answer, and a question is in view',
  async ({ open }) => {
    const id = await importConversation('sending', 30, (n) => `Answer ${n}.\n\n${'Some words. '.repeat(40)}`);
    const page = await open(`/c/${id}/turn/5`);
    await turn(page, 5).waitFor();
    await expect.poll(() => pixelsBelow(page)).toBeGreaterThan(1_000);
    await page.getByRole('textbox', { name: 'Prompt', exact: true }).fill('/say Here it is.');
    await page.keyboard.press('Enter');
    await turn(page, 31).getByText('Here it is.', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Send' }).waitFor();
    await expect.poll(() => pixelsBelow(page)).toBeLessThan(50);
    const asking = (await server.tl()).conversation('sending');
    await asking.send('/ask May I?', { permissions: 'ask' }).accepted;
    await page.getByRole('region', { name: /^Permission: / }).waitFor();
    await turn(page, 32)
      .getByRole('button', { name: /^Refuse/ })
      .waitFor();
    await expect.poll(() => pixelsBelow(page)).toBeLessThan(50);
    await asking.cancel();
  },
);

server.test(
  'a conversation opens at its end, also when its turns are higher than estimated',
  async ({ open }) => {
    const answers = [
      '## Heading\n\n- one\n- two\n- three',
      'Code:\n\n```ts\nexport function one(): number {\n  const two = 2;\n  return two - 1;\n}\n```\n\nBelow it.',
      'A table:\n\n| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |',
    ];
    const id = await importConversation('tall', 3, (n) => answers[n - 1] ?? '');
    const conversation = (await server.tl()).conversation('tall');
    const prompt = '/think About it.\n/tool read notes.md\n/tool write more.md\n/say One.';
    await conversation.ask(prompt, { agent: 'forgetful' });
    await conversation.kill();
    await conversation.ask('/say Two.');
    const page = await open(`/c/${id}`);
    await seam(page, 5).waitFor();
    await page.getByRole('button', { name: 'Hide the panel' }).click();
    await page.getByRole('button', { name: 'Show the panel' }).click();
    await waitUntilAtEnd(page);
  },
  { viewport: { width: 1440, height: 900 }, reducedMotion: 'reduce' },
);

server.test('a seam that was opened before its turn stays open when the turn begins and ends', async ({ open }) => {
  const conversation = (await server.tl()).conversation('opened-seam', { agent: 'scripted' });
  await conversation.ask('The codeword is heron.');
  const { id } = await conversation.get();
  await conversation.kill();
  await conversation.warm();
  const page = await open(`/c/${id}`);
  // The seam of the warm-up is after the last turn, before the next prompt.
  const bar = seam(page, 2).locator('button[aria-expanded]').first();
  await bar.click();
  await seam(page, 2).getByText('Ways tried, best first').waitFor();
  const releaseFile = join(server.home.path, 'opened-seam');
  const answer = conversation.send(`/say Begun.\n/await ${releaseFile}`);
  await turn(page, 2).getByText('Begun.', { exact: true }).waitFor();
  await seam(page, 2).getByText('Ways tried, best first').waitFor();
  await writeFile(releaseFile, '');
  await answer;
  await turn(page, 2).getByRole('status').waitFor({ state: 'detached' });
  await seam(page, 2).getByText('Ways tried, best first').waitFor();
  await bar.click();
  await seam(page, 2).getByText('Ways tried, best first').waitFor({ state: 'detached' });
});

server.test('the address of a turn or a seam opens the conversation there', async ({ open }) => {
  const id = await importConversation('addresses', 400);
  const page = await open(`/c/${id}/turn/123`);
  await turn(page, 123).waitFor();
  await expect.poll(() => turn(page, 123).evaluate((row) => row.getBoundingClientRect().top)).toBeLessThan(200);
  await turn(page, 123).getByText('Answer 123.').waitFor();
  await turn(page, 123).getByRole('button', { name: 'Actions for turn 123' }).click();
  await page.getByRole('menuitem', { name: 'Fork before this turn' }).click();
  await page.waitForURL((url) => !url.pathname.includes(id));
  await turn(page, 122).waitFor();
  await page.getByText('Branched from').waitFor();
  await expect.poll(() => page.getByRole('textbox', { name: /prompt/i }).inputValue()).toBe('Question 123');
  // The seam of a warm-up is after the last turn, which is higher than the screen.
  const tl = await server.tl();
  const conversation = tl.conversation('warmed', { agent: 'scripted' });
  await conversation.ask(`/say ${'Some words. '.repeat(500)}`);
  await conversation.kill();
  const warmed = await conversation.get();
  await tl.engine.warm(warmed.id);
  await page.goto(`${server.url}/c/${warmed.id}/seam/2`);
  await seam(page, 2).getByText('Ways tried, best first').waitFor();
  await stableScrollTop(timeline(page));
  await expect.poll(() => seam(page, 2).evaluate((bar) => bar.getBoundingClientRect().top)).toBeLessThan(700);
});

server.test('scrolling to the start loads the first turns', async ({ open }) => {
  const id = await importConversation('start', 300);
  const page = await open(`/c/${id}`);
  await turn(page, 300).waitFor();
  await waitUntilAtEnd(page);
  await timeline(page).evaluate((box) => box.scrollTo(0, 0));
  await turn(page, 1).getByText('Answer 1.').waitFor();
});

server.test('the scroll position is kept over a reload', async ({ open }) => {
  const id = await importConversation('place', 200);
  const page = await open(`/c/${id}`);
  await turn(page, 200).waitFor();
  await waitUntilAtEnd(page);
  await timeline(page).evaluate((box) => box.scrollTo(0, box.scrollHeight / 2));
  // Both in one call, because the row may be removed a moment later.
  const firstRow = () =>
    timeline(page).evaluate((box) => {
      const { top, left } = box.getBoundingClientRect();
      const row = document.elementFromPoint(left + box.clientWidth / 2, top + 40)?.closest('[data-turn]');
      return { n: row?.getAttribute('data-turn'), text: row?.textContent };
    });
  const first = async () => (await firstRow()).n;
  // When the turns there are loaded, their heights differ from the estimates. The position that is stored after that counts.
  await expect.poll(async () => (await firstRow()).text).toMatch(/Answer/);
  await stableScrollTop(timeline(page));
  const storageKey = `throughline.place.${id}`;
  await page.evaluate((name) => localStorage.removeItem(name), storageKey);
  await timeline(page).evaluate((box) => box.scrollBy(0, 8));
  await expect.poll(() => page.evaluate((name) => localStorage.getItem(name), storageKey)).not.toBeNull();
  const before = await first();
  await page.reload();
  await expect.poll(first).toBe(before);
});

server.test(
  'when the session is killed, the next turn has a seam with the exact text that the new session was given',
  async ({ open }) => {
    const tl = await server.tl();
    const conversation = tl.conversation('killed', { agent: 'forgetful' });
    await conversation.ask('The codeword is osprey.');
    const { id } = await conversation.get();
    const page = await open(`/c/${id}`);
    await turn(page, 1).waitFor();
    await conversation.kill();
    await conversation.ask('Which codewords have you seen?');
    const bar = seam(page, 2);
    await bar.getByText('A new session was told the one turn.').waitFor();
    await turn(page, 2).getByText('osprey').waitFor();
    await bar.getByRole('button', { name: /^forgetful was killed/ }).click();
    await bar.getByText('the text below reached the agent whole.').waitFor();
    await bar.getByText('1 word for word').waitFor();
    await bar.getByText('throughline told killed 2').waitFor();
    await bar.getByText('is the one on record').waitFor();
    await bar.getByText('The codeword is osprey.').waitFor();
    await axe(page);
    await bar.getByRole('button', { name: /^Turn 1: word for word/ }).click();
    await page.waitForURL((url) => url.pathname === `/c/${id}/turn/1`);

    // A tab that is opened later shows the same, and reports a hash that does not match.
    const laterTab = await open(`/c/${id}/seam/2`);
    await laterTab.evaluate(() => {
      crypto.subtle.digest = async () => new ArrayBuffer(32);
    });
    await seam(laterTab, 2).getByText('forgetful was killed.').waitFor();
    await seam(laterTab, 2).getByText('this is not the text with SHA-256').waitFor();
  },
);

server.test('a failed restore is shown with the ways to continue', async ({ open }) => {
  const tl = await server.tl();
  const conversation = tl.conversation('unrestored', { agent: 'forgetful' });
  await conversation.ask('The codeword is osprey.');
  await conversation.kill();
  await expect(conversation.ask('And now?', { restore: { rung: 'resume' } })).rejects.toThrow();
  const page = await open(`/c/${(await conversation.get()).id}/seam/2`);
  const bar = seam(page, 2);
  await bar.getByText('No session could be given the history. Your prompt was not sent.').waitFor();
  await bar.getByRole('button', { name: 'Send again' }).waitFor();
  await axe(page);
  await bar.getByRole('button', { name: 'Restore with…' }).click();
  await page.getByRole('menuitem', { name: 'What fits, also without proof' }).click();
  await seam(page, 3).getByText('A new session was told the one turn.').waitFor();
  await bar.getByRole('button', { name: 'Send with another agent' }).click();
  await page.getByRole('menuitem', { name: 'rotating' }).click();
  await seam(page, 4).getByText('rotating took over from forgetful and was told all 2 turns.').waitFor();
});

server.test('texts, tool outputs and names never run as code, become markup or cause requests', async ({ open }) => {
  const ATTACK = `<img src=x onerror="pwned=1"><script>pwned=1</script>`;
  const texts = [
    ATTACK,
    `\`\`\`${ATTACK}\n${ATTACK}\n\`\`\``,
    `\\\`${ATTACK}\\\``,
    `[a](javascript:pwned=1) [b](data:text/html,${ATTACK}) <javascript:pwned=1> ![x](https://elsewhere.example/?q=secret)`,
    `| ${ATTACK} |\n|---|\n| ${ATTACK} |`,
    `<a href="javascript:pwned=1">c</a>\n\n<iframe src="javascript:pwned=1"></iframe>\n\n<style>*{display:none}</style>`,
  ];
  const tl = await server.tl();
  const source = tl.conversation('attack source', { agent: 'scripted' });
  await source.ask('/say Hello.');
  const exported = await source.export();
  const [record] = exported.records;
  if (record === undefined) throw new Error('the record is missing');
  const tool = {
    type: 'tool',
    id: 't',
    name: ATTACK,
    kind: 'execute',
    target: `${ATTACK}.ts`,
    input: { command: ATTACK },
  };
  const parts = [
    { type: 'thought', text: ATTACK },
    { ...tool, output: `[diff ${ATTACK}, line 1]\n-${ATTACK}\n+${ATTACK}\n${ATTACK}\u001b[31m`, status: 'failed' },
    ...texts.map((text) => ({ type: 'text', text })),
  ];
  const prompt = [
    { type: 'text', text: ATTACK },
    { type: 'resource_link', uri: 'javascript:pwned=1', name: ATTACK },
    {
      type: 'image',
      mimeType: 'image/svg+xml',
      data: btoa('<svg xmlns="http://www.w3.org/2000/svg" onload="parent.pwned=1"/>'),
    },
  ];
  const attack = await tl.engine.import({ ...exported, records: [{ ...record, parts, prompt }] }, { key: 'attack' });
  await tl.engine.rename(attack.id, ATTACK);
  const page = await open(`/c/${attack.id}`);
  await turn(page, 1).waitFor();
  const folded = turn(page, 1).locator('button[aria-expanded="false"]:not([aria-haspopup])');
  while ((await folded.count()) > 0) await folded.first().click();
  await turn(page, 1).getByText('onerror').first().waitFor();
  await turn(page, 1).locator('img').waitFor({ state: 'attached' });
  const found = await page.evaluate(() => ({
    ran: 'pwned' in globalThis,
    made: document.querySelectorAll('#root :is(script, iframe, style, [onerror], [onload])').length,
    links: [...document.querySelectorAll<HTMLAnchorElement>('article a')].map(({ protocol }) => protocol),
    images: [...document.querySelectorAll<HTMLImageElement>('article img')].map(({ src }) => src.slice(0, 10)),
  }));
  expect(found).toMatchObject({ ran: false, made: 0, images: ['data:image'] });
  expect(found.links.filter((protocol) => !/^https?:$/.test(protocol))).toEqual([]);
});

server.test('the search finds words in the whole conversation, also in turns that are not loaded', async ({ open }) => {
  const id = await importConversation('finding', 500, (n) =>
    n === 7 || n === 480 ? 'The codeword is **osprey**.' : 'Noted.',
  );
  const page = await open(`/c/${id}`);
  await turn(page, 500).waitFor();
  await page.keyboard.press('Control+f');
  const field = page.getByRole('searchbox', { name: 'Find in this conversation' });
  // While turns are still being searched, no number is shown.
  const mayRespond = Promise.withResolvers<void>();
  await page.route(/\/turns\?/, async (route) => {
    await mayRespond.promise;
    await route.continue();
  });
  await field.fill('OSPREY');
  await expect.poll(() => page.getByRole('search').getByRole('status').textContent()).toBe('searching');
  mayRespond.resolve();
  await page
    .getByRole('status')
    .filter({ hasText: /^2 turns$/ })
    .waitFor();
  await field.press('Enter');
  await turn(page, 480).waitFor();
  await field.press('Enter');
  await turn(page, 7).getByText('osprey').waitFor();
  await page
    .getByRole('status')
    .filter({ hasText: /^1 of 2 turns$/ })
    .waitFor();
  await expect.poll(() => page.evaluate(() => CSS.highlights.get('found-here')?.size)).toBe(1);
  await field.press('Escape');
  await expect.poll(() => page.evaluate(() => CSS.highlights.size)).toBe(0);
});

server.test(
  'the search finds words in tools and thoughts, and opens the one with the current match',
  async ({ open }) => {
    const conversation = (await server.tl()).conversation('folded', { agent: 'scripted' });
    await conversation.ask('/think A kestrel may be meant.\n/tool Read kestrel.txt\n/say Done.');
    await conversation.ask('/say Nothing here.');
    const page = await open(`/c/${(await conversation.get()).id}`);
    await turn(page, 2).waitFor();
    await page.keyboard.press('Control+f');
    const field = page.getByRole('searchbox', { name: 'Find in this conversation' });
    await field.fill('kestrel may be');
    await page
      .getByRole('status')
      .filter({ hasText: /^1 turn$/ })
      .waitFor();
    const run = turn(page, 1).getByRole('button', { name: /1 file changed/ });
    expect(await run.getAttribute('aria-expanded')).toBe('false');
    await field.press('Enter');
    await expect.poll(() => run.getAttribute('aria-expanded')).toBe('true');
    const thought = turn(page, 1).getByRole('button', { name: /^Thought/ });
    expect(await thought.getAttribute('aria-expanded')).toBe('true');
    expect(
      await turn(page, 1)
        .getByRole('button', { name: /^Changed/ })
        .getAttribute('aria-expanded'),
    ).toBe('false');
    await field.press('Escape');
    await expect.poll(() => run.getAttribute('aria-expanded')).toBe('false');
  },
);

server.test(
  'on a phone a conversation and an open seam fit the screen',
  async ({ open }) => {
    const tl = await server.tl();
    const conversation = tl.conversation('phone', { agent: 'forgetful' });
    await conversation.ask(`/say ${'averyverylongword'.repeat(20)}`);
    await conversation.kill();
    await conversation.ask('/tool Read a-file-with-quite-a-long-name-that-does-not-fit.txt');
    const page = await open(`/c/${(await conversation.get()).id}/seam/2`);
    await seam(page, 2).getByText('Ways tried, best first').waitFor();
    expect(await timeline(page).evaluate((box) => box.scrollWidth - box.clientWidth)).toBe(0);
    // The seam is higher than the screen, so its beginning must be visible.
    const pixelsBelowTop = () =>
      timeline(page).evaluate((box) => {
        const bar = box.querySelector('[data-seam="2"]');
        return (bar?.getBoundingClientRect().top ?? Number.NaN) - box.getBoundingClientRect().top;
      });
    await stableScrollTop(timeline(page));
    expect(await pixelsBelowTop()).toBeGreaterThanOrEqual(0);
    await axe(page);
  },
  PHONE,
);

server.test('while the API of the model does not answer, the turn says so until the answer comes', async ({ open }) => {
  const conversation = (await server.tl()).conversation('unanswered');
  const { id } = await conversation.ensure();
  const page = await open(`/c/${id}`);
  const [answer, end] = [0, 1].map(() => join(server.home.path, `go-${randomUUID()}`)) as [string, string];
  const known = { attempt: 4, of: 10, inMs: 35_000, status: 529, reason: 'overloaded' };
  const lines = [
    `/update ${JSON.stringify(retryUpdate(known))}`,
    `/await ${answer}`,
    '/say Here it is.',
    `/await ${end}`,
  ];
  await conversation.send(lines.join('\n')).accepted;
  const notice = page.getByText('The model’s API does not answer (529 overloaded, attempt 4 of 10, next in 35 s).');
  await notice.waitFor();
  await writeFile(answer, '');
  await page.getByText('Here it is.', { exact: true }).waitFor();
  await notice.waitFor({ state: 'detached' });
  await writeFile(end, '');
  await page.getByRole('button', { name: 'Send', exact: true }).waitFor();
});

server.test('an address of a turn that is not there says so, and leads to the last one', async ({ open }) => {
  const id = await importConversation('twelve', 12);
  const page = await open(`/c/${id}/turn/999`);
  await page.getByText('There is no turn 999 in this conversation.').waitFor();
  await turn(page, 12).waitFor();
  await page.getByRole('link', { name: 'Go to the last one, 12' }).click();
  await page.waitForURL(/\/turn\/12$/);
  await page.getByText('There is no turn').waitFor({ state: 'detached' });
});

server.test(
  'the frame around the turn of an address goes away with the first action, or after a moment',
  async ({ open }) => {
    const id = await importConversation('framed', 30);
    const page = await open(`/c/${id}/turn/9`);
    const frame = page.locator('[data-target]');
    await frame.waitFor();
    await page.keyboard.press('Shift');
    await frame.waitFor({ state: 'detached' });
    const other = await open(`/c/${id}/turn/9`);
    await other.locator('[data-target]').waitFor();
    await other.locator('[data-target]').waitFor({ state: 'detached' });
  },
);

server.test('keys go from prompt to prompt, also while somebody writes', async ({ open }) => {
  const id = await importConversation('prompts', 40, (n) => `Answer ${n}.\n\n${'Some words. '.repeat(300)}`);
  const page = await open(`/c/${id}`);
  await waitUntilAtEnd(page);
  await page.getByRole('textbox', { name: 'Prompt', exact: true }).click();
  /** Pixels from the top of the timeline to a turn. */
  const topOf = (n: number) =>
    turn(page, n).evaluate((row) => {
      const log = row.closest('[role="log"]') as HTMLElement;
      return Math.round(row.getBoundingClientRect().top - log.getBoundingClientRect().top);
    });
  const at = async (n: number) => {
    await turn(page, n).waitFor();
    await expect.poll(() => topOf(n)).toBe(16);
    await stableScrollTop(timeline(page));
  };
  // The beginning of the answer that is on the screen comes first.
  await page.keyboard.press('Alt+ArrowUp');
  await at(40);
  await page.keyboard.press('Alt+ArrowUp');
  await at(39);
  await page.keyboard.press('Alt+ArrowUp');
  await at(38);
  await page.keyboard.press('Alt+ArrowDown');
  await at(39);
  await page.keyboard.press('Escape');
  await page.getByRole('textbox', { name: 'Prompt', exact: true }).blur();
  await page.keyboard.press('?');
  await page.getByRole('dialog').getByText('Go to the previous prompt').waitFor();
});
