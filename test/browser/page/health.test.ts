// How the server is: agents, live sessions that can be killed, the store, the doctor, a check of the chain.
import { expect } from 'vitest';
import { axe, PHONE, pageServer } from './harness.ts';

const server = pageServer();

server.test('a live session is killed here, and the next prompt restores the context', async ({ open }) => {
  const chat = (await server.tl()).conversation('live', { agent: 'scripted' });
  await chat.ask('The codeword is osprey.');
  const page = await open('/health');
  await page.getByText('Everything works.').waitFor();
  await page.getByText(/^1 running\. A session is only a cache/).waitFor();
  await page.getByRole('button', { name: /^Kill the live session of/ }).click();
  await page.getByText('Session ended. Nothing that was said is lost.').waitFor();
  await page.getByText(/^None\. A session is only a cache/).waitFor();
  const { reply, receipt } = await chat.ask('Which codewords have you seen?');
  expect([reply, receipt.rung]).toEqual(['I have seen these codewords: osprey.', 'resume']);
  await axe(page);
});

server.test('agents say what they can do and what is wrong with them; the store says how it is', async ({ open }) => {
  const page = await open('/health');
  const agents = page.getByRole('region', { name: 'Agents' });
  await agents.getByText('can resume sessions').first().waitFor();
  const store = page.getByRole('region', { name: 'Store' });
  await store.getByText(/ms · 95th percentile/).waitFor();
  await store.getByText(/MB|KB/).first().waitFor();
});

server.test(
  'sandboxes are listed with who works in them, put to rest and removed, and a conversation says which one it has',
  async ({ open, context, allow }) => {
    allow(/422/); // unsaved work is in it
    const tl = await server.tl();
    const chats = ['painter', 'printer'].map((key) => tl.conversation(key, { title: key, sandbox: 'atelier' }));
    for (const chat of chats) await chat.ask('/tool write made.txt');
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
    const question = page.getByRole('dialog', { name: 'Remove the sandbox' });
    await question.getByRole('button', { name: 'Remove' }).click();
    await question.getByRole('alert').getByText('Unsaved work is in the sandbox').waitFor();
    await question.getByLabel('Also delete unsaved work').check();
    await axe(page);
    await question.getByText('throughline sandbox rm atelier --force').waitFor();
    await question.getByRole('button', { name: 'Remove' }).click();
    await list.getByText(/^not opened yet · .*2 conversations/).waitFor();
    // Of many, only the newest are listed.
    const none = { sandboxes: [], diskUse: { sandboxes: 0, bytes: 0 } };
    await context.route('**/v1/sandboxes?*', (route) => route.fulfill({ json: none }));
    await list.getByRole('link', { name: 'painter' }).click();
    await page.getByRole('button', { name: 'Show the panel' }).click();
    await page.getByRole('tab', { name: 'Lineage' }).click();
    await page.getByText(/^Works in the sandbox atelier · not opened yet · .*shared by 2 conversations$/).waitFor();
  },
);

server.test('the doctor examines, and a chain is verified', async ({ open }) => {
  const tl = await server.tl();
  await tl.engine.ensure({ key: 'another' });
  await tl.conversation('chain').ask('/say One.');
  const page = await open('/health');
  // What the rail shows does not matter.
  await page.getByRole('complementary', { name: 'Conversations' }).getByLabel('State').selectOption('Running');
  await page.getByText('No conversation matches the filters.').waitFor();
  await page.getByRole('button', { name: 'Verify' }).click();
  await page.getByText('No event was changed, removed or added.').waitFor();
  // What was found is not said of another conversation.
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
  'a browser without the scope admin sees the agents, and nothing of the server; one of another owner has no doctor',
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
