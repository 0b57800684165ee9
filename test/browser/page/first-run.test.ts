// The first minute: the printed link leads to the demo and its seam, and three steps show what Throughline is for.
import { expect } from 'vitest';
import { INSTALL_COMMANDS } from '../../../src/core/public/agents.ts';
import { axe, PHONE, pageServer } from './harness.ts';

const server = pageServer(undefined, ['--demo']);

server.test('the link leads to the seam of the demo; three steps tick themselves off', async ({ context }) => {
  await (await server.tl()).engine.answerOf((await server.caller.ok('GET', '/conversations/demo/turns')).turns[0].id, {
    waitMs: 60_000,
  });
  await expect.poll(async () => (await server.caller.ok('GET', '/conversations/demo')).head).toBe(2);
  const page = await context.newPage();
  await page.goto(await server.link());
  await page.waitForURL(/\/c\/[\w-]+\/seam\/2$/);
  const steps = page.getByRole('region', { name: 'First steps' });
  await steps.getByText('An agent forgets everything when its session is gone.').waitFor();
  await page.getByText(/resumed by the agent/).waitFor();
  await axe(page);
  const done = () => steps.getByText('done', { exact: true }).count();
  expect(await done()).toBe(0);

  await steps.getByRole('button', { name: /^Tell it / }).click();
  await expect.poll(done).toBe(1);
  const word = await page.evaluate(() => localStorage.getItem('throughline.first-run.word'));
  await steps.getByRole('button', { name: 'Kill the live session' }).click();
  await expect.poll(done).toBe(2);
  // By hand this time: what counts is what happens, not which button it was.
  await page.getByRole('textbox', { name: /prompt/i }).fill('Which codewords have you seen?');
  await page.keyboard.press('Enter');
  await expect.poll(done).toBe(3);
  await steps.getByText(`It knew ${word}`).waitFor();
  await steps.getByRole('heading', { name: 'Now with your own agent' }).waitFor();
  // What was asked for is in sight, though the demo was opened at its seam and the list below takes room.
  await expect.poll(() => page.getByRole('button', { name: 'Go to the end' }).count()).toBe(0);
  for (const command of Object.values(INSTALL_COMMANDS)) await steps.getByText(command, { exact: true }).waitFor();
  await page.reload();
  await expect.poll(done).toBe(3);
  await page.goto(server.url);
  await page.getByRole('heading', { name: 'Inbox' }).waitFor(); // the second visit begins where everybody begins
});

server.test(
  'on a phone the steps fit, and can be hidden for good',
  async ({ open }) => {
    const page = await open('/');
    await page.waitForURL(/\/seam\/2$/);
    const steps = page.getByRole('region', { name: 'First steps' });
    await steps.waitFor();
    expect(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true);
    await steps.getByRole('button', { name: 'Hide the first steps' }).tap();
    await steps.waitFor({ state: 'detached' });
    await page.reload();
    await page
      .getByText(/resumed by the agent/)
      .first()
      .waitFor();
    expect(await steps.count()).toBe(0);
  },
  PHONE,
);
