// A conversation as it is read: what was said, while it is being said, and where sessions were restored.
import { randomUUID } from 'node:crypto';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import { axe, PHONE, pageServer } from './harness.ts';
import { atEnd, left, log, stillness } from './scrolling.ts';

const server = pageServer();

/** A conversation of so many turns, which nobody has to wait for. */
async function imported(key: string, turns: number, answer = (n: number) => `Answer ${n}.`): Promise<string> {
  const messages = Array.from({ length: turns }, (_, index) => [
    { role: 'user', content: `Question ${index + 1}` },
    { role: 'assistant', content: answer(index + 1) },
  ]).flat();
  const tl = await server.tl();
  return (await tl.engine.import(messages, { key, agent: 'scripted' })).id;
}

const turn = (page: Page, n: number) => page.getByRole('article', { name: `Turn ${n}`, exact: true });
const seam = (page: Page, n: number) => page.getByRole('region', { name: `Seam before turn ${n}`, exact: true });

/** The number of the turn that is in the middle of the screen. */
const rowInTheMiddle = (page: Page) =>
  log(page).evaluate((box) => {
    const { left, top, height } = box.getBoundingClientRect();
    const row = document.elementFromPoint(left + 400, top + height / 2)?.closest('[data-turn]');
    return Number(row?.getAttribute('data-turn'));
  });

/** Watches every frame: how far the turn moved, whether it stayed the same element, whether anything was blank. */
async function watchFrames(page: Page, n: number): Promise<void> {
  await page.evaluate((at) => {
    const row = document.querySelector(`[data-turn="${at}"]`) as HTMLElement;
    const box = row.closest('[role="log"]') as HTMLElement;
    const seen = {
      frames: 0,
      moved: 0,
      replaced: 0,
      blank: 0,
      selections: new Set<string>(),
      gaps: 0,
      times: [] as number[],
    };
    const first = row.getBoundingClientRect().top;
    let last = performance.now();
    const look = () => {
      const now = performance.now();
      seen.times.push(now - last);
      last = now;
      seen.frames += 1;
      if (document.querySelector(`[data-turn="${at}"]`) !== row) seen.replaced += 1;
      seen.moved = Math.max(seen.moved, Math.abs(row.getBoundingClientRect().top - first));
      seen.selections.add(String(getSelection()));
      const { left, top, width, height } = box.getBoundingClientRect();
      for (const part of [0.1, 0.3, 0.5, 0.7, 0.9]) {
        const under = document.elementFromPoint(left + width / 2, top + height * part);
        if (under?.closest('[data-turn]') === null && under.closest('button') === null) seen.blank += 1;
      }
      Object.assign(globalThis, { seen });
      requestAnimationFrame(look);
    };
    requestAnimationFrame(look);
  }, n);
}

const seenFrames = (page: Page) =>
  page.evaluate(() => {
    const { seen } = globalThis as unknown as {
      seen: Record<string, unknown> & { selections: Set<string>; times: number[] };
    };
    const times = seen.times.toSorted((a, b) => a - b);
    return {
      ...seen,
      selections: [...seen.selections],
      times: undefined,
      count: times.length,
      p95: times[Math.floor(times.length * 0.95)],
    };
  });

server.test(
  'while an answer streams, what somebody reads and has selected stays where it is, frame by frame',
  async ({ open }) => {
    const id = await imported('reading', 60, (n) => `Answer ${n}.\n\n${'Some words. '.repeat(40)}`);
    const page = await open(`/c/${id}`);
    await turn(page, 60).waitFor();
    await atEnd(page);
    await log(page).hover();
    // Rows come in above that are higher than was estimated: what is on the screen moves with the wheel, and not a pixel more.
    for (let step = 0; step < 5; step += 1) {
      const row = page.locator(`[data-turn="${await rowInTheMiddle(page)}"]`);
      const top = () => row.evaluate((element) => element.getBoundingClientRect().top);
      const before = await top();
      await page.mouse.wheel(0, -300);
      await expect.poll(top).not.toBe(before);
      await stillness(log(page));
      expect((await top()) - before).toBeCloseTo(300, 0);
    }
    await page.getByRole('button', { name: 'Go to the end' }).waitFor();
    const n = await rowInTheMiddle(page);
    await page.evaluate((at) => {
      const words = document.querySelector(`[data-turn="${at}"] p`);
      if (words) getSelection()?.selectAllChildren(words);
    }, n);
    const selected = await page.evaluate(() => String(getSelection()));
    expect(selected).toMatch(/^(Question|Answer)/);
    await watchFrames(page, n);
    const tl = await server.tl();
    const gate = join(server.home.path, `go-${randomUUID()}`);
    const prompt = `/stream 120 15\n/await ${gate}\n/say ${'More. '.repeat(200)}`;
    const { result } = tl.conversation('reading').send(prompt);
    // It goes on until enough was seen, however long a frame takes here.
    await expect.poll(async () => (await seenFrames(page)).count).toBeGreaterThan(20);
    await writeFile(gate, '');
    await result;
    await page.getByRole('button', { name: 'Send' }).waitFor();
    await page.locator('main header').first().getByText('Idle').waitFor();
    expect(await seenFrames(page)).toMatchObject({ moved: 0, replaced: 0, blank: 0, selections: [selected] });
  },
  { slowdown: 4 },
);

server.test(
  'what is selected in an answer stays selected while it streams, when a fence closes and when the turn ends',
  async ({ open }) => {
    const chat = (await server.tl()).conversation('selected');
    const { id } = await chat.ensure();
    const page = await open(`/c/${id}`);
    const part = (text: string) =>
      `/update ${JSON.stringify({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } })}`;
    const gates = Array.from({ length: 4 }, () => join(server.home.path, `go-${randomUUID()}`));
    const [more = '', code = '', close = '', end = ''] = gates;
    await chat.send(
      [
        `${part('```js\nlet zero = 0;\n```\n\n')}\n/say Words of the beginning`,
        `/await ${more}\n/say  and more of them.\n${part('\n\n```js\nconst first = 1;\n')}`,
        `/await ${code}\n${part('const second = 2;\n')}`,
        `/await ${close}\n${part('```\n\nWords after the code.')}`,
        `/await ${end}`,
      ].join('\n'),
    ).accepted;
    const answer = turn(page, 1).locator('.prose').last();
    const selected = () => page.evaluate(() => String(getSelection()));
    const select = async (text: string) => {
      await answer.getByText(text).evaluate((element, words) => {
        const node = document.createTreeWalker(element, NodeFilter.SHOW_TEXT).nextNode() as Text;
        const from = node.data.indexOf(words);
        getSelection()?.setBaseAndExtent(node, from, node, from + words.length);
      }, text);
      expect(await selected()).toBe(text);
    };
    // Code can be coloured from now on.
    await answer.locator('code .hljs-keyword').waitFor();
    // In a paragraph that grows, and is followed.
    await select('of the beginning');
    await writeFile(more, '');
    await answer.getByText('const first').waitFor();
    expect(await selected()).toBe('of the beginning');
    // In code that grows, and is closed.
    await select('first = 1');
    await writeFile(code, '');
    await answer.getByText('const second').waitFor();
    expect(await selected()).toBe('first = 1');
    await writeFile(close, '');
    await answer.getByText('Words after the code.', { exact: true }).waitFor();
    await stillness(log(page));
    expect(await selected()).toBe('first = 1');
    // It is coloured when nothing is selected in it any more. Until the turn ends, and then.
    await select('Words after');
    await expect.poll(() => answer.locator('code .hljs-keyword').count()).toBe(3);
    await writeFile(end, '');
    await page.getByRole('button', { name: 'Send' }).waitFor();
    await page.locator('main header').first().getByText('Idle').waitFor();
    expect(await selected()).toBe('Words after');
  },
);

server.test('while a restore runs, its progress shows, also to somebody who comes then', async ({ open }) => {
  const chat = (await server.tl()).conversation('replayed', { agent: 'forgetful' });
  const gate = join(server.home.path, `go-${randomUUID()}`);
  await writeFile(gate, '');
  await chat.ask('The codeword is osprey.');
  await chat.ask(`/await ${gate}\n/say Through.`);
  await chat.ask('/say Three.');
  const { id } = await chat.get();
  const page = await open(`/c/${id}`);
  await turn(page, 3).waitFor();
  await chat.kill();
  await rm(gate);
  await chat.send('Which codewords have you seen?', { restore: { rung: 'replay' } }).accepted;
  await page.getByRole('status').getByText('Restoring context: 1 of 3').waitFor();
  const later = await open(`/c/${id}`);
  await later.getByRole('status').getByText('Restoring context: 1 of 3').waitFor();
  expect(await seam(page, 4).count()).toBe(0);
  await writeFile(gate, '');
  for (const each of [page, later]) {
    await seam(each, 4)
      .getByText(/^Process was killed · rebuilt by replay · 3 carried, 0 dropped · /)
      .waitFor();
    await turn(each, 4).getByText('osprey').waitFor();
    await expect.poll(() => each.getByText('Restoring context').count()).toBe(0);
  }
});

server.test(
  'at the end the stream is followed, scrolling up stops that, and coming back resumes it',
  async ({ open }) => {
    const id = await imported('following', 30, (n) => `Answer ${n}.\n\n${'Some words. '.repeat(40)}`);
    const page = await open(`/c/${id}`);
    await turn(page, 30).waitFor();
    await atEnd(page);
    const tl = await server.tl();
    const gate = () => join(server.home.path, `go-${randomUUID()}`);
    const [more, button, wheel, end] = [gate(), gate(), gate(), gate()];
    const prompt = [
      `/stream 90 25\n/await ${more}\n/stream 90 25\n/say  It goes on.`,
      `/await ${button}\n/stream 90 5\n/say  Back by the button.`,
      `/await ${wheel}\n/stream 90 5\n/say  Back by the wheel.\n/await ${end}`,
    ].join('\n');
    const answer = tl.conversation('following').send(prompt);
    await expect.poll(() => turn(page, 31).textContent()).toMatch(/Answering/);
    const words = () => turn(page, 31).locator('.prose').last().textContent();
    await expect.poll(words).toContain('chunk 90');
    await expect.poll(() => left(page)).toBeLessThan(50);
    await log(page).hover();
    await page.mouse.wheel(0, -500);
    await page.getByRole('button', { name: 'Go to the end' }).waitFor();
    const place = await stillness(log(page));
    expect(await left(page)).toBeGreaterThan(300);
    await writeFile(more, '');
    await expect.poll(words).toContain('It goes on.');
    expect(await log(page).evaluate((box) => box.scrollTop)).toBe(place);
    /** Somebody is back at the end: what is said then stays in sight. */
    const staysInSight = async (go: string, said: string) => {
      await atEnd(page);
      const top = () => log(page).evaluate((box) => box.scrollTop);
      const before = await top();
      await writeFile(go, '');
      await expect.poll(words).toContain(said);
      await expect.poll(top).toBeGreaterThan(before + 100);
      await expect.poll(() => left(page)).toBeLessThan(50);
    };
    await page.getByRole('button', { name: 'Go to the end' }).click();
    await staysInSight(button, 'Back by the button.');
    // Opening something stops it as well, until somebody is back at the end.
    await turn(page, 30).getByRole('button', { name: 'Actions for turn 30' }).click();
    await page.getByRole('menuitem', { name: 'Copy link' }).waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('menuitem', { name: 'Copy link' }).waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Go to the end' }).waitFor();
    await log(page).hover();
    await page.mouse.wheel(0, 10_000);
    await staysInSight(wheel, 'Back by the wheel.');
    await writeFile(end, '');
    await answer.result;
    await turn(page, 31)
      .getByText(/scripted/)
      .waitFor();
    await expect.poll(() => left(page)).toBeLessThan(50);
  },
  { slowdown: 4 },
);

server.test(
  'whoever sends from above sees the answer, and a question that takes room leaves it in sight',
  async ({ open }) => {
    const id = await imported('sending', 30, (n) => `Answer ${n}.\n\n${'Some words. '.repeat(40)}`);
    const page = await open(`/c/${id}/turn/5`);
    await turn(page, 5).waitFor();
    await expect.poll(() => left(page)).toBeGreaterThan(1_000);
    await page.getByRole('textbox', { name: 'Prompt', exact: true }).fill('/say Here it is.');
    await page.keyboard.press('Enter');
    await turn(page, 31).getByText('Here it is.', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Send' }).waitFor();
    await expect.poll(() => left(page)).toBeLessThan(50);
    const height = () => log(page).evaluate((box) => box.clientHeight);
    const before = await height();
    const asking = (await server.tl()).conversation('sending');
    await asking.send('/ask May I?', { permissions: 'ask' }).accepted;
    await page.getByRole('region', { name: /^Permission: / }).waitFor();
    await expect.poll(height).toBeLessThan(before - 50);
    await expect.poll(() => left(page)).toBeLessThan(50);
    await asking.cancel();
  },
);

server.test(
  'a conversation opens at its end, also when its turns are higher than expected',
  async ({ open }) => {
    const answers = [
      '## Heading\n\n- one\n- two\n- three',
      'Code:\n\n```ts\nexport function one(): number {\n  const two = 2;\n  return two - 1;\n}\n```\n\nBelow it.',
      'A table:\n\n| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |',
    ];
    const id = await imported('tall', 3, (n) => answers[n - 1] ?? '');
    const talk = (await server.tl()).conversation('tall');
    const prompt = '/think About it.\n/tool read notes.md\n/tool write more.md\n/say One.';
    await talk.ask(prompt, { agent: 'forgetful' });
    await talk.kill();
    await talk.ask('/say Two.');
    const page = await open(`/c/${id}`);
    await seam(page, 5).waitFor();
    await page.getByRole('button', { name: 'Show the panel' }).click();
    await page.getByRole('tab', { name: 'Lineage' }).click();
    await atEnd(page);
  },
  { viewport: { width: 1440, height: 900 }, reducedMotion: 'reduce' },
);

server.test('a seam that somebody has opened stays open when its turn comes and ends', async ({ open }) => {
  const chat = (await server.tl()).conversation('opened-seam', { agent: 'scripted' });
  await chat.ask('The codeword is heron.');
  const { id } = await chat.get();
  await chat.kill();
  await chat.warm();
  const page = await open(`/c/${id}`);
  // After the last turn, ahead of the next prompt.
  const bar = seam(page, 2).locator('button[aria-expanded]');
  await bar.click();
  await seam(page, 2).getByText('Ladder').waitFor();
  const gate = join(server.home.path, 'opened-seam');
  const answer = chat.send(`/say Begun.\n/await ${gate}`);
  await turn(page, 2).getByText('Begun.', { exact: true }).waitFor();
  await seam(page, 2).getByText('Ladder').waitFor();
  await writeFile(gate, '');
  await answer;
  await turn(page, 2).getByRole('status').waitFor({ state: 'detached' });
  await seam(page, 2).getByText('Ladder').waitFor();
  await bar.click();
  await seam(page, 2).getByText('Ladder').waitFor({ state: 'detached' });
});

server.test('a turn and a seam have addresses: opening one goes there', async ({ open }) => {
  const id = await imported('addresses', 400);
  const page = await open(`/c/${id}/turn/123`);
  await turn(page, 123).waitFor();
  await expect.poll(() => turn(page, 123).evaluate((row) => row.getBoundingClientRect().top)).toBeLessThan(200);
  await turn(page, 123).getByText('Answer 123.').waitFor();
  await turn(page, 123).getByRole('button', { name: 'Actions for turn 123' }).click();
  await page.getByRole('menuitem', { name: 'Fork before this turn' }).click();
  await page.waitForURL((url) => !url.pathname.includes(id));
  await turn(page, 122).waitFor();
  await page.getByText('Forked from').waitFor();
  await expect.poll(() => page.getByRole('textbox', { name: /prompt/i }).inputValue()).toBe('Question 123');
  // After the last turn, which is higher than the screen: the seam of a warm-up.
  const tl = await server.tl();
  const chat = tl.conversation('warmed', { agent: 'scripted' });
  await chat.ask(`/say ${'Some words. '.repeat(500)}`);
  await chat.kill();
  const warmed = await chat.get();
  await tl.engine.warm(warmed.id);
  await page.goto(`${server.url}/c/${warmed.id}/seam/2`);
  await seam(page, 2).getByText('Ladder').waitFor();
  await stillness(log(page));
  await expect.poll(() => seam(page, 2).evaluate((bar) => bar.getBoundingClientRect().top)).toBeLessThan(700);
});

server.test('scrolling to the start reads what is there', async ({ open }) => {
  const id = await imported('start', 300);
  const page = await open(`/c/${id}`);
  await turn(page, 300).waitFor();
  await atEnd(page);
  await log(page).evaluate((box) => box.scrollTo(0, 0));
  await turn(page, 1).getByText('Answer 1.').waitFor();
});

server.test('the place where somebody stopped reading is kept', async ({ open }) => {
  const id = await imported('place', 200);
  const page = await open(`/c/${id}`);
  await turn(page, 200).waitFor();
  await atEnd(page);
  await log(page).evaluate((box) => box.scrollTo(0, box.scrollHeight / 2));
  // In one look: a row may be gone in the next moment.
  const firstRow = () =>
    log(page).evaluate((box) => {
      const { top, left } = box.getBoundingClientRect();
      const row = document.elementFromPoint(left + box.clientWidth / 2, top + 40)?.closest('[data-turn]');
      return { n: row?.getAttribute('data-turn'), text: row?.textContent };
    });
  const first = async () => (await firstRow()).n;
  // The turns there are read now, and have other heights than was estimated. The place counts that is kept after that.
  await expect.poll(async () => (await firstRow()).text).toMatch(/Answer/);
  await stillness(log(page));
  const kept = `throughline.place.${id}`;
  await page.evaluate((name) => localStorage.removeItem(name), kept);
  await log(page).evaluate((box) => box.scrollBy(0, 8));
  await expect.poll(() => page.evaluate((name) => localStorage.getItem(name), kept)).not.toBeNull();
  const before = await first();
  await page.reload();
  await expect.poll(first).toBe(before);
});

server.test(
  'a session that is killed while somebody watches leaves a seam, with every word it was told',
  async ({ open }) => {
    const tl = await server.tl();
    const chat = tl.conversation('killed', { agent: 'forgetful' });
    await chat.ask('The codeword is osprey.');
    const { id } = await chat.get();
    const page = await open(`/c/${id}`);
    await turn(page, 1).waitFor();
    await chat.kill();
    await chat.ask('Which codewords have you seen?');
    const bar = seam(page, 2);
    await bar
      .getByText(/^Process was killed · rebuilt by transcript · 1 carried, 0 dropped · counted · 0 model calls · /)
      .waitFor();
    await turn(page, 2).getByText('osprey').waitFor();
    await bar.getByRole('button', { name: /Process was killed/ }).click();
    await bar.getByText('Throughline delivered all of it').waitFor();
    await bar.getByText('Turn 1 told before the prompt').waitFor();
    await bar.getByText('throughline told killed 2').waitFor();
    await bar.getByRole('button', { name: /exact text/ }).click();
    await bar.getByText('matches', { exact: true }).waitFor();
    await bar.getByText('The codeword is osprey.').waitFor();
    await axe(page);
    await bar.getByRole('button', { name: /^Turn 1: told/ }).click();
    await page.waitForURL((url) => url.pathname === `/c/${id}/turn/1`);

    // Whoever comes later sees the same, and a hash that differs is said.
    const later = await open(`/c/${id}/seam/2`);
    await later.evaluate(() => {
      crypto.subtle.digest = async () => new ArrayBuffer(32);
    });
    await seam(later, 2)
      .getByText(/^Process was killed · /)
      .waitFor();
    await seam(later, 2)
      .getByRole('button', { name: /exact text/ })
      .click();
    await seam(later, 2).getByText('does not match').waitFor();
  },
);

server.test('a restore that failed is a red bar with what can be done', async ({ open }) => {
  const tl = await server.tl();
  const chat = tl.conversation('unrestored', { agent: 'forgetful' });
  await chat.ask('The codeword is osprey.');
  await chat.kill();
  await chat.ask('And now?', { restore: { rung: 'resume' } }).catch(() => {});
  const page = await open(`/c/${(await chat.get()).id}/seam/2`);
  const bar = seam(page, 2);
  await bar.getByText('Not restored').waitFor();
  await bar.getByText('Context could not be restored').first().waitFor();
  expect(await bar.getByRole('listitem').allTextContents()).toContain('transcriptnot tried');
  await axe(page);
  await bar.getByRole('button', { name: /policy “auto”/ }).click();
  await seam(page, 3)
    .getByText(/rebuilt by transcript · 1 carried/)
    .waitFor();
  await bar.getByRole('button', { name: 'Send to another agent' }).click();
  await page.getByRole('menuitem', { name: 'rotating' }).click();
  await seam(page, 4)
    .getByText(/^Handed over from forgetful to rotating · /)
    .waitFor();
});

server.test('nothing that was said, printed or named can run or leave', async ({ open }) => {
  const bad = `<img src=x onerror="pwned=1"><script>pwned=1</script>`;
  const texts = [
    bad,
    `\`\`\`${bad}\n${bad}\n\`\`\``,
    `\\\`${bad}\\\``,
    `[a](javascript:pwned=1) [b](data:text/html,${bad}) <javascript:pwned=1> ![x](https://elsewhere.example/?q=secret)`,
    `| ${bad} |\n|---|\n| ${bad} |`,
    `<a href="javascript:pwned=1">c</a>\n\n<iframe src="javascript:pwned=1"></iframe>\n\n<style>*{display:none}</style>`,
  ];
  const tl = await server.tl();
  const source = tl.conversation('attack source', { agent: 'scripted' });
  await source.ask('/say Hello.');
  const exported = await source.export();
  const [record] = exported.records;
  if (record === undefined) throw new Error('the record is missing');
  const tool = { type: 'tool', id: 't', name: bad, kind: 'execute', target: `${bad}.ts`, input: { command: bad } };
  const parts = [
    { type: 'thought', text: bad },
    { ...tool, output: `[diff ${bad}, line 1]\n-${bad}\n+${bad}\n${bad}\u001b[31m`, status: 'failed' },
    ...texts.map((text) => ({ type: 'text', text })),
  ];
  const prompt = [
    { type: 'text', text: bad },
    { type: 'resource_link', uri: 'javascript:pwned=1', name: bad },
    {
      type: 'image',
      mimeType: 'image/svg+xml',
      data: btoa('<svg xmlns="http://www.w3.org/2000/svg" onload="parent.pwned=1"/>'),
    },
  ];
  const attack = await tl.engine.import({ ...exported, records: [{ ...record, parts, prompt }] }, { key: 'attack' });
  await tl.engine.rename(attack.id, bad);
  const page = await open(`/c/${attack.id}`);
  await turn(page, 1).waitFor();
  await turn(page, 1).evaluate((row) => {
    const folded = row.querySelectorAll<HTMLElement>('button[aria-expanded="false"]:not([aria-haspopup])');
    for (const button of folded) button.click();
  });
  await turn(page, 1).getByText('onerror').first().waitFor();
  await turn(page, 1).locator('img').waitFor({ state: 'attached' });
  const found = await page.evaluate(() => ({
    ran: 'pwned' in globalThis,
    made: document.querySelectorAll('#root :is(script, iframe, style, [onerror], [onload])').length,
    links: [...document.querySelectorAll<HTMLAnchorElement>('article a')].map(({ protocol }) => protocol),
    images: [...document.querySelectorAll<HTMLImageElement>('article img')].map(({ src }) => src.slice(0, 10)),
  }));
  expect(found).toMatchObject({ ran: false, made: 0, images: ['data:image'] });
  expect(found.links.filter((protocol) => !/^https?:$/.test(protocol))).toEqual([]);
});

server.test('words are found in the whole conversation, also where it was not loaded', async ({ open }) => {
  const id = await imported('finding', 500, (n) => (n === 7 || n === 480 ? 'The codeword is **osprey**.' : 'Noted.'));
  const page = await open(`/c/${id}`);
  await turn(page, 500).waitFor();
  await page.keyboard.press('Control+f');
  const field = page.getByRole('searchbox', { name: 'Find in this conversation' });
  // What was not searched yet is not counted.
  const mayAnswer = Promise.withResolvers<void>();
  await page.route(/\/turns\?/, async (route) => {
    await mayAnswer.promise;
    await route.continue();
  });
  await field.fill('OSPREY');
  await expect.poll(() => page.getByRole('search').getByRole('status').textContent()).toBe('searching');
  mayAnswer.resolve();
  await page
    .getByRole('status')
    .filter({ hasText: /^2 turns$/ })
    .waitFor();
  await field.press('Enter');
  await turn(page, 480).waitFor();
  await field.press('Enter');
  await turn(page, 7).getByText('osprey').waitFor();
  await page
    .getByRole('status')
    .filter({ hasText: /^1 of 2 turns$/ })
    .waitFor();
  await expect.poll(() => page.evaluate(() => CSS.highlights.get('found-here')?.size)).toBe(1);
  await field.press('Escape');
  await expect.poll(() => page.evaluate(() => CSS.highlights.size)).toBe(0);
});

server.test('words are found in tools and thoughts, which open where somebody is', async ({ open }) => {
  const chat = (await server.tl()).conversation('folded', { agent: 'scripted' });
  await chat.ask('/think A kestrel may be meant.\n/tool Read kestrel.txt\n/say Done.');
  await chat.ask('/say Nothing here.');
  const page = await open(`/c/${(await chat.get()).id}`);
  await turn(page, 2).waitFor();
  await page.keyboard.press('Control+f');
  const field = page.getByRole('searchbox', { name: 'Find in this conversation' });
  await field.fill('kestrel may be');
  await page
    .getByRole('status')
    .filter({ hasText: /^1 turn$/ })
    .waitFor();
  const thought = turn(page, 1).getByRole('button', { name: /Thought/ });
  expect(await thought.getAttribute('aria-expanded')).toBe('false');
  await field.press('Enter');
  await expect.poll(() => thought.getAttribute('aria-expanded')).toBe('true');
  expect(await turn(page, 1).getByRole('button', { name: /Read/ }).getAttribute('aria-expanded')).toBe('false');
  await field.press('Escape');
  await expect.poll(() => thought.getAttribute('aria-expanded')).toBe('false');
});

server.test(
  'on a phone a conversation and an opened seam fit',
  async ({ open }) => {
    const tl = await server.tl();
    const chat = tl.conversation('phone', { agent: 'forgetful' });
    await chat.ask(`/say ${'averyverylongword'.repeat(20)}`);
    await chat.kill();
    await chat.ask('/tool Read a-file-with-quite-a-long-name-that-does-not-fit.txt');
    const page = await open(`/c/${(await chat.get()).id}/seam/2`);
    await seam(page, 2).getByText('Ladder').waitFor();
    expect(await log(page).evaluate((box) => box.scrollWidth - box.clientWidth)).toBe(0);
    // It is higher than the screen: its beginning is what somebody came for.
    const above = () =>
      log(page).evaluate((box) => {
        const bar = box.querySelector('[data-seam="2"]');
        return (bar?.getBoundingClientRect().top ?? Number.NaN) - box.getBoundingClientRect().top;
      });
    await stillness(log(page));
    expect(await above()).toBeGreaterThanOrEqual(0);
    await axe(page);
  },
  PHONE,
);
