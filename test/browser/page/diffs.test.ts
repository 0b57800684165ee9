// Changes of files on the page: in the timeline as the agent reported them, and in the questions of the real Claude.
import { randomUUID } from 'node:crypto';
import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import type { Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Model, startModel } from '../../../src/testing/index.ts';
import { claudeEnvironment, findClaude, NOT_INSTALLED, packageFolder, userHome } from '../../agents/support/claude.ts';
import { AGENTS } from '../../e2e/cli/agents.ts';
import { axe, PHONE, pageServer } from './harness.ts';

let model: Model | null = null;
beforeAll(async () => {
  model = await startModel();
  const env = claudeEnvironment(model, userHome(server.home.path));
  const claude = { adapter: 'claude-sdk', package: packageFolder, env };
  server.home.configure({ defaultAgent: 'scripted', agents: { scripted: AGENTS.scripted, claude } });
});
const server = pageServer();
afterAll(() => model?.close());

const BEFORE = Array.from({ length: 60 }, (_, n) => `const line${n + 1} = ${n + 1};\n`).join('');
const AFTER = BEFORE.replace('= 10;', '= 100;').replace('= 12;', '= "\u202etwelve";');

const changes = (scope: Page | Locator, file: string) => scope.getByRole('region', { name: `Changes in ${file}` });
/** What is shown, as a person reads it: signs and numbers are in the order of the page. */
const wordsOf = async (diff: Locator) => (await diff.innerText()).replaceAll(/\s+/g, ' ');

/** A conversation whose agent reports a tool with this content, with all of its turn opened. */
async function withTool(open: (path: string) => Promise<Page>, content: readonly object[]): Promise<Page> {
  const tool = {
    sessionUpdate: 'tool_call',
    toolCallId: 't1',
    title: 'Edit',
    kind: 'edit',
    status: 'completed',
    content,
  };
  const conversation = (await server.tl()).conversation(randomUUID(), { agent: 'scripted' });
  await conversation.ask(`/update ${JSON.stringify(tool)}\n/say Done.`);
  const page = await open(`/c/${(await conversation.get()).id}`);
  await page.getByText('Done.', { exact: true }).first().waitFor();
  await page
    .locator('article')
    .last()
    .evaluate((row) => {
      for (const button of row.querySelectorAll<HTMLElement>('button[aria-expanded="false"]:not([aria-haspopup])'))
        button.click();
    });
  return page;
}

server.test('an edit is a diff with common lines, right counts and folds that open', async ({ open }) => {
  const page = await withTool(open, [{ type: 'diff', path: '/work/src/limit.ts', oldText: BEFORE, newText: AFTER }]);
  const diff = changes(page, '/work/src/limit.ts');
  await diff.waitFor();
  const words = await wordsOf(diff);
  expect(words).toContain('/work/src/limit.ts +2 −2');
  expect(words).toContain(
    '9 9 const line9 = 9; 10 − const line10 = 10; 10 + const line10 = 100; 11 11 const line11 = 11;',
  );
  expect(words).toContain('U+202E · turns text round');
  expect(await diff.locator('mark', { hasText: '100' }).count()).toBe(1);
  // The colours come later, and take no text away.
  await diff.locator('.hljs-keyword').first().waitFor();
  expect(await wordsOf(diff)).toBe(words);
  await axe(page);
});

server.test(
  'on a phone a diff has one column of numbers, and its lines wrap',
  async ({ open }) => {
    const long = `${'word '.repeat(60)}end`;
    const page = await withTool(open, [{ type: 'diff', path: '/a.txt', oldText: 'x\ny\n', newText: `x\n${long}\n` }]);
    const diff = changes(page, '/a.txt');
    await diff.waitFor();
    expect(await wordsOf(diff)).toMatch(/^\/a\.txt \+1 −1 1 x − y 2 \+ word /);
    const isWide = await diff.evaluate((section) => section.scrollWidth > section.clientWidth);
    expect(isWide).toBe(false);
    await axe(page);
  },
  PHONE,
);

server.test('output that only looks like a diff is text', async ({ open }) => {
  const text = '[diff /etc/passwd, line 1]\n-root\n+you';
  const page = await withTool(open, [{ type: 'content', content: { type: 'text', text } }]);
  // The prompt, which is on the page as well, has more before it.
  await page.getByText(/^\[diff \/etc\/passwd, line 1\]/).waitFor();
  expect(await changes(page, '/etc/passwd').count()).toBe(0);
});

const WITH_CLAUDE = 'an edit of Claude is asked for as a diff, and then shown with the numbers of its lines';
if (findClaude() === null) test(WITH_CLAUDE, (context) => context.skip(NOT_INSTALLED));
else
  server.test(WITH_CLAUDE, async ({ open }) => {
    const cwd = mkdtempSync(join(server.home.path, 'edits-'));
    const path = join(cwd, 'notes.ts');
    const conversation = (await server.tl()).conversation(randomUUID(), { agent: 'claude', cwd });
    const write = `model: tool Write ${JSON.stringify({ file_path: path, content: BEFORE })}`;
    const edit = { file_path: path, old_string: 'line30 = 30;', new_string: 'line30 = 31;' };
    const prompt = `${write}\nmodel: tool Edit ${JSON.stringify(edit)}\nmodel: say Done.`;
    const { id } = await conversation.ensure();
    await conversation.send(prompt, { permissions: 'ask' }).accepted;
    const page = await open(`/c/${id}`);
    const card = page.getByRole('region', { name: /^Permission: / });
    const allow = page.locator('button[aria-disabled=false]', { hasText: /^Allow/ }).first();

    await card.getByText('+60 −0').waitFor();
    await allow.click();
    const asked = changes(card, path).filter({ hasText: '+1 −1' });
    await asked.waitFor();
    expect(await wordsOf(asked)).toContain('− line30 = 30; + line30 = 31;');
    expect(await card.innerText()).not.toContain('old_string');
    await allow.click();
    await expect.poll(async () => (await conversation.turns())[0]?.state).toBe('completed');

    const [record] = await conversation.records();
    const diffs = record?.parts.flatMap((part) => (part.type === 'tool' ? (part.diffs ?? []) : []));
    expect(diffs?.map(({ lines }) => lines)).toEqual([
      [1, 1],
      [27, 27],
    ]);
  });
