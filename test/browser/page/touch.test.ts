// On a phone, everything that can be tapped is at least 44 px high and wide: on every route, and in its dialogs, menus and panels.
import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import { PHONE, pageServer } from './harness.ts';
import { type PanelTab, showPanel } from './panels.ts';

const server = pageServer();

server.test(
  'on a phone everything that can be tapped is large enough, and nothing is wider than the screen',
  async ({ open, allow }) => {
    const tl = await server.tl();
    const conversation = tl.conversation('touched', { agent: 'forgetful', title: 'Touched' });
    await conversation.ask(
      '/think Hm.\n/tool edit a.txt\n/say [A link](https://example.org).\n/say ```ts\nlet a;\n```',
    );
    await conversation.kill();
    await expect(conversation.ask('/say Two.', { restore: { rung: 'resume' } })).rejects.toThrow(); // a seam that failed
    await conversation.ask('/say Three.', { agent: 'scripted' });
    await conversation.send('/ask May I?\n/tool edit b.txt', { permissions: 'ask' }).accepted;
    await conversation.send('/say Four.').accepted;
    const [task] = await tl.tasks.run({
      goal: '/say No.',
      gate: 'echo no; false',
      agent: 'scripted',
      maxIterations: 1,
    });
    await tl.conversation('aside', { title: 'Aside' }).ensure();
    await tl.conversation('aside').arrange({ putAway: true });
    const { id } = await conversation.get();
    allow(/status of 404/);
    const page = await open('/');
    const button = (name: string | RegExp) => page.getByRole('button', { name }).first();
    const dialog = (name: string) => page.getByRole('dialog', { name });
    const afterTap = (name: string | RegExp, ready: () => Promise<unknown>) => () => button(name).tap().then(ready);
    const panel = (tab: PanelTab) => async () => {
      await showPanel(page, tab);
      await page.getByRole('tabpanel').locator('svg, li, table, p').first().waitFor();
    };
    // Without a path, something opens over the route before.
    const views: [path: string, ready: () => Promise<unknown>][] = [
      ['/', () => page.getByRole('region', { name: 'Needs you' }).waitFor()],
      ['/all', () => page.getByRole('link', { name: /Touched/ }).waitFor()],
      ['', afterTap('Search', () => page.getByRole('textbox', { name: 'Search all conversations' }).waitFor())],
      ['/put-away', () => page.getByRole('button', { name: 'Bring back' }).waitFor()],
      [`/c/${id}`, () => page.getByRole('region', { name: /^Permission: / }).waitFor()],
      ['', afterTap('Conversation actions', () => page.getByRole('menuitem').first().waitFor())],
      [`/c/${id}/seam/2`, () => page.getByRole('region', { name: 'Seam before turn 2' }).waitFor()],
      [`/c/${id}/seam/3`, () => page.getByRole('region', { name: 'Seam before turn 3' }).waitFor()],
      ['', () => page.getByRole('textbox', { name: 'Prompt', exact: true }).tap()],
      ['', afterTap(/^Options/, () => page.getByRole('heading', { name: 'Options for the next prompt' }).waitFor())],
      [`/c/${id}`, panel('Turns')],
      ['', panel('Sessions')],
      ['', panel('Usage')],
      ['', panel('Changes')],
      ['', panel('Raw')],
      [`/c/${id}/compare`, () => page.getByRole('region', { name: 'Second session' }).waitFor()],
      ['/new', () => page.getByRole('textbox', { name: 'Prompt', exact: true }).waitFor()],
      ['/tasks', () => page.getByRole('link', { name: /say No/ }).waitFor()],
      ['', afterTap('Add a task', () => dialog('Add a task').waitFor())],
      [`/tasks/${task?.id}`, () => page.getByLabel('Message to the agent').waitFor()],
      ['/health', () => page.getByRole('region', { name: 'Store', exact: true }).getByText(/MB|KB/).first().waitFor()],
      ['/nowhere', () => page.getByText('Page not found.').waitFor()],
      ['/c/nobody', () => page.getByRole('alert').first().waitFor()],
    ];
    const problems: string[] = [];
    for (const [path, ready] of views) {
      if (path !== '') await page.goto(server.url + path);
      await ready();
      const view = path || `over ${new URL(page.url()).pathname}`;
      problems.push(...(await layoutProblems(page)).map((problem) => `${view}: ${problem}`));
    }
    expect(problems).toEqual([]);
    await conversation.cancel();
  },
  PHONE,
);

/** Everything that can be tapped and is too small, and whether the page is wider than the screen. Links in a sentence or in an answer may be small. */
function layoutProblems(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const targets =
      'a[href], button, select, textarea, summary, [role=button], [role=tab], [role=menuitem], [role=option], [role=checkbox], [role=switch]';
    const isVisible = (element: Element) =>
      element.checkVisibility({ opacityProperty: true, visibilityProperty: true });
    const isInSentence = ({ parentNode }: Element) =>
      [...(parentNode?.childNodes ?? [])].some((node) => node instanceof Text && node.data.trim() !== '');
    /** The label of a checkbox or a radio button is tapped as well. */
    const boxOf = (element: Element) =>
      (
        (element.matches('[type=checkbox], [type=radio]') && element.closest('label')) ||
        element
      ).getBoundingClientRect();
    const ROUNDING = 0.1;
    const tooSmall = [...document.querySelectorAll(`${targets}, input:not([type=hidden])`)].flatMap((element) => {
      const { width, height } = boxOf(element);
      // Elements of one pixel are only for screen readers, such as the button that closes the palette.
      if (!isVisible(element) || element.closest('[inert], [aria-hidden=true]') || Math.min(width, height) <= 1)
        return [];
      if (element.closest('.prose') || isInSentence(element) || Math.min(width, height) >= 44 - ROUNDING) return [];
      const name = element.getAttribute('aria-label') ?? element.textContent.trim();
      return [`${element.tagName.toLowerCase()} "${name.slice(0, 50)}" ${Math.round(width)} × ${Math.round(height)}`];
    });
    const pageWidth = document.documentElement.scrollWidth;
    return pageWidth > innerWidth ? [...tooSmall, `the page is ${pageWidth} px wide`] : tooSmall;
  });
}
