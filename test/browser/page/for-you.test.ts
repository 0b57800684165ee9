// “For you”, the messages of the page, and notifications, on one device and on two.
import { join } from 'node:path';
import type { BrowserContext, Locator, Page } from 'playwright-core';
import { expect } from 'vitest';
import { INTERFACE, INTERFACE_HEADER } from '../../../src/wire/operations/operation.ts';
import { problem } from '../../../src/wire/problem.ts';
import { axe, pageServer } from './harness.ts';

const server = pageServer();

const rail = (page: Page) => page.getByRole('complementary', { name: 'Conversations' });
const row = (page: Page, title: string | RegExp) => rail(page).getByRole('link', { name: title });
const section = (page: Page, name: string) => page.getByRole('region', { name, exact: true });

/** Runs the prompts one after the other in a conversation with this title. Those with `/fail` must fail. */
async function runPrompts(title: string, prompts: readonly string[], agent = 'scripted') {
  const conversation = (await server.tl()).conversation(title.toLowerCase().replaceAll(' ', '-'), { title, agent });
  for (const prompt of prompts) {
    if (prompt.startsWith('/fail')) await expect(conversation.ask(prompt)).rejects.toThrow();
    else await conversation.ask(prompt);
  }
  return conversation;
}

/** Shows the open questions as if their agent asked to run this command. */
async function asksToRun(context: BrowserContext, command: string) {
  await context.route('**/v1/permissions?*', async (route) => {
    const { search } = new URL(route.request().url());
    const answer = await server.caller.ok('GET', `/permissions${search}`);
    const toolCall = { title: 'Bash', kind: 'execute', rawInput: { command } };
    const permissions = answer.permissions.map((one: object) => ({ ...one, toolCall }));
    await route.fulfill({ headers: { [INTERFACE_HEADER]: INTERFACE }, json: { ...answer, permissions } });
  });
}

server.test(
  'a question is shown on two devices; when one answers it in its row, both show that nothing needs anybody',
  async (visit) => {
    await asksToRun(visit.context, 'npm run docs');
    const [firstDevice, secondDevice] = [await visit.open('/'), await visit.openElsewhere('/')];
    await firstDevice.getByText('Nothing needs you.').waitFor();
    await expect.poll(() => firstDevice.title()).toBe('Throughline');
    const conversation = (await server.tl()).conversation('cleaning', { title: 'Cleaning' });
    await conversation.send('/ask May I delete it?\n/tool write out.log', { permissions: 'ask' }).accepted;
    for (const page of [firstDevice, secondDevice]) {
      await section(page, 'Needs you')
        .getByRole('link', { name: /Cleaning/ })
        .waitFor();
      await expect.poll(() => page.title()).toBe('(1) Throughline');
    }
    // Here the rail does not repeat it; beside other views it does, with what it asks.
    expect(await row(firstDevice, /Cleaning/).count()).toBe(0);
    await section(firstDevice, 'Needs you').getByText('Wants to run npm run docs').waitFor();
    await axe(firstDevice);
    // A question with more than its words, here a file, has to be opened.
    await section(secondDevice, 'Needs you').getByText('May I delete it?').waitFor();
    await section(secondDevice, 'Needs you').getByRole('link', { name: 'Look at it' }).waitFor();
    expect(await secondDevice.getByRole('button', { name: 'Allow once' }).count()).toBe(0);
    // The buttons are inert at first.
    const allow = section(firstDevice, 'Needs you').locator('button[aria-disabled=false]', { hasText: 'Allow once' });
    await allow.click();
    await expect.poll(async () => (await conversation.show()).turns[0]?.state).toBe('completed');
    for (const page of [firstDevice, secondDevice]) {
      await expect.poll(() => page.title()).toBe('Throughline');
      await expect.poll(() => section(page, 'Needs you').count()).toBe(0);
    }
  },
);

server.test('a question with characters that deceive cannot be answered in its row', async ({ open, context }) => {
  await asksToRun(context, 'echo ok # \u202e; rm -rf ~ #');
  const conversation = (await server.tl()).conversation('forged', { title: 'Forged' });
  await conversation.send('/ask May I?', { permissions: 'ask' }).accepted;
  const page = await open('/');
  await section(page, 'Needs you').getByText('marked characters').waitFor();
  await section(page, 'Needs you')
    .getByText(/U\+202E/)
    .waitFor();
  expect(await page.getByRole('button', { name: 'Allow once' }).count()).toBe(0);
  await axe(page);
  await section(page, 'Needs you').getByRole('link', { name: 'Look at it' }).click();
  await page.waitForURL(/\/c\//);
  await rail(page)
    .getByRole('link', { name: /Forged.*asks to run/ })
    .waitFor();
  await conversation.cancel();
  await expect.poll(() => page.title()).toBe('Forged · Throughline');
});

server.test('what was pressed before a question was there does not answer it', async ({ open, context }) => {
  await asksToRun(context, 'npm run docs');
  const page = await open('/');
  const conversation = (await server.tl()).conversation('early', { title: 'Early' });
  await conversation.send('/ask May I?', { permissions: 'ask' }).accepted;
  const allow = section(page, 'Needs you').getByRole('button', { name: 'Allow once' });
  await allow.waitFor();
  // Held since before: each repeated press is ignored.
  await allow.evaluate((button) => {
    const held = { key: 'Enter', repeat: true, bubbles: true, cancelable: true };
    button.dispatchEvent(new KeyboardEvent('keydown', held));
    (button as HTMLElement).click();
  });
  await section(page, 'Needs you').locator('button[aria-disabled=false]', { hasText: 'Allow once' }).waitFor();
  expect((await (await server.tl()).permissions({ conversation: 'early', open: true })).length).toBe(1);
  await section(page, 'Needs you').getByRole('button', { name: 'Refuse' }).click();
  await expect.poll(async () => (await conversation.show()).turns[0]?.state).toBe('completed');
  const [permission] = await (await server.tl()).permissions({ conversation: 'early' });
  expect(permission).toMatchObject({ state: 'answered', optionId: 'reject' });
});

server.test(
  'a failed restore is listed under “Needs you” until it is dismissed; a failed turn is not listed',
  async ({ open }) => {
    await runPrompts('Forgetting', ['Hello'], 'forgetful');
    await runPrompts('Failing', ['/fail agent_failed']);
    const page = await open('/');
    await row(page, /Failing/).waitFor();
    expect(await section(page, 'Needs you').count()).toBe(0);
    // The sessions of this agent end with its process, so the rung resume fails.
    const forgetting = (await server.tl()).conversation('forgetting');
    await forgetting.kill();
    await expect(forgetting.ask('Again', { restore: { rung: 'resume' } })).rejects.toThrow();
    await section(page, 'Needs you').getByText('Not restored').waitFor();
    await expect.poll(() => page.title()).toBe('(1) Throughline');
    await page.getByRole('button', { name: 'Dismiss' }).click();
    await expect.poll(() => page.title()).toBe('Throughline');
    await forgetting.ask('Once more'); // then it is not listed in other browsers either
  },
);

server.test('an error is shown with what to do, until it is closed', async ({ open, allow }) => {
  allow(/status of 400/);
  const { id } = await (await server.tl()).conversation('nothing said', { title: 'Nothing said' }).ensure();
  const page = await open(`/c/${id}`);
  await page.getByRole('button', { name: 'Conversation actions' }).click();
  await page.getByRole('menuitem', { name: 'Fork', exact: true }).click();
  await page.getByText('There is nothing to fork: the conversation has no turns yet.').waitFor();
  await page.getByText('Fork it after its first turn has ended, or start another conversation.').waitFor();
  await axe(page);
  await page.getByRole('button', { name: 'Close' }).click();
  await expect.poll(() => page.getByText(/There is nothing to fork/).count()).toBe(0);
});

server.test('an error that nobody has closed stays, however many messages come after it', async ({ open, allow }) => {
  allow(/status of 409/);
  const failing = (await server.tl()).conversation('failing', { title: 'Failing restore' });
  await failing.ask('Hello');
  await failing.kill();
  const page = await open(`/c/${(await failing.get()).id}`);
  let [tries, message] = [0, (n: number) => `Error ${n}.`];
  await page.route('**/warm', (route) => {
    tries += 1;
    const headers = { [INTERFACE_HEADER]: INTERFACE };
    const contentType = 'application/problem+json';
    return route.fulfill({ status: 409, headers, contentType, json: problem('conflict', message(tries)) });
  });
  const messages = page.getByRole('status', { name: 'Messages' });
  const menu = page.getByRole('button', { name: 'Conversation actions' });
  const fail = async () => {
    const before = tries;
    await menu.press('Enter'); // messages may cover it
    await page.getByRole('menuitem', { name: 'Restore the session now' }).press('Enter');
    await expect.poll(() => tries).toBe(before + 1);
    await page.getByText(message(tries)).waitFor();
  };
  for (let n = 1; n <= 12; n += 1) await fail();
  for (let n = 1; n <= 12; n += 1) expect([n, await page.getByText(`Error ${n}.`).count()]).toEqual([n, 1]);
  // The newest is in sight, and the first can be scrolled to.
  const bottomOf = async (what: Locator) => {
    const { y = 0, height = 0 } = (await what.boundingBox()) ?? {};
    return y + height;
  };
  await expect
    .poll(async () => (await bottomOf(messages.getByText('Error 12.'))) <= (await bottomOf(messages)))
    .toBe(true);
  const { height = 0 } = (await messages.boundingBox()) ?? {};
  expect(height).toBeLessThan((page.viewportSize()?.height ?? 0) * 0.6);
  await messages.getByText('Error 1.').scrollIntoViewIfNeeded();
  await axe(page);
  await messages.getByRole('listitem').filter({ hasText: 'Error 1.' }).getByRole('button', { name: 'Close' }).click();
  expect(await messages.getByText('Error 1.').count()).toBe(0);
  await messages.getByRole('button', { name: 'Close all 11 messages' }).click();
  expect(await messages.getByRole('listitem').count()).toBe(0);
  // The same error again and again is one message.
  message = () => 'It failed.';
  for (let n = 1; n <= 3; n += 1) await fail();
  await messages.getByText('(3 times)').waitFor();
  expect(await messages.getByRole('listitem').count()).toBe(1);
});

server.test('a stranded conversation says so in the lists and in its head, and can be moved here', async ({ open }) => {
  // Another data home uses the same store, and no process runs there any more.
  const otherHome = { THROUGHLINE_HOME: join(server.home.path, 'gone') };
  const store = `sqlite:${join(server.home.path, 'home', 'throughline.db')}`;
  const sendCommand = ['send', 'drifting', '--store', store, 'The codeword is heron\n/tool write work.txt'];
  expect(await server.home.start(sendCommand, { env: otherHome }).ended).toMatchObject({ code: 0 });
  const page = await open('/');
  const message = `"drifting" runs only at the data home ${otherHome.THROUGHLINE_HOME}, and no process takes it up there.`;
  const strandedRow = row(page, /codeword is heron/);
  await strandedRow.getByRole('img', { name: 'Stranded' }).waitFor();
  await strandedRow.click();
  const note = page.getByRole('region', { name: 'Stranded' });
  await note.getByText(message).waitFor();
  await note.getByText('throughline move drifting', { exact: true }).waitFor();
  await axe(page);
  await note.getByRole('button', { name: 'Move here…' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Move here' }).click();
  await note.waitFor({ state: 'detached' });
  await strandedRow.getByRole('img').waitFor({ state: 'detached' });
  await page.getByRole('textbox', { name: 'Prompt', exact: true }).fill('Which codewords have you seen?');
  await page.keyboard.press('Enter');
  // The seam is rendered again when the turn has ended, so it is opened after that.
  await page.getByText('I have seen these codewords: heron.').waitFor();
  await page.getByRole('button', { name: 'Send' }).waitFor();
  await page.getByRole('button', { name: /moved here without its files/ }).click();
  await page.getByText(`The working files are not here, but at ${otherHome.THROUGHLINE_HOME}`).waitFor();
});

server.test('a task that asks is listed under “Needs you” until it no longer asks', async ({ open }) => {
  const page = await open('/');
  await page.getByRole('heading', { name: 'For you' }).waitFor();
  const { tasks } = await server.tl();
  const [task] = await tasks.run({ goal: '/fail agent_failed', name: 'stuck', agent: 'scripted' });
  expect(task).toMatchObject({ state: 'asking' });
  const line = section(page, 'Needs you').getByRole('link', { name: /Needs you.*stuck/ });
  await line.waitFor();
  await expect.poll(() => page.title()).toBe('(1) Throughline');
  await line.click();
  await page.getByRole('heading', { name: 'stuck' }).waitFor();
  await page.goBack();
  await line.waitFor();
  await tasks.cancel(task?.id ?? '');
  await line.waitFor({ state: 'detached' });
  await expect.poll(() => page.title()).toBe('Throughline');
});

server.test(
  'a conversation that was answered since it was opened is listed, also after a reload, until it is opened or done',
  async ({ open }) => {
    await runPrompts('Reading', ['/say One.']);
    const page = await open('/');
    await row(page, /Reading/).waitFor();
    expect(await section(page, 'Answered since you looked').count()).toBe(0);
    await runPrompts('Reading', ['/say Two.']);
    const changed = section(page, 'Answered since you looked').getByRole('link', { name: /Reading/ });
    await changed.waitFor();
    await page.reload();
    await changed.waitFor();
    await changed.click();
    await page.waitForURL(/\/c\//);
    await page.getByRole('complementary').getByRole('link', { name: 'For you' }).click();
    await page.getByText('Nothing needs you.').waitFor();
    await expect.poll(() => section(page, 'Answered since you looked').count()).toBe(0);
    // By keys: J to the line, Enter opens it, E says that it was seen.
    await runPrompts('Reading', ['/say Three.']);
    await runPrompts('Writing', ['/say Four.']);
    await section(page, 'Answered since you looked')
      .getByRole('link', { name: /Writing/ })
      .waitFor();
    await changed.waitFor();
    await page.keyboard.press('j');
    await page.keyboard.press('j');
    const focused = () => page.evaluate(() => document.activeElement?.textContent);
    await expect.poll(focused).toMatch(/Reading/);
    await page.keyboard.press('e');
    await expect.poll(() => changed.count()).toBe(0);
    await expect.poll(focused).toMatch(/Writing/);
    await page.keyboard.press('Enter');
    await page.waitForURL(/\/c\//);
    await page.getByText('Four.', { exact: true }).waitFor();
  },
);

server.test('the browser notifies once for all tabs, and only when no tab is visible', async ({ open, context }) => {
  await context.addInitScript(() => {
    class FakeNotification {
      static permission = 'granted';
      static requestPermission = async () => 'granted';
      constructor(title: string) {
        const shown = JSON.parse(localStorage.getItem('shown') ?? '[]');
        localStorage.setItem('shown', JSON.stringify([...shown, title]));
      }
    }
    Object.assign(window, { Notification: FakeNotification });
    let state = 'visible';
    Object.defineProperty(document, 'visibilityState', { get: () => state });
    Object.assign(window, {
      hide: (next: string) => {
        state = next;
        document.dispatchEvent(new Event('visibilitychange'));
      },
    });
  });
  const pages = [await open('/'), await open('/')];
  const [first] = pages as [Page, Page];
  // A question that is open before the list is loaded causes no notification.
  for (const page of pages) await page.getByRole('heading', { name: 'For you' }).waitFor();
  await first.getByRole('link', { name: 'Settings and health' }).click();
  await first.getByRole('checkbox', { name: /^Notify me/ }).check();
  const withContent = first.getByRole('checkbox', { name: /what it is about/ });
  /** Holds matching requests until they are released. */
  const holdRequests = async (pattern: string) => {
    let release = () => {};
    const released = new Promise<void>((resolve) => (release = resolve));
    await context.route(pattern, async (route) => {
      await released;
      await route.continue();
    });
    return { release };
  };
  const askQuestion = async (title: string) => {
    const conversation = (await server.tl()).conversation(title, { title });
    await conversation.send('/ask May I?\n/tool write x.log', { permissions: 'ask' }).accepted;
    const openQuestions = async () =>
      (await (await server.tl()).permissions({ conversation: title, open: true })).length;
    await expect.poll(openQuestions).toBe(1);
    return conversation;
  };
  /** Waits until the tabs have decided about the notification of a question: one has stored its id, and has released the lock. */
  const waitForDecision = async ({ id }: { id: string }) => {
    const [question] = await (await server.tl()).permissions({ conversation: id, open: true });
    const storedIds = () => first.evaluate(() => localStorage.getItem('throughline.notified'));
    await expect.poll(storedIds).toContain(question?.id ?? '');
    await first.evaluate(() => navigator.locks.request('throughline.notified', async () => {}));
  };
  const whileVisible = await askQuestion('while looking');
  await waitForDecision(await whileVisible.get());
  for (const page of pages) await page.evaluate(() => (window as never as { hide(s: string): void }).hide('hidden'));
  // The questions are read before the list has the conversation of the third one.
  const questions = await holdRequests('**/v1/permissions?*');
  const whileHidden = await askQuestion('while away');
  await Promise.all(
    pages.map((page) =>
      row(page, /while away/)
        .getByRole('img', { name: 'Asks you' })
        .waitFor(),
    ),
  );
  const lists = await holdRequests('**/v1/conversations?*');
  const unlisted = await askQuestion('not listed yet');
  questions.release();
  for (const conversation of [whileHidden, unlisted]) await waitForDecision(await conversation.get());
  const shown = () => first.evaluate(() => JSON.parse(localStorage.getItem('shown') ?? '[]') as string[]);
  // Nothing of the content, unless somebody allows it.
  const expectedOnce = ['An agent asks you', 'An agent asks you'];
  await expect.poll(shown).toEqual(expectedOnce);
  lists.release();
  await withContent.check();
  const allowed = await askQuestion('with its name');
  await waitForDecision(await allowed.get());
  expectedOnce.push('with its name asks you');
  await expect.poll(shown).toEqual(expectedOnce);
  for (const conversation of [whileVisible, whileHidden, unlisted, allowed]) await conversation.cancel();
  await expect.poll(() => first.title()).toBe('Throughline');
  expect((await shown()).filter((title) => title.includes('asks'))).toEqual(expectedOnce);
});
