// The first visit with `--demo`: the printed link leads to the seam of the demo, and three steps explain Throughline.
import { expect } from 'vitest';
import { INSTALL_COMMANDS } from '../../../src/core/public/agents.ts';
import { axe, PHONE, pageServer } from './harness.ts';

const server = pageServer(undefined, ['--demo']);

server.test(
  'the link leads to the seam of the demo, and each of three steps is marked as done when it happens',
  async ({ context }) => {
    await (await server.tl()).engine.answerOf(
      (await server.caller.ok('GET', '/conversations/demo/turns')).turns[0].id,
      {
        waitMs: 60_000,
      },
    );
    await expect.poll(async () => (await server.caller.ok('GET', '/conversations/demo')).head).toBe(2);
    const page = await context.newPage();
    await page.goto(await server.link());
    await page.waitForURL(/\/c\/[\w-]+\/seam\/2$/);
    const steps = page.getByRole('region', { name: 'First steps' });
    await steps.getByText('An agent forgets everything when its session is gone.').waitFor();
    await page
      .getByText(/It reopened its own session/)
      .first()
      .waitFor();
    await axe(page);
    const stepsDone = () => steps.getByText('done', { exact: true }).count();
    expect(await stepsDone()).toBe(0);

    await steps.getByRole('button', { name: /^Tell it / }).click();
    await expect.poll(stepsDone).toBe(1);
    const codeword = await page.evaluate(() => localStorage.getItem('throughline.first-run.word'));
    await steps.getByRole('button', { name: 'Kill the live session' }).click();
    await expect.poll(stepsDone).toBe(2);
    // Typed into the prompt, and not with the button of the step: both count.
    await page.getByRole('textbox', { name: /prompt/i }).fill('Which codewords have you seen?');
    await page.keyboard.press('Enter');
    await expect.poll(stepsDone).toBe(3);
    await steps.getByText(`It knew ${codeword}`).waitFor();
    await steps.getByRole('heading', { name: 'Now with your own agent' }).waitFor();
    // The answer is visible, although the demo was opened at its seam and the list of steps takes space.
    await expect.poll(() => page.getByRole('button', { name: 'Go to the end' }).count()).toBe(0);
    for (const command of Object.values(INSTALL_COMMANDS)) await steps.getByText(command, { exact: true }).waitFor();
    await page.reload();
    await expect.poll(stepsDone).toBe(3);
    await page.goto(server.url);
    await page.getByRole('heading', { name: 'For you' }).waitFor(); // the second visit begins with it
  },
);

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
      .getByText(/It reopened its own session/)
      .first()
      .waitFor();
    expect(await steps.count()).toBe(0);
  },
  PHONE,
);
