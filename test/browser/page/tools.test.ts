// What an agent did between its words: a run of tools is one line, and opens to rows and their output.
import { randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import type { RecordPart } from '../../../src/client.ts';
import { axe, PHONE, pageServer } from './harness.ts';

const server = pageServer();

const turn = (page: Page, n: number) => page.getByRole('article', { name: `Turn ${n}`, exact: true });

/** The path of a new conversation with one turn of these parts. */
async function conversationOf(...parts: readonly RecordPart[]): Promise<string> {
  const tl = await server.tl();
  const source = tl.conversation(randomUUID(), { agent: 'scripted' });
  await source.ask('/say Hello.');
  const exported = await source.export();
  const records = exported.records.map((record) => ({ ...record, parts }));
  return `/c/${(await tl.engine.import({ ...exported, records }, { key: randomUUID() })).id}`;
}

let ids = 0;
function tool(kind: string, target: string, fields: object = {}): RecordPart {
  ids += 1;
  const known = { type: 'tool', id: `tool ${ids}`, name: kind, kind, target, input: null, output: null } as const;
  return { ...known, status: 'completed', ms: 1_000, ...fields };
}

const ESC = '\u001b';

server.test('a run of tools is one line, which opens to a row for each', async ({ open }) => {
  const path = await conversationOf(
    { type: 'text', text: 'Before.' },
    tool('read', 'src/a.ts', { output: '     1→a\n     2→b' }),
    { type: 'thought', text: 'Where is it called?' },
    tool('search', 'transfer(', { output: 'a.ts:1:x\nb.ts:2:x' }),
    tool('execute', 'npm test', { ms: 46_000, output: 'all pass' }),
    { type: 'text', text: 'Between.' },
    tool('edit', 'src/a.ts', {
      diffs: [{ path: 'src/a.ts', oldText: 'a\n', newText: 'b\nc\n', lines: [1, 1] }],
    }),
    tool('execute', 'npm test', { status: 'unknown' }),
  );
  const page = await open(path);
  const lines = turn(page, 1).locator('button[aria-expanded]:not([aria-haspopup])');
  await expect
    .poll(() => lines.allInnerTexts())
    .toEqual([
      expect.stringMatching(/^Looked around: 1 file read, 1 search, 1 command\s+48 s$/),
      expect.stringMatching(/^1 file changed, 1 command, 1 outcome unknown\s+\+2 −1\s+2\.0 s$/),
    ]);
  await lines.first().click();
  const rows = turn(page, 1).getByRole('listitem');
  await expect
    .poll(() => rows.allInnerTexts())
    .toEqual([
      expect.stringMatching(/^Read\s+src\/a\.ts\s+all 2 lines\s+1\.0 s$/),
      expect.stringMatching(/^Thought\s+Where is it called\?$/),
      expect.stringMatching(/^Searched\s+transfer\(\s+2 hits in 2 files\s+1\.0 s$/),
      expect.stringMatching(/^Ran\s+npm test\s+46 s$/),
    ]);
  await rows.last().getByRole('button').click();
  await rows.last().getByText('all pass', { exact: true }).waitFor();
  await axe(page);
  await lines.first().click();
  await expect.poll(() => rows.count()).toBe(0);
});

server.test('a tool that is alone is its own line', async ({ open }) => {
  const page = await open(await conversationOf(tool('read', 'src/only.ts', { input: { offset: 5, limit: 6 } })));
  const line = turn(page, 1).getByRole('button', { name: /^Read src\/only\.ts lines 5–10/ });
  await line.click();
  await turn(page, 1).getByText('No output was recorded.').waitFor();
  expect(await turn(page, 1).getByRole('listitem').count()).toBe(0);
});

server.test('a changed file is shown in its place', async ({ open }) => {
  const diffs = [{ path: 'src/a.ts', oldText: 'a\n', newText: 'b\nc\n', lines: [1, 1] }];
  const page = await open(await conversationOf(tool('edit', 'src/a.ts', { diffs }), { type: 'text', text: 'Done.' }));
  const change = turn(page, 1).getByRole('region', { name: 'Changes in src/a.ts' });
  await change.getByText('+2').waitFor();
  expect(await turn(page, 1).locator('button[aria-expanded]:not([aria-haspopup])').count()).toBe(0);
});

server.test('a failed command is open, with its last lines', async ({ open }) => {
  const output = ['Exit code 1', ...Array.from({ length: 60 }, (_, index) => `test ${index + 1}`)].join('\n');
  const page = await open(
    await conversationOf(
      tool('read', 'src/a.ts'),
      tool('execute', 'npm test -- payouts', { status: 'failed', ms: 12_000, output }),
      { type: 'text', text: 'It fails.' },
    ),
  );
  await turn(page, 1)
    .getByRole('button', { name: /^1 file read, 1 command failed/ })
    .waitFor();
  const row = turn(page, 1).getByRole('listitem').last();
  await row.getByRole('button', { name: /^Ran npm test -- payouts exit 1 12 s/ }).waitFor();
  const printed = row.locator('pre');
  expect(await printed.innerText()).toMatch(/^\$ npm test -- payouts\s+51 earlier lines\s+test 51\n(.+\n){8}test 60$/);
  await axe(page);
  await row.getByRole('button', { name: '51 earlier lines' }).click();
  expect(await printed.innerText()).toContain('test 2\n');
  // Whoever closes it does not see it again.
  await turn(page, 1)
    .getByRole('button', { name: /^1 file read, 1 command failed/ })
    .click();
  await expect.poll(() => printed.count()).toBe(0);
});

server.test('while a run goes on, its line says what is done now', async ({ open }) => {
  const conversation = (await server.tl()).conversation(randomUUID(), { agent: 'scripted' });
  const { id } = await conversation.ensure();
  const page = await open(`/c/${id}`);
  const [next, end] = [0, 1].map(() => join(server.home.path, `go-${randomUUID()}`)) as [string, string];
  const update = (fields: object) => `/update ${JSON.stringify(fields)}`;
  const call = (toolCallId: string, kind: string, path: string) =>
    update({ sessionUpdate: 'tool_call', toolCallId, title: kind, kind, status: 'in_progress', locations: [{ path }] });
  const done = (toolCallId: string) => update({ sessionUpdate: 'tool_call_update', toolCallId, status: 'completed' });
  await conversation.send(
    [
      call('1', 'read', 'a.ts'),
      done('1'),
      call('2', 'read', 'b.ts'),
      `/await ${next}`,
      done('2'),
      call('3', 'execute', 'npm test'),
    ]
      .concat(`/await ${end}`, done('3'))
      .join('\n'),
  ).accepted;
  const line = (words: RegExp) => turn(page, 1).getByRole('button', { name: words }).waitFor();
  await line(/^1 file read · Reading b\.ts/);
  await writeFile(next, '');
  await line(/^2 files read · Running npm test/);
  await writeFile(end, '');
  await line(/^Looked around: 2 files read, 1 command/);
});

server.test('the search opens the run and the row with what it finds', async ({ open }) => {
  const path = await conversationOf(
    tool('read', 'a.ts', { output: 'nothing' }),
    tool('execute', 'run', { output: `${'a line\n'.repeat(80)}the kestrel\n${'a line\n'.repeat(80)}` }),
    { type: 'thought', text: 'A heron.' },
    { type: 'text', text: 'Done.' },
  );
  const page = await open(path);
  await turn(page, 1).getByText('Done.').waitFor();
  await page.keyboard.press('Control+f');
  const field = page.getByRole('searchbox', { name: 'Find in this conversation' });
  const find = async (words: string) => {
    await field.fill(words);
    await page
      .getByRole('status')
      .filter({ hasText: /^1 turn$/ })
      .waitFor();
    await field.press('Enter');
    await expect.poll(() => page.evaluate(() => CSS.highlights.get('found-here')?.size)).toBe(1);
  };
  await find('kestrel');
  expect(await turn(page, 1).locator('button[aria-expanded="true"]').count()).toBe(2);
  await find('heron');
  await turn(page, 1).getByText('A heron.', { exact: true }).waitFor();
  await field.press('Escape');
  await expect.poll(() => turn(page, 1).getByRole('listitem').count()).toBe(0);
});

server.test('output has its colours, and lines that were written over are shown once', async ({ open }) => {
  const output = `10 %\r100 %\n${ESC}[31mred${ESC}[0m ${ESC}[38;2;90;200;90mgreen${ESC}[0m\n${ESC}[2K${ESC}[1A<b>plain</b>`;
  const page = await open(await conversationOf(tool('execute', 'run', { output })));
  await turn(page, 1)
    .getByRole('button', { name: /^Ran run/ })
    .click();
  const printed = turn(page, 1).locator('pre');
  await expect.poll(() => printed.innerText()).toBe('$ run\n100 %\nred green\n<b>plain</b>');
  const colours = () =>
    printed.evaluate((box) =>
      ['red', 'green', '<b>plain</b>'].map((word) => {
        const span = [...box.querySelectorAll('span')].find(
          (each) => each.childElementCount === 0 && each.textContent === word,
        );
        return span === undefined ? null : getComputedStyle(span).color;
      }),
    );
  const [red, green, plain] = await colours();
  expect(new Set([red, green, plain]).size).toBe(3);
  await axe(page);
});

server.test('of a very long line the beginning is shown, and the rest when somebody asks for it', async ({ open }) => {
  const page = await open(await conversationOf(tool('other', 'x', { name: 'huge', output: 'x'.repeat(1_000_000) })));
  await turn(page, 1)
    .getByRole('button', { name: /^Used huge x/ })
    .click();
  await turn(page, 1).getByRole('button', { name: '998,000 more characters' }).click();
  await expect
    .poll(() =>
      turn(page, 1)
        .locator('pre')
        .evaluate((box) => box.textContent?.length),
    )
    .toBe(1_000_000);
});

server.test(
  'on a phone a run fits the screen',
  async ({ open }) => {
    const path = await conversationOf(
      tool('read', `src/${'a-long-name/'.repeat(20)}a.ts`),
      tool('execute', `echo ${'word'.repeat(60)}`, { status: 'failed', output: 'x'.repeat(500) }),
    );
    const page = await open(path);
    await turn(page, 1).getByText('1 command failed').waitFor();
    const timeline = page.getByRole('log', { name: 'Turns' });
    expect(await timeline.evaluate((box) => box.scrollWidth - box.clientWidth)).toBe(0);
    await axe(page);
  },
  PHONE,
);
