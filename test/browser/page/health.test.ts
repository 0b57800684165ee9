// The health view: agents, live sessions that can be killed, sandboxes, the store, the doctor, and the check of a chain of events.
import { expect } from 'vitest';
import { INTERFACE, INTERFACE_HEADER } from '../../../src/wire/operations/operation.ts';
import { axe, PHONE, pageServer } from './harness.ts';
import { showPanel } from './panels.ts';

const server = pageServer();

server.test('a live session is killed in this view, and the next prompt restores the context', async ({ open }) => {
  const conversation = (await server.tl()).conversation('live', { agent: 'scripted' });
  await conversation.ask('The codeword is osprey.');
  const page = await open('/health');
  await page.getByText('Everything works.').waitFor();
  await page.getByText(/^1 running\. A session is only a cache/).waitFor();
  await page.getByRole('button', { name: /^Kill the live session of/ }).click();
  await page.getByText('Session ended. Nothing that was said is lost.').waitFor();
  await page.getByText(/^None\. A session is only a cache/).waitFor();
  const { reply, receipt } = await conversation.ask('Which codewords have you seen?');
  expect([reply, receipt.rung]).toEqual(['I have seen these codewords: osprey.', 'resume']);
  await axe(page);
});

server.test('the view shows what agents can do, and the latency and size of the store', async ({ open }) => {
  const page = await open('/health');
  const agents = page.getByRole('region', { name: 'Agents' });
  await agents.getByText('can resume sessions').first().waitFor();
  const store = page.getByRole('region', { name: 'Store' });
  await store.getByText(/ms · 95th percentile/).waitFor();
  await store.getByText(/MB|KB/).first().waitFor();
});

server.test(
  'sandboxes are listed with their conversations, put to rest and removed, and a conversation shows its sandbox',
  async ({ open, context, allow }) => {
    allow(/422/); // the sandbox has unsaved work
    const tl = await server.tl();
    const conversations = ['painter', 'printer'].map((key) => tl.conversation(key, { title: key, sandbox: 'atelier' }));
    for (const conversation of conversations) await conversation.ask('/tool write made.txt');
    const page = await open('/health');
    const list = page.getByRole('region', { name: 'Sandboxes' });
    await list.getByText('atelier').click();
    await list.getByText(/2 conversations · used/).waitFor();
    await list.getByRole('link', { name: 'printer' }).waitFor();
    await list.getByRole('button', { name: 'Measure' }).click();
    await list.getByText(/^Working files .*B · agent files .*B · session copies .*B · measured now$/).waitFor();
    await list.getByText(/^(One sandbox takes|\d+ sandboxes take) .*B of disk space, when last measured\.$/).waitFor();
    await axe(page);
    await list.getByRole('button', { name: 'Put to rest…' }).click();
    await page.getByText('throughline sandbox rest atelier').waitFor();
    await page.getByRole('button', { name: 'Put to rest', exact: true }).click();
    await list.getByText(/^at rest · .*2 conversations/).waitFor();
    await list.getByRole('button', { name: 'Remove…' }).click();
    const removeDialog = page.getByRole('dialog', { name: 'Remove the sandbox' });
    await removeDialog.getByRole('button', { name: 'Remove' }).click();
    await removeDialog.getByRole('alert').getByText('Unsaved work is in the sandbox').waitFor();
    await removeDialog.getByLabel('Also delete unsaved work').check();
    await axe(page);
    await removeDialog.getByText('throughline sandbox rm atelier --force').waitFor();
    await removeDialog.getByRole('button', { name: 'Remove' }).click();
    await list.getByText(/^not opened yet · .*2 conversations/).waitFor();
    // The list has only the newest sandboxes. A conversation must show its sandbox even if the list does not have it.
    const noSandboxes = { sandboxes: [], diskUse: { sandboxes: 0, bytes: 0 } };
    await context.route('**/v1/sandboxes?*', (route) => route.fulfill({ json: noSandboxes }));
    await list.getByRole('link', { name: 'painter' }).click();
    await showPanel(page, 'Sessions');
    await page.getByText(/^Works in the sandbox atelier · not opened yet · .*shared by 2 conversations$/).waitFor();
  },
);

server.test('the doctor reports findings, and the chain of a conversation is verified', async ({ open }) => {
  const tl = await server.tl();
  await tl.engine.ensure({ key: 'another' });
  await tl.conversation('chain').ask('/say One.');
  // The view must list all conversations, even if the rail does not.
  await tl.conversation('chain').arrange({ putAway: true });
  const page = await open('/health');
  await page.getByRole('button', { name: 'Verify' }).click();
  await page.getByText('No event was changed, removed or added.').waitFor();
  // The result disappears when another conversation is chosen.
  await page.getByLabel('Conversation', { exact: true }).selectOption({ index: 1 });
  await page.getByText('No event was changed, removed or added.').waitFor({ state: 'detached' });
  await page.getByRole('button', { name: 'Examine' }).click();
  await page
    .getByRole('region', { name: 'Doctor' })
    .getByText(/No problems found\.|Note|Problem/)
    .first()
    .waitFor();
});

server.test(
  'a chain whose last events were lost is called incomplete, here and in the conversation',
  async ({ open }) => {
    const chat = (await server.tl()).conversation('cut', { title: 'Cut' });
    await chat.ask('/say One.');
    const lost = { had: { seq: 90, turns: 9 }, has: { seq: 50, turns: 5 } };
    const words = 'Events 51 to 90 are missing: it had 9 turns (90 events), and 5 turns (50 events) are left.';
    for (const path of ['/health', `/c/${(await chat.get()).id}`]) {
      const page = await open(path);
      // As after a power failure, in which a disk has lost what it had acknowledged.
      const answer = { head: '50:ab', broken: null, lost };
      await page.route(/\/verify(\?|$)/, (route) =>
        route.fulfill({ headers: { [INTERFACE_HEADER]: INTERFACE }, json: answer }),
      );
      if (path === '/health') {
        await page.getByLabel('Conversation', { exact: true }).selectOption('Cut');
        await page.getByRole('button', { name: 'Verify' }).click();
      } else {
        await page.getByRole('button', { name: 'Conversation actions' }).click();
        await page.getByRole('menuitem', { name: 'Verify the chain of events' }).click();
      }
      await page.getByText(words).waitFor();
      expect(await page.getByText('No event was changed').count()).toBe(0);
      await page.close();
    }
  },
);

server.test('without a clipboard, copying says so and what to do, in every place', async ({ open, context }) => {
  const chat = (await server.tl()).conversation('copied', { title: 'Copied' });
  await chat.ask('/say One.');
  const { id } = await chat.get();
  const message = 'The browser does not allow this page to copy. Select the text instead.';
  const insecure = () => Object.defineProperty(navigator, 'clipboard', { value: undefined });
  const refusing = () =>
    Object.defineProperty(navigator, 'clipboard', {
      value: { writeText: () => Promise.reject(new DOMException('no', 'NotAllowedError')) },
    });
  for (const clipboard of [insecure, refusing]) {
    const page = await open(`/c/${id}`);
    await page.evaluate(clipboard);
    const messages = page.getByRole('status', { name: 'Messages' });
    await page.getByRole('button', { name: 'Actions for turn 1' }).click();
    await page.getByRole('menuitem', { name: 'Copy answer' }).click();
    await messages.getByText(message).waitFor();
    await page.getByRole('button', { name: 'Close' }).click();
    await page.getByRole('button', { name: 'Conversation actions' }).click();
    await page.getByRole('menuitem', { name: 'Verify the chain of events' }).click();
    await page.getByRole('button', { name: 'Copy the head' }).click();
    await messages.getByText(message).waitFor();
    expect(await page.getByText(/copied\./i).count()).toBe(0);
    expect(await page.getByRole('button', { name: 'Copied', exact: true }).count()).toBe(0);
    await page.close();
  }
  // Where the browser allows it, the text is in the clipboard.
  await context.grantPermissions(['clipboard-read', 'clipboard-write']);
  const page = await open(`/c/${id}`);
  await page.getByRole('button', { name: 'Conversation actions' }).click();
  await page.getByRole('menuitem', { name: 'Verify the chain of events' }).click();
  await page.getByRole('button', { name: 'Copy the head' }).click();
  await page.getByRole('button', { name: 'Copied', exact: true }).waitFor();
  expect(await page.evaluate(() => navigator.clipboard.readText())).toMatch(/^\d+:[0-9a-f]+$/);
});

server.test(
  'without the scope admin, only the agents are shown; with it, another owner still has no doctor',
  async ({ context }) => {
    const page = await context.newPage();
    const openAs = async (grant: object) => {
      await page.goto('about:blank');
      await context.clearCookies();
      const { link } = await server.caller.ok('POST', '/links', grant);
      await context.request.get(link, { maxRedirects: 0 });
      await page.goto(`${server.url}/health`);
    };
    await openAs({ scopes: ['read'] });
    await page.getByText('The rest of this view needs the scope admin.').waitFor();
    expect(await page.getByRole('button', { name: 'Examine' }).count()).toBe(0);
    await axe(page);
    await openAs({ owner: 'ann', scopes: ['read', 'admin'] });
    await page.getByText('Everything works.').waitFor();
    await page.getByRole('button', { name: 'Refresh' }).waitFor();
    expect(await page.getByRole('button', { name: 'Examine' }).count()).toBe(0);
  },
  PHONE,
);
