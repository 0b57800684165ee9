// Every address of the page, and what opens over it, has no serious findings of axe, in both schemes.
import { expect } from 'vitest';
import { axe, pageServer } from './harness.ts';

const server = pageServer();

server.test('no route has serious findings, in either scheme', async ({ open, context, allow }) => {
  const tl = await server.tl();
  const talk = tl.conversation('routes', { agent: 'forgetful' });
  await talk.ask(
    '/think Hm.\n/tool edit a.txt\n/say # Title\n/say | a | b |\n/say `code` and [a link](https://example.org).',
  );
  await talk.kill();
  await talk.ask('/say Two.', { restore: { rung: 'resume' } }).catch(() => {});
  await talk.ask('/say Three.');
  await talk.ask('/say Four.', { agent: 'scripted' });
  await talk.send('/ask May I?\n/tool edit b.txt', { permissions: 'ask' }).accepted;
  await talk.send('/say Five.').accepted;
  const [task] = await tl.tasks.run({ goal: '/say No.', gate: 'echo no; false', agent: 'scripted', maxIterations: 1 });
  const { id } = await talk.get();
  const page = await open('/');
  const dialog = (name: string) => page.getByRole('dialog', { name }).waitFor();
  const panel = async (tab: string) => {
    if ((await page.getByRole('tab').count()) === 0) await page.getByRole('button', { name: 'Show the panel' }).click();
    await page.getByRole('tab', { name: tab }).click();
    await page.getByRole('tabpanel').locator('svg, li, table, p').first().waitFor();
  };

  const keys = async () => {
    await page.keyboard.press('Escape');
    // Until it is gone, the palette has the keys.
    await page.getByRole('dialog', { name: 'Palette' }).waitFor({ state: 'detached' });
    await page.keyboard.press('?');
    await dialog('Keyboard shortcuts and commands');
  };

  const places: [path: string, ready: () => Promise<unknown>][] = [
    ['/', () => page.getByRole('region', { name: 'Needs you' }).waitFor()],
    ['', () => page.keyboard.press('Control+K').then(() => dialog('Palette'))],
    ['', keys],
    [`/c/${id}`, () => page.getByRole('region', { name: /^Permission: / }).waitFor()],
    [`/c/${id}/seam/2`, () => page.getByRole('region', { name: 'Seam before turn 2' }).waitFor()],
    [`/c/${id}/seam/3`, () => page.getByRole('region', { name: 'Seam before turn 3' }).waitFor()],
    ['', () => panel('Lineage')],
    ['', () => panel('Usage')],
    ['', () => panel('Changes')],
    ['', () => panel('Raw')],
    [`/c/${id}/compare`, () => page.getByRole('region', { name: 'Second session' }).waitFor()],
    ['/new', () => page.getByRole('textbox', { name: 'Prompt', exact: true }).waitFor()],
    ['/tasks', () => page.getByRole('button', { name: 'Add a task' }).waitFor()],
    [`/tasks/${task?.id}`, () => page.getByLabel('Message to the agent').waitFor()],
    ['/health', () => page.getByRole('region', { name: 'Store', exact: true }).getByText(/MB|KB/).first().waitFor()],
    ['/reference', () => page.getByRole('heading', { level: 1 }).waitFor()],
    ['/nowhere', () => page.getByText('Page not found.').waitFor()],
    ['/c/nobody', () => page.getByRole('alert').first().waitFor()],
  ];
  allow(/status of 40[14]/);
  const found: string[] = [];
  const look = async (where: string) => axe(page).catch((error: Error) => found.push(`${where}: ${error.message}`));
  /** Within the page, as somebody who clicks; what the server answers itself is loaded. */
  const go = async (path: string) => {
    const isElsewhere = path === '/reference' || new URL(page.url()).pathname === '/reference';
    if (isElsewhere) return void (await page.goto(server.url + path));
    if ((await page.getByRole('dialog').count()) > 0) await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await page.evaluate((to) => history.pushState(null, '', to), path);
  };
  for (const [path, ready] of places) {
    if (path !== '') await go(path);
    await ready();
    await look(path === '' ? `over ${new URL(page.url()).pathname}` : path);
  }
  await context.clearCookies();
  await page.goto(server.url);
  await page.getByText('This browser is not signed in.').waitFor();
  await look('signed out');
  await page.goto(`${server.url}/enter?code=used`);
  await page.getByRole('heading', { level: 1 }).waitFor();
  await look('a link that was used');
  expect(found).toEqual([]);
  await talk.cancel();
});
