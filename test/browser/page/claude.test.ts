// The real Claude with the stand-in model, used through the page: it gets a codeword, is killed with the button, and is asked for it.
import { globSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { acknowledgement, type Model, startModel } from '../../../src/testing/index.ts';
import { claudeEnvironment, findClaude, NOT_INSTALLED, packageFolder, userHome } from '../../agents/support/claude.ts';
import { killSession, pageServer } from './harness.ts';

let model: Model | null = null;
let homeOfUser = '';
beforeAll(async () => {
  model = await startModel();
  homeOfUser = userHome(server.home.path);
  const claude = { adapter: 'claude-sdk', package: packageFolder, env: claudeEnvironment(model, homeOfUser) };
  server.home.configure({ defaultAgent: 'claude', agents: { claude } });
});
const server = pageServer();
afterAll(() => model?.close());

const NAME = 'the real Claude is killed from the page and still has the history, with its own session and without it';

if (findClaude() === null) test(NAME, (context) => context.skip(NOT_INSTALLED));
else
  server.test(NAME, async ({ open }) => {
    const { id } = await (await server.tl()).conversation('claude').ensure();
    const page = await open(`/c/${id}`);
    await sendPrompt(page, 'The codeword is amber-heron.');
    await waitForAnswer(page, 1, acknowledgement('The codeword is amber-heron.'));

    await killSession(page);
    await sendPrompt(page, 'Which codewords have you seen?');
    await waitForAnswer(page, 2, 'I have seen these codewords: amber-heron.');
    await waitForSeam(page, 2, /It reopened its own session, the one turn\.$/);

    // Now Claude's own transcript is deleted as well.
    const transcripts = globSync(join(homeOfUser, '.claude', 'projects', '**', '*.jsonl'));
    expect(transcripts).toHaveLength(1);
    await killSession(page);
    for (const path of transcripts) rmSync(path);
    await sendPrompt(page, 'Which codewords have you seen?');
    await waitForAnswer(page, 3, 'I have seen these codewords: amber-heron.');
    await waitForSeam(page, 3, /^(The file was rebuilt from the record|A new session was told), all 2 turns\.$/);
    expect(model?.requests.filter(({ side }) => !side)).toHaveLength(3);
  });

async function sendPrompt(page: Page, prompt: string): Promise<void> {
  const field = page.getByRole('textbox', { name: 'Prompt', exact: true });
  await field.fill(prompt);
  await field.press('Enter');
}

async function waitForAnswer(page: Page, n: number, text: string): Promise<void> {
  const turn = page.getByRole('article', { name: `Turn ${n}`, exact: true });
  await turn.getByText(text, { exact: true }).waitFor();
  // “Send” is shown when the turn has ended; before that it is “Queue”.
  await page.getByRole('button', { name: 'Send' }).waitFor();
}

async function waitForSeam(page: Page, n: number, text: RegExp): Promise<void> {
  await page
    .getByRole('region', { name: `Seam before turn ${n}`, exact: true })
    .getByText(text)
    .waitFor();
}
