// The real Claude behind the page, on a model that stands in for its own: told a codeword, killed by the button, and asked for it.
import { globSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { acknowledgement, type Model, startModel } from '../../../src/testing/index.ts';
import { claudeEnvironment, findClaude, NOT_INSTALLED, packageFolder, userHome } from '../../agents/support/claude.ts';
import { pageServer } from './harness.ts';

let model: Model | null = null;
let person = '';
beforeAll(async () => {
  model = await startModel();
  person = userHome(server.home.path);
  const claude = { adapter: 'claude-sdk', package: packageFolder, env: claudeEnvironment(model, person) };
  server.home.configure({ defaultAgent: 'claude', agents: { claude } });
});
const server = pageServer();
afterAll(() => model?.close());

const NAME = 'the real Claude is killed from the page and goes on, with its session and without it';

if (findClaude() === null) test(NAME, (context) => context.skip(NOT_INSTALLED));
else
  server.test(NAME, async ({ open }) => {
    const { id } = await (await server.tl()).conversation('claude').ensure();
    const page = await open(`/c/${id}`);
    await send(page, 'The codeword is amber-heron.');
    await answer(page, 1, acknowledgement('The codeword is amber-heron.'));

    await kill(page);
    await send(page, 'Which codewords have you seen?');
    await answer(page, 2, 'I have seen these codewords: amber-heron.');
    await seam(
      page,
      2,
      /^Process was killed · resumed by the agent · 1 carried, 0 dropped · proved · 0 model calls · /,
    );

    // Now its own memory is gone as well.
    const transcripts = globSync(join(person, '.claude', 'projects', '**', '*.jsonl'));
    expect(transcripts).toHaveLength(1);
    await kill(page);
    for (const path of transcripts) rmSync(path);
    await send(page, 'Which codewords have you seen?');
    await answer(page, 3, 'I have seen these codewords: amber-heron.');
    await seam(page, 3, / · rebuilt .* · 2 carried, 0 dropped · proved · 0 model calls · /);
    expect(model?.requests.filter(({ side }) => !side)).toHaveLength(3);
  });

async function send(page: Page, prompt: string): Promise<void> {
  const field = page.getByRole('textbox', { name: 'Prompt', exact: true });
  await field.fill(prompt);
  await field.press('Enter');
}

async function kill(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Kill session' }).click();
  await page.getByText('Session ended. Nothing that was said is lost.').first().waitFor();
  await page.getByRole('button', { name: 'Kill session' }).waitFor({ state: 'detached' });
}

async function answer(page: Page, n: number, words: string): Promise<void> {
  const turn = page.getByRole('article', { name: `Turn ${n}`, exact: true });
  await turn.getByText(words, { exact: true }).waitFor();
  // A session is there while it is warmed up: the turn has ended when nothing is queued behind it any more.
  await page.getByRole('button', { name: 'Send' }).waitFor();
  await page.getByRole('button', { name: 'Kill session' }).waitFor();
}

async function seam(page: Page, n: number, words: RegExp): Promise<void> {
  await page
    .getByRole('region', { name: `Seam before turn ${n}`, exact: true })
    .getByText(words)
    .waitFor();
}
