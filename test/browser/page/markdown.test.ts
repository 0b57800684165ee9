// Answers in Markdown, as a person reads them.
import { randomUUID } from 'node:crypto';
import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import { axe, PHONE, pageServer } from './harness.ts';
import { timeline } from './scrolling.ts';

const server = pageServer();

/** The path of a new conversation with this answer. */
async function answered(content: string): Promise<string> {
  const tl = await server.tl();
  const messages = [
    { role: 'user', content: 'Show me.' },
    { role: 'assistant', content },
  ];
  return `/c/${(await tl.engine.import(messages, { key: randomUUID(), agent: 'scripted' })).id}`;
}

const answer = (page: Page) => page.getByRole('article', { name: 'Turn 1', exact: true }).locator('.prose').last();

server.test(
  'tables do not break words, numbers and dates, and scroll in their own box',
  async ({ open }) => {
    const row = ['Internationalization', '2026-11-19', '-1,234,567.89', 'src/payouts/retry.test.ts', 'two words'];
    const path = await answered(`|${row.join('|')}|\n|${'---|'.repeat(5)}\n|${row.join('|')}|`);
    const page = await open(path);
    const table = answer(page).getByRole('region', { name: 'Table' });
    await table.waitFor();
    const lines = await table.locator('td').evaluateAll((cells) =>
      cells.map((cell) => {
        const range = document.createRange();
        range.selectNodeContents(cell);
        return new Set([...range.getClientRects()].map(({ top }) => Math.round(top))).size;
      }),
    );
    expect(lines.slice(0, 4)).toEqual([1, 1, 1, 1]);
    expect(await table.evaluate((box) => box.scrollWidth - box.clientWidth)).toBeGreaterThan(100);
    expect(await timeline(page).evaluate((box) => box.scrollWidth - box.clientWidth)).toBe(0);
    await axe(page);
  },
  PHONE,
);

server.test('characters that are written by name are shown, except in code', async ({ open }) => {
  const page = await open(await answered('A &amp; B &lt;i&gt; 1&nbsp;000 &mdash; &eacute;&#33; `&amp;` AT&T \\&lt;'));
  await answer(page).getByText('A & B').waitFor();
  expect(await answer(page).textContent()).toBe('A & B <i> 1\u00a0000 — é! &amp; AT&T &lt;');
});

server.test('the box of a task stands before its text, also with empty lines between tasks', async ({ open }) => {
  const page = await open(await answered('- [ ] one\n\n- [x] two\n\n  more\n\nThen:\n\n- [ ] three\n  - [x] four'));
  await answer(page).getByText('four').waitFor();
  const tasks = await answer(page)
    .locator('li')
    .evaluateAll((items) =>
      items.map((item) => {
        const boxes = item.querySelectorAll<HTMLInputElement>('input');
        const range = document.createRange();
        const text = document.createTreeWalker(item, NodeFilter.SHOW_TEXT).nextNode();
        if (text !== null) range.selectNodeContents(text);
        const [box, words] = [boxes[0]?.getBoundingClientRect(), range.getBoundingClientRect()];
        const isBefore =
          box !== undefined && box.right <= words.left && box.bottom > words.top && box.top < words.bottom;
        return { text: text?.nodeValue, isDone: boxes[0]?.checked, isBefore, boxes: boxes.length };
      }),
    );
  const task = (text: string, isDone: boolean, boxes = 1) => ({ text, isDone, isBefore: true, boxes });
  expect(tasks).toEqual([task('one', false), task('two', true), task('three', false, 2), task('four', true)]);
});

server.test('quotes and lists stand on the side where their text begins', async ({ open }) => {
  const hebrew = 'שלום עולם';
  const page = await open(await answered(`> ${hebrew}\n\n- ${hebrew}\n  - ${hebrew}\n\n> Hello\n\n- Hello\n  1. one`));
  await answer(page).getByText('one').waitFor();
  const sides = await answer(page)
    .locator('blockquote, ul, ol')
    .evaluateAll((boxes) =>
      boxes.map((box) => {
        const { direction, borderRightWidth, borderLeftWidth, paddingRight, paddingLeft } = getComputedStyle(box);
        const wide = (one: string, other: string) => Number.parseFloat(one) > Number.parseFloat(other);
        return `${direction} ${wide(borderRightWidth, borderLeftWidth) || wide(paddingRight, paddingLeft) ? 'right' : 'left'}`;
      }),
    );
  expect(sides).toEqual(['rtl right', 'rtl right', 'rtl right', 'ltr left', 'ltr left', 'ltr left']);
});

server.test('a long block of code is folded, and find opens it', async ({ open }) => {
  const code = Array.from({ length: 5_000 }, (_, index) => `const line${index + 1} = ${index + 1};`).join('\n');
  const page = await open(await answered(`\`\`\`ts\n${code}\n\`\`\`\n\nAfter it.`));
  await answer(page).getByText('After it.').waitFor();
  const shown = answer(page).locator('pre');
  expect(await shown.innerText()).toMatch(/^const line1 = 1;\n(.+\n){18}const line20 = 20;\n?$/);
  await page.keyboard.press('Control+f');
  const field = page.getByRole('searchbox', { name: 'Find in this conversation' });
  await field.fill('line4711 =');
  await page
    .getByRole('status')
    .filter({ hasText: /^1 turn$/ })
    .waitFor();
  await field.press('Enter');
  await expect.poll(() => shown.innerText()).toContain('line4711 =');
  await field.press('Escape');
  await answer(page).getByRole('button', { name: '4,980 more lines' }).click();
  await expect.poll(() => shown.innerText()).toContain('line5000 =');
  await axe(page);
});

const WORDS = 'A word and another, '.repeat(50_000);
const SOLID = 'x1y2z3w4'.repeat(125_000);

for (const [what, text] of [
  ['words', WORDS],
  ['a text without spaces', SOLID],
  ['marks', '**a** `b` [c](https://example.org) '.repeat(28_000)],
  ['code in a sentence', `\`${SOLID}\``],
  ['a cell', `| a |\n|---|\n| ${SOLID} |`],
  ['a block of code', `\`\`\`ts\n${'const a = 1; '.repeat(77_000)}\n\`\`\``],
] as const) {
  server.test(`a line of 1 MB takes no longer than half a second: ${what}`, async ({ context, open }) => {
    const page = await open('/');
    const path = await answered(`Before.\n\n${text}`);
    const session = await context.newCDPSession(page);
    // The time of the processor: how long it takes on a machine that does other work as well says nothing.
    await session.send('Performance.enable', { timeDomain: 'threadTicks' });
    const spent = async () => {
      const { metrics } = await session.send('Performance.getMetrics');
      return (metrics.find(({ name }) => name === 'TaskDuration')?.value ?? Number.NaN) * 1_000;
    };
    const before = await spent();
    await page.evaluate((to) => history.pushState(null, '', to), path);
    await answer(page).getByText('Before.').waitFor();
    await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => setTimeout(done))));
    expect((await spent()) - before).toBeLessThan(500);
    await answer(page)
      .getByRole('button', { name: /^[\d,]+ more characters$/ })
      .waitFor();
  });
}
