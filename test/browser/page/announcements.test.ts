// What screen readers are told without anybody looking for it.
import { randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import { axe, pageServer } from './harness.ts';

const server = pageServer();

/** Keeps all that the live regions ever said. */
async function listen(page: Page): Promise<() => Promise<string[]>> {
  await page.evaluate(() => {
    const heard: string[] = [];
    Object.assign(globalThis, { heard });
    for (const region of document.querySelectorAll<HTMLElement>('[data-live]')) {
      new MutationObserver((changes) => {
        for (const added of changes.flatMap((change) => [...change.addedNodes]))
          heard.push(`${region.getAttribute('aria-live')}: ${added.textContent}`);
      }).observe(region, { childList: true, subtree: true, characterData: true });
    }
  });
  return () => page.evaluate(() => [...(globalThis as unknown as { heard: string[] }).heard]);
}

server.test(
  'questions, ends of answers and failures are announced once, words of an answer are not',
  async ({ open }) => {
    const conversation = (await server.tl()).conversation(randomUUID(), { agent: 'scripted' });
    const { id } = await conversation.ensure();
    const page = await open(`/c/${id}`);
    await page.getByRole('textbox', { name: 'Prompt', exact: true }).waitFor();
    const heard = await listen(page);
    const answered = 'polite: Turn 1 is answered.';
    await conversation.ask('/stream 30 5');
    await expect.poll(heard).toEqual([answered]);
    const asking = conversation.send('/ask May I?', { permissions: 'ask' });
    const asked = 'assertive: A question waits for your answer.';
    await expect.poll(heard).toEqual([answered, asked]);
    await page.getByRole('region', { name: /^Permission: / }).waitFor();
    await axe(page);
    await conversation.cancel();
    await asking.result.catch(() => {});
    const stopped = 'polite: Turn 2 was stopped.';
    await expect.poll(heard).toEqual([answered, asked, stopped]);
    await expect(conversation.ask('/fail agent_failed')).rejects.toThrow();
    const failed = 'assertive: Turn 3 failed.';
    await expect.poll(heard).toEqual([answered, asked, stopped, failed]);
  },
);

server.test('a restore is announced politely, and what was lost at once', async ({ open }) => {
  const conversation = (await server.tl()).conversation(randomUUID(), { agent: 'forgetful' });
  await conversation.ask('One.');
  await conversation.ask('Two.');
  const page = await open(`/c/${(await conversation.get()).id}`);
  await page.getByRole('article', { name: 'Turn 2', exact: true }).waitFor();
  const heard = await listen(page);
  await conversation.kill();
  await conversation.ask('Three.');
  const restored = ['polite: A session was restored and knows all 2 turns.', 'polite: Turn 3 is answered.'];
  await expect.poll(heard).toEqual(restored);
  await conversation.kill();
  await conversation.ask('Four.', { restore: { lastTurns: 1 } });
  await expect
    .poll(heard)
    .toEqual([...restored, 'assertive: The new session knows 1 of 3 turns.', 'polite: Turn 4 is answered.']);
});

server.test('questions and ends in other conversations are announced, too', async ({ open }) => {
  const conversation = (await server.tl()).conversation(randomUUID(), { agent: 'scripted', title: 'Payouts' });
  await conversation.ensure();
  const page = await open('/health');
  await page.getByRole('heading', { name: 'Health' }).waitFor();
  await page.getByRole('complementary').getByText('Payouts').waitFor();
  const heard = await listen(page);
  const releaseFile = join(server.home.path, `go-${randomUUID()}`);
  const answer = conversation.send(`/ask May I?\n/await ${releaseFile}`, { permissions: 'ask' });
  await expect.poll(heard).toEqual(['assertive: Payouts asks you.']);
  const [question] = await (await server.tl()).engine.permissions({ open: true });
  await (await server.tl()).engine.answer(question?.id ?? '', question?.options[0]?.optionId ?? '');
  await writeFile(releaseFile, '');
  await answer.result;
  await expect.poll(heard).toEqual(['assertive: Payouts asks you.', 'polite: Payouts is done.']);
});
