// The composer of the page: sending, queueing, drafts, files and keys; and the actions on a conversation.
import { randomUUID } from 'node:crypto';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Locator, Page } from 'playwright-core';
import { expect } from 'vitest';
import { axe, killSession, PHONE, pageServer, waitForRender } from './harness.ts';

const server = pageServer();

const promptField = (page: Page) => page.getByRole('textbox', { name: 'Prompt', exact: true });
const sendPrompt = async (page: Page, text: string) => {
  await promptField(page).fill(text);
  await promptField(page).press('Enter');
};
const newConversation = async (key: string = randomUUID()) => (await server.tl()).conversation(key, { title: key });
const queuedPrompts = (page: Page) => page.getByRole('region', { name: 'Queued prompts' }).getByRole('listitem');
const queuedTexts = (page: Page) =>
  queuedPrompts(page).evaluateAll((all) => all.map(({ ariaLabel }) => ariaLabel?.replace(/^Queued prompt \d+: /, '')));

/** A prompt whose turn runs until `go` is called. */
function heldTurn(): { prompt: string; go(): Promise<void> } {
  const file = join(server.home.path, `go-${randomUUID()}`);
  return { prompt: `/await ${file}\n/say It went on.`, go: () => writeFile(file, '') };
}

/** The bodies of the requests with which the page sends prompts. New ones are added as they are sent. */
function recordSentPrompts(page: Page): unknown[] {
  const sent: unknown[] = [];
  page.on('request', (request) => {
    if (request.method() === 'POST' && request.url().endsWith('/turns')) sent.push(request.postDataJSON());
  });
  return sent;
}

server.test('Enter sends a prompt, its answer streams, and the draft is cleared', async ({ open }) => {
  const conversation = await newConversation();
  const { id } = await conversation.ensure();
  const page = await open(`/c/${id}`);
  await promptField(page).fill('/stream 20 20');
  await promptField(page).press('Shift+Enter');
  expect(await promptField(page).inputValue()).toBe('/stream 20 20\n');
  await promptField(page).press('Enter');
  await page.getByText('chunk 3').waitFor();
  await page.getByText('chunk 20').waitFor();
  await expect.poll(() => promptField(page).inputValue()).toBe(''); // the answer may stream before the prompt is acknowledged
  expect(await conversation.turns()).toHaveLength(1);
});

server.test('Enter in an input method ends the composition, and sends nothing', async ({ open, context }) => {
  const conversation = await newConversation();
  const { id } = await conversation.ensure();
  const page = await open(`/c/${id}`);
  const sent = recordSentPrompts(page);
  await promptField(page).focus();
  const devtools = await context.newCDPSession(page);
  await devtools.send('Input.imeSetComposition', { text: 'にほん', selectionStart: 3, selectionEnd: 3 });
  // The event that Chromium dispatches while an input method composes.
  await promptField(page).dispatchEvent('keydown', { key: 'Enter', code: 'Enter', keyCode: 229, isComposing: true });
  await devtools.send('Input.imeSetComposition', { text: '日本', selectionStart: 2, selectionEnd: 2 });
  await devtools.send('Input.insertText', { text: '日本' });
  await expect.poll(() => promptField(page).inputValue()).toBe('日本');
  expect(sent).toEqual([]);
  await promptField(page).press('Enter');
  await expect.poll(() => conversation.turns()).toHaveLength(1);
  expect(sent).toHaveLength(1);
});

/** A conversation whose agent works in a directory with these files. */
async function conversationWithFiles(...files: string[]) {
  const [key, cwd] = [randomUUID(), join(server.home.path, `files-${randomUUID()}`)];
  for (const file of files) {
    await mkdir(join(cwd, file, '..'), { recursive: true });
    await writeFile(join(cwd, file), '');
  }
  return (await server.tl()).conversation(key, { title: key, cwd });
}

const suggestions = (page: Page) => page.getByRole('listbox', { name: 'Suggestions' }).getByRole('option');

server.test('@ suggests files of the agent, and the keyboard puts a path into the prompt', async ({ open }) => {
  const conversation = await conversationWithFiles(
    'readme.md',
    'src/index.ts',
    'src/core/<b>index.ts',
    'node_modules/x/index.js',
  );
  const { id } = await conversation.ensure();
  const page = await open(`/c/${id}`);
  await promptField(page).pressSequentially('Look at @index');
  await expect.poll(() => suggestions(page).allTextContents()).toEqual(['index.tssrc/', '<b>index.tssrc/core/']);
  await axe(page);
  // On a slow machine, the user types on before the next frame. So the test holds all frames.
  await page.evaluate(() => {
    const { requestAnimationFrame: frame } = window;
    const heldFrames: FrameRequestCallback[] = [];
    window.requestAnimationFrame = (callback) => heldFrames.push(callback);
    Object.assign(window, {
      releaseFrames: () => {
        window.requestAnimationFrame = frame;
        for (const callback of heldFrames) callback(performance.now());
      },
    });
  });
  await promptField(page).press('ArrowDown');
  await promptField(page).press('Enter');
  expect(await promptField(page).inputValue()).toBe('Look at @src/core/<b>index.ts ');
  await promptField(page).press('a');
  await page.evaluate(() => (window as never as { releaseFrames(): void }).releaseFrames());
  // Choosing a folder suggests the files in it.
  await promptField(page).pressSequentially('nd @sr');
  await expect.poll(async () => (await suggestions(page).allTextContents())[0]).toBe('src/');
  await promptField(page).press('Tab');
  await suggestions(page).getByText('index.ts', { exact: true }).waitFor();
  expect(await promptField(page).inputValue()).toContain('and @src/');
  await promptField(page).press('Escape');
  await expect.poll(() => suggestions(page).count()).toBe(0);
  expect(await conversation.turns()).toHaveLength(0);
});

server.test('an Enter key that is held down sends the prompt once', async ({ open }) => {
  const conversation = await newConversation();
  const { id } = await conversation.ensure();
  const page = await open(`/c/${id}`);
  const sent = recordSentPrompts(page);
  await promptField(page).fill('Only once');
  await page.keyboard.down('Enter');
  await expect.poll(() => promptField(page).inputValue()).toBe('');
  await promptField(page).pressSequentially('more');
  await page.keyboard.down('Enter');
  await page.keyboard.up('Enter');
  await waitForRender(page);
  expect(await promptField(page).inputValue()).toBe('more');
  expect(sent).toHaveLength(1);
  expect(await conversation.turns()).toHaveLength(1);
});

server.test('prompts are queued while a turn runs, and can be moved, edited and cancelled', async ({ open }) => {
  const conversation = await newConversation();
  const first = heldTurn();
  await conversation.send(first.prompt).accepted;
  const page = await open(`/c/${(await conversation.get()).id}`);
  await page.getByRole('button', { name: 'Queue' }).waitFor();
  for (const word of ['one', 'two', 'three']) {
    await sendPrompt(page, `/say ${word}`);
    await queuedPrompts(page).filter({ hasText: word }).waitFor();
    await expect.poll(() => promptField(page).inputValue()).toBe(''); // the next prompt is sent only after this one is acknowledged
  }
  await page
    .getByRole('listitem', { name: /3: \/say three/ })
    .getByRole('button', { name: 'Move up' })
    .focus();
  await page.keyboard.press('Alt+ArrowUp');
  await expect.poll(() => queuedTexts(page)).toEqual(['/say one', '/say three', '/say two']);
  // The new order is shown before the server acknowledges it. Until then the prompts cannot be dragged.
  const draggable = () => queuedPrompts(page).and(page.locator('[draggable=true]')).count();
  await expect.poll(draggable).toBe(3);
  await queuedPrompts(page).nth(2).dragTo(queuedPrompts(page).nth(0));
  await expect.poll(() => queuedTexts(page)).toEqual(['/say two', '/say one', '/say three']);
  await queuedPrompts(page).nth(1).getByRole('button', { name: 'Edit' }).click();
  await page.getByRole('textbox', { name: /queued prompt of turn/ }).fill('/say edited');
  await page.keyboard.press('Enter');
  await expect.poll(() => queuedTexts(page)).toEqual(['/say two', '/say edited', '/say three']);
  await queuedPrompts(page).nth(2).getByRole('button', { name: 'Remove' }).click();
  await expect.poll(() => queuedTexts(page)).toEqual(['/say two', '/say edited']);
  await expect.poll(draggable).toBe(2);
  await axe(page);
  await first.go();
  await page.getByText('edited', { exact: true }).waitFor();
  const completedTurns = async () => (await conversation.turns()).filter(({ state }) => state === 'completed');
  await expect
    .poll(async () => (await completedTurns()).map(({ reply }) => reply.trim()))
    .toEqual(['It went on.', 'two', 'edited']);
  await expect.poll(() => queuedPrompts(page).count()).toBe(0);
});

/** The numbers of the turns that the timeline shows. */
const shownTurns = async (page: Page) => {
  const names = await page
    .getByRole('article', { name: /^Turn / })
    .evaluateAll((all) => all.map((one) => one.ariaLabel));
  return names.map((name) => Number(name?.replace('Turn ', '')));
};

server.test(
  'a queued prompt is shown once, in the composer, and its edits, moves and removal leave nothing in the timeline',
  async ({ open }) => {
    const conversation = await newConversation();
    const first = heldTurn();
    await conversation.send(first.prompt).accepted;
    const page = await open(`/c/${(await conversation.get()).id}`);
    for (const word of ['one', 'two', 'three']) await conversation.send(`/say ${word}`).accepted;
    await expect.poll(() => queuedTexts(page)).toEqual(['/say one', '/say two', '/say three']);
    const timeline = page.getByRole('log', { name: 'Turns' });
    await expect.poll(() => shownTurns(page)).toEqual([1]);
    expect(await timeline.innerText()).not.toMatch(/\/say (one|two|three)/);
    await page
      .getByRole('listitem', { name: /2: \/say two/ })
      .getByRole('button', { name: 'Edit' })
      .press('Alt+ArrowUp');
    await expect.poll(() => queuedTexts(page)).toEqual(['/say two', '/say one', '/say three']);
    await queuedPrompts(page).nth(1).getByRole('button', { name: 'Edit' }).click();
    await page.getByRole('textbox', { name: /queued prompt of turn/ }).fill('/say edited');
    await page.keyboard.press('Enter');
    await expect.poll(() => queuedTexts(page)).toEqual(['/say two', '/say edited', '/say three']);
    await queuedPrompts(page).nth(2).getByRole('button', { name: 'Remove' }).click();
    await expect.poll(() => queuedTexts(page)).toEqual(['/say two', '/say edited']);
    await expect.poll(() => shownTurns(page)).toEqual([1]);
    expect(await timeline.innerText()).not.toMatch(/queue|Cancelled|\/say (one|two|three|edited)/i);
    await first.go();
    await timeline.getByText('edited', { exact: true }).waitFor();
    // Everything that was sent is shown, live and after a reload, and nothing else.
    const sentTurns = async () => (await conversation.turns()).filter(({ sent }) => sent !== null).map(({ n }) => n);
    await expect.poll(async () => (await conversation.turns()).every(({ endedAt }) => endedAt !== null)).toBe(true);
    expect(await sentTurns()).toHaveLength(3);
    await expect.poll(() => shownTurns(page)).toEqual(await sentTurns());
    await page.reload();
    await timeline.getByText('edited', { exact: true }).waitFor();
    await expect.poll(() => shownTurns(page)).toEqual(await sentTurns());
  },
);

server.test(
  'the focus stays with a queued prompt that is moved, and goes to its neighbour when it is removed',
  async ({ open }) => {
    const conversation = await newConversation();
    const first = heldTurn();
    await conversation.send(first.prompt).accepted;
    for (const word of ['one', 'two', 'three']) await conversation.send(`/say ${word}`).accepted;
    const page = await open(`/c/${(await conversation.get()).id}`);
    await expect.poll(() => queuedPrompts(page).count()).toBe(3);
    const focused = () =>
      page.evaluate(() => {
        const { activeElement } = document;
        return `${activeElement?.closest('li')?.ariaLabel} > ${activeElement?.ariaLabel}`;
      });
    await queuedPrompts(page).nth(2).getByRole('button', { name: 'Move up' }).focus();
    await page.keyboard.press('Alt+ArrowUp');
    await expect.poll(focused).toBe('Queued prompt 2: /say three > Move up');
    await page.keyboard.press('Alt+ArrowUp');
    // The first prompt cannot be moved up.
    await expect.poll(focused).toBe('Queued prompt 1: /say three > Move down');
    expect(await queuedTexts(page)).toEqual(['/say three', '/say one', '/say two']);
    await queuedPrompts(page).nth(2).getByRole('button', { name: 'Remove' }).focus();
    await page.keyboard.press('Enter');
    await expect.poll(focused).toBe('Queued prompt 2: /say one > Remove');
    await page.keyboard.press('Enter');
    await expect.poll(focused).toBe('Queued prompt 1: /say three > Remove');
    await page.keyboard.press('Enter');
    await expect.poll(() => queuedPrompts(page).count()).toBe(0);
    expect(await promptField(page).evaluate((field) => field === document.activeElement)).toBe(true);
    await first.go();
  },
);

server.test('a long queue does not push the running answer away', async ({ open }) => {
  const conversation = await newConversation();
  const held = heldTurn();
  await conversation.send(`${'/say Line of the answer.\n'.repeat(60)}/say The last line.\n${held.prompt}`).accepted;
  const page = await open(`/c/${(await conversation.get()).id}`);
  const answer = page.getByRole('article', { name: 'Turn 1' });
  const timeline = page.getByRole('log', { name: 'Turns' });
  await answer.getByText('The last line.').last().waitFor();
  await expect.poll(() => endsWithin(answer, timeline)).toBe(true);
  for (let n = 0; n < 12; n += 1) await conversation.send(`/say queued ${n}`).accepted;
  await expect.poll(() => queuedPrompts(page).count()).toBe(12);
  await expect.poll(() => endsWithin(answer, timeline)).toBe(true);
  const queue = await page.getByRole('region', { name: 'Queued prompts' }).boundingBox();
  expect(queue?.height).toBeLessThan(200);
  await held.go();
});

/** Whether the end of an element is visible in the part of another one that is not scrolled away. */
async function endsWithin(element: Locator, frame: Locator): Promise<boolean> {
  const [one, other] = [await element.boundingBox(), await frame.boundingBox()];
  if (one === null || other === null) return false;
  const end = one.y + one.height;
  return end > other.y && end <= other.y + other.height;
}

server.test(
  'a change of the queue that comes too late is reported, and the queue is read again',
  async ({ open, allow }) => {
    allow(/status of 409/);
    const conversation = await newConversation();
    const first = heldTurn();
    await conversation.send(first.prompt).accepted;
    const page = await open(`/c/${(await conversation.get()).id}`);
    for (const word of ['one', 'two']) {
      await conversation.send(`/say ${word}`).accepted;
      await queuedPrompts(page).filter({ hasText: word }).waitFor();
    }
    // A turn leaves the queue after the page has shown it, and before the change arrives.
    await page.route(
      '**/queue',
      async (route) => {
        const { turns } = route.request().postDataJSON() as { turns: { turn: string }[] };
        const [, leavingTurn = { turn: '' }] = turns;
        await (await server.tl()).engine.cancel(leavingTurn.turn);
        await route.continue();
      },
      { times: 1 },
    );
    await queuedPrompts(page).nth(1).getByRole('button', { name: 'Move up' }).click();
    await page
      .getByRole('status')
      .getByText(/The queue differs from the list.*Nothing was changed/)
      .waitFor();
    await expect.poll(() => queuedTexts(page)).toEqual(['/say two']);
    await first.go();
  },
);

server.test('a prompt that is sent at once replaces the running turn, and runs before the queue', async ({ open }) => {
  const conversation = await newConversation();
  await conversation.send('/hang').accepted;
  await conversation.send('/say later').accepted;
  const page = await open(`/c/${(await conversation.get()).id}`);
  await queuedPrompts(page).filter({ hasText: 'later' }).waitFor();
  await page.getByRole('button', { name: 'Stop the running turn' }).waitFor();
  await promptField(page).fill('/say now');
  await promptField(page).press('ControlOrMeta+Enter');
  await page.getByText('later', { exact: true }).waitFor();
  const turnsByStart = async () => {
    const turns = (await conversation.turns()).filter(({ replacedBy }) => replacedBy === null);
    return turns.toSorted((a, b) => (a.startedAt ?? 0) - (b.startedAt ?? 0));
  };
  await expect
    .poll(async () => (await turnsByStart()).map(({ state, reply }) => `${state} ${reply.trim()}`))
    .toEqual(['cancelled ', 'completed now', 'completed later']);
});

server.test('Escape cancels the running turn only when it is pressed twice', async ({ open }) => {
  const conversation = await newConversation();
  await conversation.send('/hang').accepted;
  const page = await open(`/c/${(await conversation.get()).id}`);
  await page.getByRole('button', { name: 'Stop the running turn' }).waitFor();
  const hint = page.getByText('Press Esc again to stop the turn').waitFor(); // shown for two seconds, so it is watched before the key is pressed
  await promptField(page).press('Escape');
  await hint;
  expect((await conversation.turns())[0]?.cancelRequested).toBe(false);
  // On a slow machine the two seconds may be over. Then the next key press counts as the first again.
  await expect
    .poll(async () => {
      await promptField(page).press('Escape');
      return (await conversation.turns())[0]?.cancelRequested;
    })
    .toBe(true);
  await expect.poll(async () => (await conversation.turns())[0]?.state).toBe('cancelled');
  await page.getByRole('button', { name: 'Send', exact: true }).waitFor();
});

server.test(
  'the plan and the commands of the agent are shown as it reports them, and ArrowUp brings back the last prompt',
  async ({ open }) => {
    const conversation = await newConversation();
    const { id } = await conversation.ensure();
    const page = await open(`/c/${id}`);
    const update = (sessionUpdate: string, rest: object) => `/update ${JSON.stringify({ sessionUpdate, ...rest })}`;
    const planUpdate = (...states: string[]) =>
      update('plan', {
        entries: states.map((status, n) => ({ content: `Step ${n + 1}`, status, priority: 'medium' })),
      });
    const [first, second] = [heldTurn(), heldTurn()];
    await conversation.send(
      [planUpdate('in_progress', 'pending'), first.prompt, planUpdate('completed', 'in_progress'), second.prompt].join(
        '\n',
      ),
    ).accepted;
    const plan = page.getByRole('region', { name: 'Plan' });
    await plan.getByText('Plan 0/2').waitFor();
    await plan.getByText('Step 2').waitFor();
    await first.go();
    await plan.getByText('Plan 1/2').waitFor();
    await plan.getByRole('button').click();
    await plan.getByText('· Step 2').waitFor();
    await second.go();
    await page.getByRole('button', { name: 'Send', exact: true }).waitFor();

    const commands = [
      { name: 'review', description: 'Looks at the change.', input: { hint: 'what to look at' } },
      { name: 'compact', description: 'Sums up.' },
    ];
    await conversation.ask(`${update('available_commands_update', { availableCommands: commands })}\n/say Known.`);
    // They are also offered after a reload.
    await page.reload();
    await page.getByText('Known.', { exact: true }).waitFor();
    await promptField(page).pressSequentially('/');
    const options = page.getByRole('listbox', { name: 'Suggestions' }).getByRole('option');
    await expect
      .poll(() => options.allInnerTexts())
      .toEqual([
        expect.stringMatching(/^\/review what to look at\s+Looks at the change\.$/),
        expect.stringMatching(/^\/compact\s+Sums up\.$/),
      ]);
    await axe(page);
    await promptField(page).press('ArrowDown');
    await promptField(page).press('Enter');
    expect(await promptField(page).inputValue()).toBe('/compact ');
    await expect.poll(() => options.count()).toBe(0);
    expect(await conversation.turns()).toHaveLength(2);
    await promptField(page).fill('/say Again.');
    await promptField(page).press('Enter');
    await page.getByText('Again.', { exact: true }).waitFor();
    await expect.poll(() => promptField(page).inputValue()).toBe('');
    await promptField(page).press('ArrowUp');
    expect(await promptField(page).inputValue()).toBe('/say Again.');
  },
);

server.test(
  'at 400 % zoom the queue folds into one line',
  async ({ open }) => {
    const conversation = await newConversation();
    const held = heldTurn();
    await conversation.send(held.prompt).accepted;
    for (const word of ['one', 'two', 'three']) await conversation.send(`/say ${word}`).accepted;
    const page = await open(`/c/${(await conversation.get()).id}`);
    const queue = page.getByRole('region', { name: 'Queued prompts' });
    const fold = queue.getByRole('button', { name: '3 prompts wait' });
    await fold.waitFor();
    expect(await queuedPrompts(page).count()).toBe(0);
    expect((await queue.boundingBox())?.height).toBeLessThan(40);
    await fold.click();
    expect(await queuedPrompts(page).count()).toBe(3);
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(360);
    await held.go();
  },
  { viewport: { width: 360, height: 225 } },
);

server.test('a dialog that closes gives the focus to the composer', async ({ open }) => {
  const conversation = await newConversation();
  await conversation.ask('Hello');
  const page = await open(`/c/${(await conversation.get()).id}`);
  const isFocused = () => promptField(page).evaluate((field) => field === document.activeElement);
  await page.getByRole('button', { name: 'Conversation actions' }).click();
  await page.getByRole('menuitem', { name: 'Erase…' }).click();
  await page.getByRole('button', { name: 'Keep it' }).click();
  await expect.poll(isFocused).toBe(true);
  await promptField(page).blur();
  await page.keyboard.press('ControlOrMeta+k');
  await page.getByRole('dialog', { name: 'Palette' }).waitFor();
  await page.keyboard.press('Escape');
  await expect.poll(isFocused).toBe(true);
});

server.test(
  'a sign-in that has expired keeps the draft, also over the next sign-in',
  async ({ open, allow, context }) => {
    allow(/status of 401|ERR_ABORTED|EventSource/);
    const conversation = await newConversation();
    const { id } = await conversation.ensure();
    const page = await open(`/c/${id}`);
    await promptField(page).fill('/say Kept.');
    await context.clearCookies();
    await promptField(page).press('Enter');
    await page.getByText('The draft is kept.').waitFor();
    expect(await promptField(page).inputValue()).toBe('/say Kept.');
    expect(await conversation.turns()).toHaveLength(0);
    await context.request.get(await server.link(), { maxRedirects: 0 });
    await page.goto(`${server.url}/c/${id}`);
    await expect.poll(() => promptField(page).inputValue()).toBe('/say Kept.');
    await promptField(page).press('Enter');
    await page.getByText('Kept.', { exact: true }).waitFor();
    expect(await conversation.turns()).toHaveLength(1);
  },
);

server.test('a draft is kept over a reload, separately for each conversation', async ({ open }) => {
  const [one, other] = [await (await newConversation()).ensure(), await (await newConversation()).ensure()];
  const page = await open(`/c/${one.id}`);
  await promptField(page).fill('Half a thought');
  await page.reload();
  await expect.poll(() => promptField(page).inputValue()).toBe('Half a thought');
  await page.goto(`${server.url}/c/${other.id}`);
  expect(await promptField(page).inputValue()).toBe('');
  await page.goBack();
  await expect.poll(() => promptField(page).inputValue()).toBe('Half a thought');
});

server.test(
  'a prompt whose response is lost stays in the field, and is removed when its turn is found after a reload',
  async ({ open, allow }) => {
    allow(/ERR_FAILED|Failed to fetch/);
    const conversation = await newConversation();
    const { id } = await conversation.ensure();
    const page = await open(`/c/${id}`);
    // The server stores the prompt, but the page does not get the response.
    await page.route(/\/turns$/, async (route) => {
      const { prompt, ...options } = route.request().postDataJSON();
      await (await server.tl()).engine.submit(id, prompt, options);
      await route.abort();
    });
    await sendPrompt(page, '/say Once');
    await expect.poll(() => conversation.turns()).toHaveLength(1);
    expect(await promptField(page).inputValue()).toBe('/say Once');
    await page.reload();
    // The turn exists, so nothing is left to send.
    await page.getByText('Once', { exact: true }).waitFor();
    await expect.poll(() => promptField(page).inputValue()).toBe('');
    await page.unrouteAll({ behavior: 'ignoreErrors' });
    await sendPrompt(page, '/say Twice');
    await expect.poll(() => conversation.turns()).toHaveLength(2);
  },
);

/** How many files of a draft are stored in the database of the browser. They are stored after they are shown. */
function storedFiles(page: Page, draft: string): Promise<number> {
  return page.evaluate(
    (id) =>
      new Promise<number>((resolve, reject) => {
        const opening = indexedDB.open('throughline.drafts', 1); // the page has created it
        opening.onerror = () => reject(opening.error);
        opening.onsuccess = () => {
          const found = opening.result.transaction('files').objectStore('files').get(id);
          found.onsuccess = () => resolve(found.result?.length ?? 0);
          found.onerror = () => reject(found.error);
          opening.result.close();
        };
      }),
    draft,
  );
}

server.test('an image that is pasted is shown, kept over a reload, and sent as a block', async ({ open }) => {
  const conversation = await newConversation();
  const { id } = await conversation.ensure();
  const page = await open(`/c/${id}`);
  await promptField(page).focus();
  await page.evaluate(async () => {
    const canvas = new OffscreenCanvas(4, 4);
    canvas.getContext('2d')?.fillRect(0, 0, 4, 4);
    const data = new DataTransfer();
    data.items.add(new File([await canvas.convertToBlob()], 'shot.png', { type: 'image/png' }));
    document.activeElement?.dispatchEvent(
      new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true }),
    );
  });
  const files = page.getByRole('list', { name: 'Attached files' });
  await files.locator('img').waitFor();
  await expect.poll(() => storedFiles(page, id)).toBe(1);
  await page.reload();
  await files.getByText('shot.png').waitFor();
  await sendPrompt(page, 'What is this?');
  await expect.poll(() => conversation.turns()).toHaveLength(1);
  const [turn] = await conversation.turns();
  expect(turn?.prompt.map(({ type }) => type)).toEqual(['image', 'text']);
  await expect.poll(() => files.count()).toBe(0);
});

server.test('files can be dropped, and those that cannot be sent are listed with the reason', async ({ open }) => {
  const { id } = await (await newConversation()).ensure();
  const page = await open(`/c/${id}`);
  await promptField(page).waitFor();
  const data = await page.evaluateHandle(() => {
    const transfer = new DataTransfer();
    transfer.items.add(new File(['# Notes'], 'notes.md'));
    transfer.items.add(new File([new Uint8Array([1, 0, 2])], 'data.bin'));
    transfer.items.add(new File([new Uint8Array(9 * 2 ** 20).fill(65)], 'big.txt'));
    return transfer;
  });
  for (const type of ['dragover', 'drop']) await page.dispatchEvent('form', type, { dataTransfer: data });
  await page.getByRole('list', { name: 'Attached files' }).getByText('notes.md').waitFor();
  await page.getByText(/data\.bin is neither text in UTF-8 nor a PNG/).waitFor();
  await page.getByText(/big\.txt has 9 MiB; the limit is 8 MiB/).waitFor();
});

server.test('another agent takes over, and the next prompt stays with it', async ({ open }) => {
  const conversation = await newConversation();
  await conversation.ask('The codeword is osprey.', { agent: 'scripted' });
  const page = await open(`/c/${(await conversation.get()).id}`);
  const chooser = page.getByRole('button', { name: /^Agent and model/ });
  await chooser.click();
  await page
    .getByRole('radiogroup', { name: 'Agent' })
    .getByRole('radio', { name: /^forgetful/ })
    .check();
  await axe(page);
  await page.keyboard.press('Escape');
  await chooser.getByText('Hand over to').waitFor();
  await sendPrompt(page, 'Which codewords have you seen?');
  await expect.poll(async () => (await conversation.turns())[1]?.state).toBe('completed');
  expect((await conversation.turns())[1]).toMatchObject({
    agent: 'forgetful',
    reply: expect.stringContaining('osprey'),
  });
  await page.getByRole('button', { name: 'Agent and model: forgetful' }).waitFor();
  await page.getByText('Hand over to').waitFor({ state: 'detached' });
});

server.test(
  'drafts of erased conversations, and drafts of more than 28 days, are deleted at the next visit',
  async ({ open, allow }) => {
    allow(/404/); // the page requests the erased conversation
    const conversations = [await newConversation(), await newConversation(), await newConversation()];
    const ids: string[] = [];
    for (const conversation of conversations) ids.push((await conversation.ensure()).id);
    const [erased = '', old = '', kept = ''] = ids;
    let page = await open(`/c/${erased}`);
    for (const id of ids) {
      await page.goto(`${server.url}/c/${id}`);
      await promptField(page).fill(`For ${id}`);
    }
    const drafts = () =>
      page.evaluate(() => Object.keys(localStorage).filter((name) => /\.(draft|written)\./.test(name)));
    expect(await drafts()).toHaveLength(6);
    await conversations[0]?.erase();
    await page.evaluate((id) => {
      const [, owner] = /^\d+ (.*)$/.exec(localStorage.getItem(`throughline.written.${id}`) ?? '') ?? [];
      localStorage.setItem(`throughline.written.${id}`, `${Date.now() - 29 * 86_400_000} ${owner}`);
    }, old);
    page = await open('/');
    await expect
      .poll(async () => (await drafts()).toSorted())
      .toEqual([`throughline.draft.${kept}`, `throughline.written.${kept}`]);
  },
);

server.test('the restore policy, its budget and a time limit can be chosen for one prompt', async ({ open }) => {
  const conversation = await newConversation();
  await conversation.ask('The codeword is osprey.');
  const page = await open(`/c/${(await conversation.get()).id}`);
  await page.getByRole('button', { name: /Options for the next prompt/ }).click();
  await page.getByRole('combobox', { name: 'Restore' }).selectOption('auto');
  await page.getByRole('spinbutton', { name: 'History, max tokens' }).fill('5000');
  await page.getByRole('spinbutton', { name: 'History, max turns' }).fill('3');
  await page.getByRole('spinbutton', { name: 'Time limit, seconds' }).fill('60');
  await axe(page);
  await page.keyboard.press('Escape');
  await page
    .getByRole('button', { name: 'Options for the next prompt: restore auto · 5000 tokens · 3 turns · 60 s' })
    .waitFor();
  await sendPrompt(page, 'Which codewords have you seen?');
  await expect.poll(async () => (await conversation.turns()).length).toBe(2);
  const [, turn] = await conversation.turns();
  const restore = { policy: 'auto', budgetTokens: 5_000, lastTurns: 3 };
  expect(turn?.options).toMatchObject({ restore, limits: { turnSeconds: 60 } });
  await page.getByRole('button', { name: 'Options for the next prompt: none' }).waitFor();
});

server.test(
  'a rebuild can be chosen for one prompt: its seam says so, and the next prompt continues',
  async ({ open }) => {
    const conversation = await newConversation();
    await conversation.ask('The codeword is osprey.');
    const page = await open(`/c/${(await conversation.get()).id}`);
    await page.getByRole('button', { name: /Options for the next prompt/ }).click();
    await page.getByRole('combobox', { name: 'Restore' }).selectOption('rebuild');
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'Options for the next prompt: rebuild' }).waitFor();
    await sendPrompt(page, 'Which codewords have you seen?');
    await page.getByText('You asked for a new session. A new session was told the one turn.').waitFor();
    await sendPrompt(page, '/say Three.');
    await expect.poll(async () => (await conversation.turns()).at(2)?.state).toBe('completed');
    const { receipts } = await conversation.show();
    expect(receipts.map(({ rung }) => rung)).toEqual(['new', 'transcript', 'live']);
  },
);

server.test(
  'a model, a mode and an option can be chosen from those that the agent has announced',
  async ({ open, allow }) => {
    allow(/status of 422/);
    const conversation = await newConversation();
    const updates = [
      {
        sessionUpdate: 'config_option_update',
        configOptions: [
          {
            ...{ id: 'model', name: 'Model', category: 'model', type: 'select', currentValue: 'small' },
            options: [
              { value: 'small', name: 'Small' },
              { value: 'large', name: 'Large' },
            ],
          },
          { id: 'web', name: 'Web search', type: 'boolean', currentValue: false },
        ],
      },
      {
        ...{ sessionUpdate: 'current_mode_update', currentModeId: 'code' },
        availableModes: [
          { id: 'code', name: 'Code' },
          { id: 'plan', name: 'Plan' },
        ],
      },
    ];
    await conversation.ask(updates.map((update) => `/update ${JSON.stringify(update)}`).join('\n'));
    const page = await open(`/c/${(await conversation.get()).id}`);
    const options = page.getByRole('button', { name: /^Options for the next prompt/ });
    const choice = (name: string) => page.getByRole('combobox', { name, exact: true });
    const offered = (label: string) =>
      choice(label).evaluate((input) => {
        const { list } = input as HTMLInputElement;
        return [...(list?.options ?? [])].map(({ value }) => value);
      });
    const chooser = page.getByRole('button', { name: /^Agent and model/ });
    await chooser.click();
    // The placeholder is the current value, and the list has all values.
    await expect.poll(() => choice('Model').getAttribute('placeholder')).toBe('small');
    expect(await offered('Model')).toEqual(['small', 'large']);
    await choice('Model').fill('large');
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'Mode: Code' }).click();
    expect(await offered('Mode')).toEqual(['code', 'plan']);
    await choice('Mode').fill('plan');
    await page.keyboard.press('Escape');
    await options.click();
    await choice('Web search').selectOption('on');
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'Agent and model: scripted large' }).waitFor();
    await page.getByRole('button', { name: 'Mode: Plan' }).waitFor();
    await page.getByRole('button', { name: 'Options for the next prompt: web: true' }).waitFor();
    const sent = recordSentPrompts(page);
    await sendPrompt(page, '/say Chosen.');
    // The scripted agent announces what it is told to, and takes none of it.
    await page.getByText('this agent has no model, mode or config options to choose').waitFor();
    expect(sent).toMatchObject([{ model: 'large', mode: 'plan', config: { web: true } }]);
    await promptField(page).fill('');
    // A new conversation offers the same values, and none is chosen.
    await page.goto(`${server.url}/new`);
    await page.getByRole('button', { name: 'Model: Its default' }).click();
    await expect.poll(() => offered('Model')).toEqual(['small', 'large']);
    expect(await choice('Model').inputValue()).toBe('');
  },
);

server.test('the session is warmed when the prompt gets the focus, and not before', async ({ open }) => {
  const conversation = await newConversation();
  await conversation.ask('The codeword is osprey.');
  await conversation.kill();
  const liveSessions = async () => (await conversation.sessions()).filter(({ state }) => state === 'live').length;
  const page = await open(`/c/${(await conversation.get()).id}`);
  await page.getByRole('article', { name: 'Turn 1' }).waitFor();
  expect(await liveSessions()).toBe(0);
  await promptField(page).focus();
  await expect.poll(liveSessions).toBe(1);
  expect((await conversation.show()).receipts.at(-1)).toMatchObject({ turn: null, rung: 'resume' });
  await sendPrompt(page, 'Which codewords have you seen?');
  await expect.poll(async () => (await conversation.turns())[1]?.reply).toContain('osprey');
});

server.test('the session is killed on the page, and the next prompt restores it', async ({ open }) => {
  const conversation = await newConversation();
  await conversation.ask('The codeword is osprey.');
  const page = await open(`/c/${(await conversation.get()).id}`);
  await killSession(page);
  expect(await promptField(page).evaluate((element) => element === document.activeElement)).toBe(true);
  expect((await conversation.sessions()).filter(({ state }) => state === 'live')).toEqual([]);
  // The focus must not warm the session again that was just killed.
  await promptField(page).blur();
  await promptField(page).focus();
  await page.keyboard.type('Which codewords have you seen?');
  await page.keyboard.press('Enter');
  await page
    .getByText(/osprey/)
    .last()
    .waitFor();
  await expect.poll(async () => (await conversation.turns())[1]?.state).toBe('completed');
  expect((await conversation.show()).receipts.at(-1)).toMatchObject({ turn: 2, rung: 'resume' });
  await page
    .getByRole('region', { name: 'Seam before turn 2' })
    .getByText(/was killed\. It reopened its own session, the one turn\./)
    .waitFor();
  await page.getByRole('button', { name: 'Conversation actions' }).click();
  await page.getByRole('menuitem', { name: 'Kill the live session' }).waitFor();
});

server.test(
  'a failed turn is retried as the next turn, and going back makes a fork with its prompt as the draft',
  async ({ open }) => {
    const conversation = await newConversation();
    await conversation.ask('The codeword is osprey.');
    await conversation.send('/fail agent_failed').accepted;
    await expect.poll(async () => (await conversation.turns()).at(-1)?.state).toBe('failed');
    const page = await open(`/c/${(await conversation.get()).id}`);
    const menu = page.getByRole('button', { name: 'Conversation actions' });
    await menu.click();
    await page.getByRole('menuitem', { name: 'Retry the last turn' }).click();
    await expect.poll(async () => (await conversation.turns()).length).toBe(3);
    expect((await conversation.turns()).at(-1)).toMatchObject({ n: 3, retryOf: (await conversation.turns())[1]?.id });
    await expect.poll(async () => (await conversation.turns()).at(-1)?.state).toBe('failed');
    // "The last turn" is the last one that this page has loaded.
    await page.getByRole('article', { name: 'Turn 3', exact: true }).waitFor();
    await page.getByRole('button', { name: 'Send', exact: true }).waitFor();
    await menu.click();
    await page.getByRole('menuitem', { name: 'Go back before the last turn' }).click();
    await expect.poll(() => promptField(page).inputValue()).toBe('/fail agent_failed');
    const fork = new URL(page.url()).pathname.split('/')[2] ?? '';
    expect(fork).not.toBe((await conversation.get()).id);
    const copy = (await server.tl()).conversation(fork);
    expect((await copy.get()).parent).toMatchObject({ n: 2 });
  },
);

server.test('a conversation is renamed, exported, verified and erased', async ({ open, allow }) => {
  // The stream of an erased conversation ends.
  allow(/status of 404|ERR_INCOMPLETE_CHUNKED/);
  const conversation = await newConversation();
  await conversation.ask('Hello');
  const page = await open(`/c/${(await conversation.get()).id}`);
  const menu = page.getByRole('button', { name: 'Conversation actions' });
  const choose = async (name: string) => {
    await menu.click();
    await page.getByRole('menuitem', { name }).click();
  };
  await choose('Rename');
  await page.getByRole('textbox', { name: 'Title' }).fill('Another title');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Another title' }).waitFor();
  const download = page.waitForEvent('download');
  await choose('Export as JSON');
  const file = await download;
  expect(file.suggestedFilename()).toBe('Another-title.json');
  expect(JSON.parse(await readFile(await file.path(), 'utf8'))).toMatchObject({
    conversation: { title: 'Another title' },
  });
  await choose('Verify the chain of events');
  await page.getByText('No event was changed, removed or added.').waitFor();
  await page.keyboard.press('Escape');
  await choose('Erase…');
  await page.getByText('Erasing cannot be undone.').waitFor();
  await axe(page);
  await page.getByRole('button', { name: 'Keep it' }).click();
  expect((await conversation.get()).title).toBe('Another title');
  await choose('Erase…');
  await page.getByRole('button', { name: 'Erase', exact: true }).click();
  await page.getByText(/^Erased\./).waitFor();
  await page.waitForURL((url) => url.pathname === '/');
  await expect(conversation.get()).rejects.toThrow();
});

server.test('a new conversation is created by its first prompt', async ({ open, allow }) => {
  allow(/404/); // the page asks whether there is a conversation with the key
  const key = randomUUID();
  const page = await open('/new');
  const files = page.getByRole('list', { name: 'Attached files' }).getByRole('listitem');
  const notes = { name: 'notes.txt', mimeType: 'text/plain', buffer: Buffer.from('x') };
  await page.getByLabel('Files to attach').setInputFiles(notes);
  await files.getByText('notes.txt').waitFor();
  await files.getByRole('button', { name: 'Remove notes.txt' }).click();
  await expect.poll(() => files.count()).toBe(0);
  await page.getByRole('button', { name: 'More' }).click();
  await page.getByRole('textbox', { name: 'Title', exact: true }).fill('Broken build');
  await page.getByRole('textbox', { name: 'Key', exact: true }).fill(key);
  await axe(page);
  await sendPrompt(page, '/say Begun.');
  await page.getByText('Begun.', { exact: true }).waitFor();
  const created = await (await server.tl()).conversation(key).get();
  expect(created).toMatchObject({ title: 'Broken build' });
  await page.waitForURL((url) => url.pathname === `/c/${created.id}`);
  await page.goto(`${server.url}/new`);
  expect(await promptField(page).inputValue()).toBe('');
});

server.test(
  'on a phone, Enter starts a new line, and all controls are at least 44 px high',
  async ({ open }) => {
    const conversation = await conversationWithFiles('notes.md');
    await conversation.ask('Hello');
    const page = await open(`/c/${(await conversation.get()).id}`);
    await promptField(page).fill('@no');
    await suggestions(page).getByText('notes.md').tap();
    await expect.poll(() => promptField(page).inputValue()).toBe('@notes.md ');
    await promptField(page).fill('one');
    await promptField(page).press('Enter');
    expect(await promptField(page).inputValue()).toBe('one\n');
    const fontSize = await promptField(page).evaluate((element) =>
      Number.parseFloat(getComputedStyle(element).fontSize),
    );
    expect(fontSize, 'iOS zooms into a field with a smaller font').toBeGreaterThanOrEqual(16);
    await promptField(page).focus();
    const tooSmall = await page
      .locator('form button:visible, form select:visible')
      .evaluateAll((all) => all.filter((one) => one.getBoundingClientRect().height < 44).map((one) => one.outerHTML));
    expect(tooSmall).toEqual([]);
    await axe(page);
    await page.getByRole('button', { name: 'Send', exact: true }).tap();
    await expect.poll(() => conversation.turns()).toHaveLength(2);
  },
  PHONE,
);
