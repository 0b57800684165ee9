// Faults that are common in pages like this one: duplicates, late responses, streams of other conversations, slow switching.
import { randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import { pageServer, waitForRender } from './harness.ts';
import { stableScrollTop, timeline, waitUntilAtEnd } from './scrolling.ts';

const server = pageServer();

const turn = (page: Page, n: number) => page.getByRole('article', { name: `Turn ${n}`, exact: true });
const newConversation = async (key: string = randomUUID()) => (await server.tl()).conversation(key, { title: key });

server.test('equal prompts and equal answers are all shown, live and after a reload', async ({ open }) => {
  const conversation = await newConversation();
  const { id } = await conversation.ensure();
  const page = await open(`/c/${id}`);
  await page.getByRole('textbox', { name: 'Prompt', exact: true }).waitFor();
  const same = '/say The same.\n/tool read same.txt\n/tool read same.txt\n/say The same.';
  for (let n = 1; n <= 2; n += 1) await conversation.ask(same);
  const releaseFile = join(server.home.path, `go-${randomUUID()}`);
  const lastAnswer = conversation.send(`${same}\n/await ${releaseFile}`);
  const expectAllTurns = async () => {
    for (let n = 1; n <= 3; n += 1) {
      // Twice in the prompt, and twice in the answer.
      const occurrences = async () => (await turn(page, n).innerText()).split('The same.').length - 1;
      await expect.poll(occurrences, { message: `the texts of turn ${n}` }).toBe(4);
      const run = turn(page, n).getByRole('button', { name: /1 file (read|changed)/ });
      if ((await run.getAttribute('aria-expanded')) === 'false') await run.click();
      const tools = turn(page, n).getByRole('button', { name: /same\.txt/ });
      await expect.poll(() => tools.count(), { message: `the tools of turn ${n}` }).toBe(2);
    }
    expect(await page.getByRole('article').count()).toBe(3);
  };
  await expectAllTurns();
  await writeFile(releaseFile, '');
  await lastAnswer.result;
  await page.getByRole('button', { name: 'Send', exact: true }).waitFor();
  await expectAllTurns();
  await page.reload();
  await expectAllTurns();
});

server.test('a late response does not bring back a turn and a question that have ended', async ({ open }) => {
  const conversation = await newConversation();
  const { id } = await conversation.ensure();
  const page = await open(`/c/${id}`);
  await page.getByRole('button', { name: 'Send', exact: true }).waitFor();
  // The page requests the turn and the questions while both are open. The responses arrive when both have ended.
  const held = [await holdNext(page, /\/v1\/turns\/[^/?]+$/), await holdNext(page, /\/v1\/permissions\?/)];
  await conversation.send('/ask May I?\n/say It is over.', { permissions: 'ask' }).accepted;
  await Promise.all(held.map(({ requested }) => requested));
  const tl = await server.tl();
  const questions = () => tl.permissions({ conversation: id, open: true });
  await expect.poll(questions).toHaveLength(1);
  const [question] = await questions();
  await tl.answer(question?.id ?? '', question?.options[0]?.optionId ?? '');
  await turn(page, 1).getByText('It is over.', { exact: true }).waitFor();
  await page.getByRole('button', { name: 'Send', exact: true }).waitFor();
  for (const { release } of held) await release();
  await waitForRender(page);
  expect(await page.getByRole('region', { name: /^Permission: / }).count()).toBe(0);
  expect(await page.getByRole('region', { name: 'Queued prompts' }).count()).toBe(0);
  await page.getByRole('button', { name: 'Send', exact: true }).waitFor();
});

server.test('a late list of conversations does not show a question that has ended', async ({ open }) => {
  const conversation = await newConversation('overtaken');
  const page = await open('/');
  await page.getByRole('heading', { name: 'For you' }).waitFor();
  await conversation.ask('Hello');
  await page.getByRole('region', { name: 'Answered since you looked' }).getByText('overtaken').waitFor();
  // The page requests the list while the question is open. The response arrives when the turn has ended.
  const held = await holdNext(page, /\/v1\/conversations\?limit=50$/, '"state":"asks"');
  await conversation.send('/ask May I?\n/say It is over.', { permissions: 'ask' }).accepted;
  await held.requested;
  await conversation.cancel();
  await expect.poll(async () => (await conversation.get()).state).toBe('idle');
  await conversation.rename('overtook');
  await page.getByRole('complementary').getByText('overtook').waitFor();
  await expect.poll(() => page.title()).toBe('Throughline'); // its count is that of the questions, which are read separately
  await held.release();
  await waitForRender(page);
  expect(await page.getByText('Asks you').count()).toBe(0);
  // What was announced to screen readers stays.
  for (const area of ['main', 'complementary'] as const)
    expect(await page.getByRole(area).getByText('overtaken').count()).toBe(0);
  expect(await page.title()).toBe('Throughline');
});

server.test('after an agent has died, no view shows its turn as running', async ({ open }) => {
  const conversation = await newConversation('dying');
  const { id } = await conversation.ensure();
  const [page, forYou] = [await open(`/c/${id}`), await open('/')];
  await expect(conversation.ask('/say I begin.\n/tool edit a.txt\n/die')).rejects.toThrow();
  await turn(page, 1)
    .getByText(/ended in the middle of the turn/)
    .first()
    .waitFor();
  for (const text of [/Answering/, /Working/, /Restoring/])
    await expect.poll(() => page.getByRole('main').getByText(text).count(), { message: String(text) }).toBe(0);
  await page.getByRole('button', { name: 'Send', exact: true }).waitFor();
  await forYou.getByRole('link', { name: /dying/ }).first().waitFor();
  await expect.poll(() => forYou.getByRole('img', { name: 'Working' }).count()).toBe(0);
  await expect.poll(() => forYou.title()).toBe('Throughline');
});

server.test(
  'an answer that streams in another conversation neither scrolls nor changes the open one',
  async ({ open }) => {
    const tl = await server.tl();
    const messages = Array.from({ length: 80 }, (_, n) => ({
      role: n % 2 ? 'assistant' : 'user',
      content: `Words ${n}.`,
    }));
    const { id } = await tl.engine.import(messages, { key: 'still', agent: 'scripted' });
    // The tab still follows this conversation, because it was open there before.
    const streaming = await newConversation('streaming');
    await streaming.ask('/say Opened.');
    const page = await open(`/c/${(await streaming.get()).id}`);
    await page.getByText('Opened.', { exact: true }).waitFor();
    await page.locator(`a[href="/c/${id}"]`).first().click();
    await turn(page, 40).waitFor();
    await waitUntilAtEnd(page);
    await timeline(page).hover();
    await page.mouse.wheel(0, -600);
    await page.getByRole('button', { name: 'Go to the end' }).waitFor();
    const scrollTop = await stableScrollTop(timeline(page));
    await timeline(page).evaluate((box, top) => {
      const seen = { moved: 0, changes: 0 };
      box.addEventListener('scroll', () => (seen.moved = Math.max(seen.moved, Math.abs(box.scrollTop - top))));
      // Times such as “2 minutes ago” change by themselves.
      const isRelativeTime = ({ target }: MutationRecord) => target.parentElement?.closest('time') !== null;
      const observer = new MutationObserver(
        (all) => (seen.changes += all.filter((one) => !isRelativeTime(one)).length),
      );
      observer.observe(box, { subtree: true, childList: true, characterData: true });
      Object.assign(globalThis, { seen });
    }, scrollTop);
    await streaming.ask('/stream 60 5');
    await waitForRender(page);
    expect(await page.evaluate(() => (globalThis as unknown as { seen: object }).seen)).toEqual({
      moved: 0,
      changes: 0,
    });
    expect(await timeline(page).evaluate((box) => box.scrollTop)).toBe(scrollTop);
    // The tab has received the answer nevertheless: it is shown without another request.
    await page.route(/\/v1\/conversations\//, (route) => route.abort());
    await page
      .getByRole('link', { name: /streaming/ })
      .first()
      .click();
    await page.getByText('chunk 60 ').waitFor();
  },
);

server.test('opening a conversation sends all requests that it needs in parallel, and no others', async ({ open }) => {
  const tl = await server.tl();
  const messages = Array.from({ length: 300 }, (_, n) => ({
    role: n % 2 ? 'assistant' : 'user',
    content: `Line ${n}.`,
  }));
  const { id } = await tl.engine.import(messages, { key: 'asked for', agent: 'scripted' });
  const page = await open('/');
  const mayRespond = Promise.withResolvers<void>();
  const [requested, fromStart]: [string[], string[]] = [[], []];
  await page.route(/\/v1\/(conversations\/[^?]|permissions)/, async (route) => {
    const { pathname, searchParams } = new URL(route.request().url());
    requested.push(pathname.replace(`/v1/conversations/${id}`, ''));
    // The outline, which has no texts, is read from the start when the end is shown.
    if (searchParams.get('after') === '0' && !pathname.endsWith('/outline')) fromStart.push(pathname);
    await mayRespond.promise;
    await route.continue();
  });
  await page.locator(`a[href="/c/${id}"]`).first().click();
  const needed = ['', '/records', '/restores', '/sessions', '/turns', '/v1/permissions'];
  await expect.poll(() => requested.toSorted()).toEqual(needed);
  mayRespond.resolve();
  await turn(page, 150).waitFor();
  await waitUntilAtEnd(page);
  // Then the turns above the visible ones are read, but not those at the start.
  expect(fromStart).toEqual([]);
});

server.test('switching between conversations does not get slower when there are many', async ({ open }) => {
  const tl = await server.tl();
  const places = await Promise.all(
    ['left', 'right'].map(async (key) => {
      await tl.conversation(key, { title: key }).ask(`/say Here is ${key}.`);
      return { title: key, path: `/c/${(await tl.conversation(key).get()).id}` };
    }),
  );
  const few = await switchMs(await open(places[0]?.path), places);
  for (let n = 0; n < 600; n += 50) {
    await Promise.all(Array.from({ length: 50 }, (_, index) => tl.engine.ensure({ key: `row-${n + index}` })));
  }
  const page = await open(places[0]?.path);
  const list = page.getByRole('complementary', { name: 'Conversations' }).getByRole('list', { name: 'Conversations' });
  await expect
    .poll(async () => {
      await list.locator('..').evaluate((element) => element.scrollTo(0, element.scrollHeight));
      return list.locator('..').evaluate((element) => element.scrollHeight);
    })
    .toBeGreaterThan(600 * 27); // a row is 28 px high
  const many = await switchMs(page, places);
  // If the rail rendered all of its rows again, the time would grow with their number.
  expect(many, `${few} ms for a switch with few conversations, ${many} ms with many`).toBeLessThan(few * 3 + 10);
});

/** The processor time of a switch between the two, in milliseconds: the least of twelve. The elapsed time would depend on other processes. */
async function switchMs(page: Page, places: readonly { title: string; path: string }[]): Promise<number> {
  await page.getByRole('heading', { name: places[0]?.title ?? '', exact: true }).waitFor();
  const session = await page.context().newCDPSession(page);
  await session.send('Performance.enable', { timeDomain: 'threadTicks' });
  const processorMs = async () => {
    const { metrics } = await session.send('Performance.getMetrics');
    return (metrics.find(({ name }) => name === 'TaskDuration')?.value ?? Number.NaN) * 1_000;
  };
  const times: number[] = [];
  for (let n = 1; n <= 12; n += 1) {
    const before = await processorMs();
    await page.evaluate(
      async ({ title, path }) => {
        history.pushState(null, '', path);
        const main = () => document.querySelector('main');
        while (main()?.querySelector('h1')?.textContent !== title || !main()?.textContent.includes(`Here is ${title}.`))
          await new Promise((done) => requestAnimationFrame(done));
      },
      places[n % 2] as { title: string; path: string },
    );
    times.push((await processorMs()) - before);
  }
  return Math.round(Math.min(...times));
}

/** Holds the next response from such an address whose body contains the text. It arrives unchanged when it is released. */
async function holdNext(page: Page, address: RegExp, text = '') {
  const [requested, released, arrived] = Array.from({ length: 3 }, () => Promise.withResolvers<void>());
  let isHeld = false;
  await page.route(address, async (route) => {
    if (isHeld) return route.continue();
    const answer = await fetch(route.request().url(), { headers: { authorization: `Bearer ${server.token}` } });
    const response = { status: answer.status, headers: Object.fromEntries(answer.headers), body: await answer.text() };
    if (!response.body.includes(text)) return route.fulfill(response);
    isHeld = true;
    requested?.resolve();
    await released?.promise;
    await route.fulfill(response);
    await (await route.request().response())?.finished();
    arrived?.resolve();
  });
  return {
    requested: requested?.promise,
    release: () => {
      released?.resolve();
      return arrived?.promise;
    },
  };
}
