// What goes wrong in comparable pages, and must not here: doubles, late answers, foreign streams, slow switching.
import { randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import { pageServer } from './harness.ts';
import { atEnd, log, stillness } from './scrolling.ts';

const server = pageServer();

const turn = (page: Page, n: number) => page.getByRole('article', { name: `Turn ${n}`, exact: true });
const chat = async (key: string = randomUUID()) => (await server.tl()).conversation(key, { title: key });

server.test('equal prompts and equal answers are all shown, live and after a reload', async ({ open }) => {
  const talk = await chat();
  const { id } = await talk.ensure();
  const page = await open(`/c/${id}`);
  await page.getByRole('textbox', { name: 'Prompt', exact: true }).waitFor();
  const same = '/say The same.\n/tool read same.txt\n/tool read same.txt\n/say The same.';
  for (let n = 1; n <= 2; n += 1) await talk.ask(same);
  const gate = join(server.home.path, `go-${randomUUID()}`);
  const last = talk.send(`${same}\n/await ${gate}`);
  const look = async () => {
    for (let n = 1; n <= 3; n += 1) {
      // Said twice, and twice in the prompt.
      const said = async () => (await turn(page, n).innerText()).split('The same.').length - 1;
      await expect.poll(said, { message: `the words of turn ${n}` }).toBe(4);
      const tools = turn(page, n).getByRole('button', { name: /same\.txt/ });
      await expect.poll(() => tools.count(), { message: `the tools of turn ${n}` }).toBe(2);
    }
    expect(await page.getByRole('article').count()).toBe(3);
  };
  await look();
  await writeFile(gate, '');
  await last.result;
  await page.getByRole('button', { name: 'Send' }).waitFor();
  await look();
  await page.reload();
  await look();
});

server.test('an answer of the server that comes late does not bring back what is over', async ({ open }) => {
  const talk = await chat();
  const { id } = await talk.ensure();
  const page = await open(`/c/${id}`);
  await page.getByRole('button', { name: 'Send' }).waitFor();
  // The page asks for the turn and for open questions while both are open, and hears of it when both are over.
  const late = [await holdNext(page, /\/v1\/turns\/[^/?]+$/), await holdNext(page, /\/v1\/permissions\?/)];
  await talk.send('/ask May I?\n/say It is over.', { permissions: 'ask' }).accepted;
  await Promise.all(late.map(({ asked }) => asked));
  const tl = await server.tl();
  const questions = () => tl.permissions({ conversation: id, open: true });
  await expect.poll(questions).toHaveLength(1);
  const [question] = await questions();
  await tl.answer(question?.id ?? '', question?.options[0]?.optionId ?? '');
  await turn(page, 1).getByText('It is over.', { exact: true }).waitFor();
  await page.getByRole('button', { name: 'Send' }).waitFor();
  for (const { release } of late) await release();
  await frames(page);
  expect(await page.getByRole('region', { name: /^Permission: / }).count()).toBe(0);
  expect(await page.getByRole('region', { name: 'Queued prompts' }).count()).toBe(0);
  await page.locator('main header').getByText('Idle').waitFor();
});

server.test('a late list does not say that somebody is needed who is not', async ({ open }) => {
  const talk = await chat('overtaken');
  const page = await open('/');
  await page.getByRole('heading', { name: 'Inbox' }).waitFor();
  await talk.ask('Hello');
  await page.getByRole('region', { name: 'Changed since you looked' }).getByText('overtaken').waitFor();
  // The page asks for the list while the agent asks, and hears of it when that is over.
  const late = await holdNext(page, /\/v1\/conversations\?limit=50$/, '"state":"asks"');
  await talk.send('/ask May I?\n/say It is over.', { permissions: 'ask' }).accepted;
  await late.asked;
  await talk.cancel();
  await expect.poll(async () => (await talk.get()).state).toBe('idle');
  await talk.rename('overtook');
  await page.getByRole('complementary').getByText('overtook').waitFor();
  await expect.poll(() => page.title()).toBe('Throughline'); // the questions are read apart from the list
  await late.release();
  await frames(page);
  expect(await page.getByText('Asks you').count()).toBe(0);
  expect(await page.getByText('overtaken').count()).toBe(0);
  expect(await page.title()).toBe('Throughline');
});

server.test('an agent that dies leaves nothing that works for ever, in any view', async ({ open }) => {
  const talk = await chat('dying');
  const { id } = await talk.ensure();
  const [page, inbox] = [await open(`/c/${id}`), await open('/')];
  await talk.send('/say I begin.\n/tool edit a.txt\n/die').result.catch(() => {});
  await turn(page, 1)
    .getByText(/ended before|died|exited|interrupted|killed|failed/i)
    .first()
    .waitFor();
  for (const words of [/Answering/, /Running/, /Restoring/])
    await expect.poll(() => page.getByRole('main').getByText(words).count(), { message: String(words) }).toBe(0);
  await page.getByRole('button', { name: 'Send' }).waitFor();
  await inbox.getByRole('link', { name: /dying/ }).first().waitFor();
  await expect.poll(() => inbox.getByRole('region', { name: 'Running' }).count()).toBe(0);
  await expect.poll(() => inbox.title()).toBe('Throughline');
});

server.test('what streams in another conversation moves nothing here', async ({ open }) => {
  const tl = await server.tl();
  const messages = Array.from({ length: 80 }, (_, n) => ({
    role: n % 2 ? 'assistant' : 'user',
    content: `Words ${n}.`,
  }));
  const { id } = await tl.engine.import(messages, { key: 'still', agent: 'scripted' });
  // It was open in this tab, and is still followed here.
  const streaming = await chat('streaming');
  await streaming.ask('/say Opened.');
  const page = await open(`/c/${(await streaming.get()).id}`);
  await page.getByText('Opened.', { exact: true }).waitFor();
  await page.locator(`a[href="/c/${id}"]`).first().click();
  await turn(page, 40).waitFor();
  await atEnd(page);
  await log(page).hover();
  await page.mouse.wheel(0, -600);
  await page.getByRole('button', { name: 'Go to the end' }).waitFor();
  const place = await stillness(log(page));
  await log(page).evaluate((box, top) => {
    const seen = { moved: 0, changes: 0 };
    box.addEventListener('scroll', () => (seen.moved = Math.max(seen.moved, Math.abs(box.scrollTop - top))));
    // How long ago something was changes by itself.
    const isTime = ({ target }: MutationRecord) => target.parentElement?.closest('time') !== null;
    const observer = new MutationObserver((all) => (seen.changes += all.filter((one) => !isTime(one)).length));
    observer.observe(box, { subtree: true, childList: true, characterData: true });
    Object.assign(globalThis, { seen });
  }, place);
  await streaming.ask('/stream 60 5');
  await frames(page);
  expect(await page.evaluate(() => (globalThis as unknown as { seen: object }).seen)).toEqual({ moved: 0, changes: 0 });
  expect(await log(page).evaluate((box) => box.scrollTop)).toBe(place);
  // Its stream has come all the same: it is there without another request.
  await page.route(/\/v1\/conversations\//, (route) => route.abort());
  await page
    .getByRole('link', { name: /streaming/ })
    .first()
    .click();
  await page.getByText('chunk 60 ').waitFor();
});

server.test('everything that a conversation needs is asked for at once, and nothing else', async ({ open }) => {
  const tl = await server.tl();
  const messages = Array.from({ length: 300 }, (_, n) => ({
    role: n % 2 ? 'assistant' : 'user',
    content: `Line ${n}.`,
  }));
  const { id } = await tl.engine.import(messages, { key: 'asked for', agent: 'scripted' });
  const page = await open('/');
  const mayAnswer = Promise.withResolvers<void>();
  const [asked, starts]: [string[], string[]] = [[], []];
  await page.route(/\/v1\/(conversations\/[^?]|permissions)/, async (route) => {
    const { pathname, searchParams } = new URL(route.request().url());
    asked.push(pathname.replace(`/v1/conversations/${id}`, ''));
    if (searchParams.get('after') === '0') starts.push(pathname);
    await mayAnswer.promise;
    await route.continue();
  });
  await page.locator(`a[href="/c/${id}"]`).first().click();
  const needed = ['', '/records', '/restores', '/sessions', '/turns', '/v1/permissions'];
  await expect.poll(() => asked.toSorted()).toEqual(needed);
  mayAnswer.resolve();
  await turn(page, 150).waitFor();
  await atEnd(page);
  // Then the turns above are read ahead, and not its start.
  expect(starts).toEqual([]);
});

server.test('switching does not slow with the number of conversations', async ({ open }) => {
  const tl = await server.tl();
  const two = await Promise.all(
    ['left', 'right'].map(async (key) => {
      await tl.conversation(key, { title: key }).ask(`/say Here is ${key}.`);
      return { title: key, path: `/c/${(await tl.conversation(key).get()).id}` };
    }),
  );
  const few = await switching(await open(two[0]?.path), two);
  for (let n = 0; n < 600; n += 50) {
    await Promise.all(Array.from({ length: 50 }, (_, index) => tl.engine.ensure({ key: `row-${n + index}` })));
  }
  const page = await open(two[0]?.path);
  const list = page.getByRole('complementary', { name: 'Conversations' }).getByRole('list', { name: 'Conversations' });
  await expect
    .poll(async () => {
      await list.locator('..').evaluate((element) => element.scrollTo(0, element.scrollHeight));
      return list.locator('..').evaluate((element) => element.scrollHeight);
    })
    .toBeGreaterThan(600 * 30);
  const many = await switching(page, two);
  // A rail that renders all of its rows again takes about as many times longer as it has rows.
  expect(many, `${few} ms a switch with few, ${many} ms with many`).toBeLessThan(few * 3 + 10);
});

/** Milliseconds of the processor for one switch between the two, the least of several. Its time by the clock says how busy the machine is. */
async function switching(page: Page, places: readonly { title: string; path: string }[]): Promise<number> {
  await page.getByRole('heading', { name: places[0]?.title ?? '', exact: true }).waitFor();
  const session = await page.context().newCDPSession(page);
  await session.send('Performance.enable', { timeDomain: 'threadTicks' });
  const spent = async () => {
    const { metrics } = await session.send('Performance.getMetrics');
    return (metrics.find(({ name }) => name === 'TaskDuration')?.value ?? Number.NaN) * 1_000;
  };
  const times: number[] = [];
  for (let n = 1; n <= 12; n += 1) {
    const before = await spent();
    await page.evaluate(
      async ({ title, path }) => {
        history.pushState(null, '', path);
        const main = () => document.querySelector('main');
        while (main()?.querySelector('h1')?.textContent !== title || !main()?.textContent.includes(`Here is ${title}.`))
          await new Promise((done) => requestAnimationFrame(done));
      },
      places[n % 2] as { title: string; path: string },
    );
    times.push((await spent()) - before);
  }
  return Math.round(Math.min(...times));
}

/** The next answer from such an address with these words arrives when it is released, as it was. */
async function holdNext(page: Page, address: RegExp, words = '') {
  const [asked, released, answered] = Array.from({ length: 3 }, () => Promise.withResolvers<void>());
  let isHeld = false;
  await page.route(address, async (route) => {
    if (isHeld) return route.continue();
    const answer = await fetch(route.request().url(), { headers: { authorization: `Bearer ${server.token}` } });
    const response = { status: answer.status, headers: Object.fromEntries(answer.headers), body: await answer.text() };
    if (!response.body.includes(words)) return route.fulfill(response);
    isHeld = true;
    asked?.resolve();
    await released?.promise;
    await route.fulfill(response);
    await (await route.request().response())?.finished();
    answered?.resolve();
  });
  return {
    asked: asked?.promise,
    release: () => {
      released?.resolve();
      return answered?.promise;
    },
  };
}

/** What has arrived is on the screen. */
const frames = (page: Page) =>
  page.evaluate(
    () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done)))),
  );
