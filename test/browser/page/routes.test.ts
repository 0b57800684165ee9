// axe has no serious findings on any route of the page and in its dialogs and panels, in both colour schemes.
import { expect } from 'vitest';
import { axe, pageServer } from './harness.ts';
import { type PanelTab, showPanel } from './panels.ts';

const server = pageServer();

server.test('axe has no serious findings on any route, in both colour schemes', async ({ open, context, allow }) => {
  const tl = await server.tl();
  const conversation = tl.conversation('routes', { agent: 'forgetful' });
  await conversation.ask(
    '/think Hm.\n/tool edit a.txt\n/say # Title\n/say | a | b |\n/say `code` and [a link](https://example.org).',
  );
  await conversation.kill();
  await expect(conversation.ask('/say Two.', { restore: { rung: 'resume' } })).rejects.toThrow(); // a seam that failed
  await conversation.ask('/say Three.');
  await conversation.ask('/say Four.', { agent: 'scripted' });
  await conversation.send('/ask May I?\n/tool edit b.txt', { permissions: 'ask' }).accepted;
  await conversation.send('/say Five.').accepted;
  const [task] = await tl.tasks.run({ goal: '/say No.', gate: 'echo no; false', agent: 'scripted', maxIterations: 1 });
  const { id } = await conversation.get();
  const page = await open('/');
  const dialog = (name: string) => page.getByRole('dialog', { name }).waitFor();
  const panel = async (tab: PanelTab) => {
    await showPanel(page, tab);
    await page.getByRole('tabpanel').locator('svg, li, table, p').first().waitFor();
  };

  const shortcuts = async () => {
    await page.keyboard.press('Escape');
    // While the palette is open, the key is no shortcut.
    await page.getByRole('dialog', { name: 'Palette' }).waitFor({ state: 'detached' });
    await page.keyboard.press('?');
    await dialog('Keyboard shortcuts and commands');
  };

  // Without a path, something opens over the route before.
  const views: [path: string, ready: () => Promise<unknown>][] = [
    ['/', () => page.getByRole('region', { name: 'Needs you' }).waitFor()],
    ['', () => page.keyboard.press('Control+K').then(() => dialog('Palette'))],
    ['', shortcuts],
    [`/c/${id}`, () => page.getByRole('region', { name: /^Permission: / }).waitFor()],
    [`/c/${id}/seam/2`, () => page.getByRole('region', { name: 'Seam before turn 2' }).waitFor()],
    [`/c/${id}/seam/3`, () => page.getByRole('region', { name: 'Seam before turn 3' }).waitFor()],
    ['', () => panel('Turns')],
    ['', () => panel('Sessions')],
    ['', () => panel('Usage')],
    ['', () => panel('Changes')],
    ['', () => panel('Raw')],
    [`/c/${id}/compare`, () => page.getByRole('region', { name: 'Second session' }).waitFor()],
    ['/new', () => page.getByRole('textbox', { name: 'Prompt', exact: true }).waitFor()],
    ['/put-away', () => page.getByText('Nothing is put away.').waitFor()],
    ['/tasks', () => page.getByRole('button', { name: 'Add a task' }).waitFor()],
    [`/tasks/${task?.id}`, () => page.getByLabel('Message to the agent').waitFor()],
    ['/health', () => page.getByRole('region', { name: 'Store', exact: true }).getByText(/MB|KB/).first().waitFor()],
    ['/reference', () => page.getByRole('heading', { level: 1 }).waitFor()],
    ['/nowhere', () => page.getByText('Page not found.').waitFor()],
    ['/c/nobody', () => page.getByRole('alert').first().waitFor()],
  ];
  allow(/status of 40[14]/);
  const findings: string[] = [];
  const check = async (view: string) => axe(page).catch((error: Error) => findings.push(`${view}: ${error.message}`));
  /** Navigates within the page, as a click does. /reference is a page of the server, so it is loaded. */
  const navigate = async (path: string) => {
    const isOtherPage = path === '/reference' || new URL(page.url()).pathname === '/reference';
    if (isOtherPage) return void (await page.goto(server.url + path));
    if ((await page.getByRole('dialog').count()) > 0) await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await page.evaluate((to) => history.pushState(null, '', to), path);
  };
  for (const [path, ready] of views) {
    if (path !== '') await navigate(path);
    await ready();
    await check(path === '' ? `over ${new URL(page.url()).pathname}` : path);
  }
  await context.clearCookies();
  await page.goto(server.url);
  await page.getByText('This browser is not signed in.').waitFor();
  await check('signed out');
  await page.goto(`${server.url}/enter?code=used`);
  await page.getByRole('heading', { level: 1 }).waitFor();
  await check('a link that is not valid');
  expect(findings).toEqual([]);
  await conversation.cancel();
});
