// Writing on the page: sending, queueing, drafts, files, keys, and what can be done with a conversation.
import { randomUUID } from 'node:crypto';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import { axe, PHONE, pageServer } from './harness.ts';

const server = pageServer();

const field = (page: Page) => page.getByRole('textbox', { name: 'Prompt', exact: true });
const say = async (page: Page, text: string) => {
  await field(page).fill(text);
  await field(page).press('Enter');
};
const chat = async (key: string = randomUUID()) => (await server.tl()).conversation(key, { title: key });
const chips = (page: Page) => page.getByRole('region', { name: 'Queued prompts' }).getByRole('listitem');
const texts = async (page: Page) => (await chips(page).allTextContents()).map((text) => text.trim());

/** A turn that runs until the function is called. */
function held(): { prompt: string; go(): Promise<void> } {
  const file = join(server.home.path, `go-${randomUUID()}`);
  return { prompt: `/await ${file}\n/say It went on.`, go: () => writeFile(file, '') };
}

server.test('a prompt is sent by Enter, its answer streams, and the draft is cleared', async ({ open }) => {
  const talk = await chat();
  const { id } = await talk.ensure();
  const page = await open(`/c/${id}`);
  await field(page).fill('/stream 20 20');
  await field(page).press('Shift+Enter');
  expect(await field(page).inputValue()).toBe('/stream 20 20\n');
  await field(page).press('Enter');
  await page.getByText('chunk 3').waitFor();
  await page.getByText('chunk 20').waitFor();
  await expect.poll(() => field(page).inputValue()).toBe(''); // the answer may stream before the prompt is acknowledged
  expect(await talk.turns()).toHaveLength(1);
});

server.test('Enter of an input method ends a word, and sends nothing', async ({ open, context }) => {
  const talk = await chat();
  const { id } = await talk.ensure();
  const page = await open(`/c/${id}`);
  await field(page).focus();
  const devtools = await context.newCDPSession(page);
  await devtools.send('Input.imeSetComposition', { text: 'にほん', selectionStart: 3, selectionEnd: 3 });
  // As Chromium sends it while an input method composes.
  await field(page).dispatchEvent('keydown', { key: 'Enter', code: 'Enter', keyCode: 229, isComposing: true });
  await devtools.send('Input.imeSetComposition', { text: '日本', selectionStart: 2, selectionEnd: 2 });
  await devtools.send('Input.insertText', { text: '日本' });
  await expect.poll(() => field(page).inputValue()).toBe('日本');
  expect(await talk.turns()).toHaveLength(0);
  await field(page).press('Enter');
  await expect.poll(() => talk.turns()).toHaveLength(1);
});

/** A conversation whose agent works in a directory with these files. */
async function chatWith(...files: string[]) {
  const [key, cwd] = [randomUUID(), join(server.home.path, `files-${randomUUID()}`)];
  for (const file of files) {
    await mkdir(join(cwd, file, '..'), { recursive: true });
    await writeFile(join(cwd, file), '');
  }
  return (await server.tl()).conversation(key, { title: key, cwd });
}

const suggested = (page: Page) => page.getByRole('listbox', { name: 'Suggestions' }).getByRole('option');

server.test('@ suggests files of the agent, by the keys alone, and puts the path into the prompt', async ({ open }) => {
  const talk = await chatWith('readme.md', 'src/index.ts', 'src/core/<b>index.ts', 'node_modules/x/index.js');
  const { id } = await talk.ensure();
  const page = await open(`/c/${id}`);
  await field(page).pressSequentially('Look at @index');
  await expect.poll(() => suggested(page).allTextContents()).toEqual(['index.tssrc/', '<b>index.tssrc/core/']);
  await axe(page);
  // On a slow machine, somebody has typed on before the next frame comes.
  await page.evaluate(() => {
    const { requestAnimationFrame: frame } = window;
    const held: FrameRequestCallback[] = [];
    window.requestAnimationFrame = (callback) => held.push(callback);
    Object.assign(window, {
      releaseFrames: () => {
        window.requestAnimationFrame = frame;
        for (const callback of held) callback(performance.now());
      },
    });
  });
  await field(page).press('ArrowDown');
  await field(page).press('Enter');
  expect(await field(page).inputValue()).toBe('Look at @src/core/<b>index.ts ');
  await field(page).press('a');
  await page.evaluate(() => (window as never as { releaseFrames(): void }).releaseFrames());
  // A folder leads on to what is in it.
  await field(page).pressSequentially('nd @sr');
  await expect.poll(async () => (await suggested(page).allTextContents())[0]).toBe('src/');
  await field(page).press('Tab');
  await suggested(page).getByText('index.ts', { exact: true }).waitFor();
  expect(await field(page).inputValue()).toContain('and @src/');
  await field(page).press('Escape');
  await expect.poll(() => suggested(page).count()).toBe(0);
  expect(await talk.turns()).toHaveLength(0);
});

server.test('a held Enter sends once', async ({ open }) => {
  const talk = await chat();
  const { id } = await talk.ensure();
  const page = await open(`/c/${id}`);
  await field(page).fill('Only once');
  await page.keyboard.down('Enter');
  await expect.poll(() => field(page).inputValue()).toBe('');
  await field(page).pressSequentially('more');
  await page.keyboard.down('Enter');
  await page.keyboard.up('Enter');
  expect(await field(page).inputValue()).toBe('more');
  expect(await talk.turns()).toHaveLength(1);
});

server.test('prompts wait while a turn runs, and are moved, edited and cancelled', async ({ open }) => {
  const talk = await chat();
  const first = held();
  await talk.send(first.prompt).accepted;
  const page = await open(`/c/${(await talk.get()).id}`);
  await page.getByRole('button', { name: 'Queue' }).waitFor();
  for (const word of ['one', 'two', 'three']) {
    await say(page, `/say ${word}`);
    await chips(page).filter({ hasText: word }).waitFor();
    await expect.poll(() => field(page).inputValue()).toBe(''); // until it is acknowledged, no other one is sent
  }
  await page
    .getByRole('listitem', { name: /3: \/say three/ })
    .getByRole('button', { name: 'Move up' })
    .focus();
  await page.keyboard.press('Alt+ArrowUp');
  await expect.poll(() => texts(page)).toEqual(['/say one', '/say three', '/say two']);
  // They show as they are now before the change is acknowledged. Until then they are pale, and cannot be dragged.
  const draggable = () => chips(page).and(page.locator('[draggable=true]')).count();
  await expect.poll(draggable).toBe(3);
  await chips(page).nth(2).dragTo(chips(page).nth(0));
  await expect.poll(() => texts(page)).toEqual(['/say two', '/say one', '/say three']);
  await chips(page).nth(1).getByRole('button', { name: 'Edit' }).click();
  await page.getByRole('textbox', { name: /queued prompt of turn/ }).fill('/say edited');
  await page.keyboard.press('Enter');
  await expect.poll(() => texts(page)).toEqual(['/say two', '/say edited', '/say three']);
  await chips(page).nth(2).getByRole('button', { name: 'Cancel this prompt' }).click();
  await expect.poll(() => texts(page)).toEqual(['/say two', '/say edited']);
  await expect.poll(draggable).toBe(2);
  await axe(page);
  await first.go();
  await page.getByText('edited', { exact: true }).waitFor();
  const done = async () => (await talk.turns()).filter(({ state }) => state === 'completed');
  await expect
    .poll(async () => (await done()).map(({ reply }) => reply.trim()))
    .toEqual(['It went on.', 'two', 'edited']);
  await expect.poll(() => chips(page).count()).toBe(0);
});

server.test(
  'a change of the queue that comes too late is told, and the queue is read again',
  async ({ open, allow }) => {
    allow(/status of 409/);
    const talk = await chat();
    const first = held();
    await talk.send(first.prompt).accepted;
    const page = await open(`/c/${(await talk.get()).id}`);
    for (const word of ['one', 'two']) {
      await talk.send(`/say ${word}`).accepted;
      await chips(page).filter({ hasText: word }).waitFor();
    }
    // The turn begins between what the page shows and what it asks for.
    await page.route(
      '**/queue',
      async (route) => {
        const { turns } = route.request().postDataJSON() as { turns: { turn: string }[] };
        const [, begun = { turn: '' }] = turns;
        await (await server.tl()).engine.cancel(begun.turn);
        await route.continue();
      },
      { times: 1 },
    );
    await chips(page).nth(1).getByRole('button', { name: 'Move up' }).click();
    await page
      .getByRole('status')
      .getByText(/The queue differs from the list.*Nothing was changed/)
      .waitFor();
    await expect.poll(() => texts(page)).toEqual(['/say two']);
    await first.go();
  },
);

server.test('what is sent at once runs next, in place of what runs', async ({ open }) => {
  const talk = await chat();
  await talk.send('/hang').accepted;
  await talk.send('/say later').accepted;
  const page = await open(`/c/${(await talk.get()).id}`);
  await chips(page).filter({ hasText: 'later' }).waitFor();
  await page.getByRole('button', { name: 'Cancel the running turn' }).waitFor();
  await field(page).fill('/say now');
  await field(page).press('ControlOrMeta+Enter');
  await page.getByText('later', { exact: true }).waitFor();
  const order = async () => {
    const turns = (await talk.turns()).filter(({ replacedBy }) => replacedBy === null);
    return turns.toSorted((a, b) => (a.startedAt ?? 0) - (b.startedAt ?? 0));
  };
  await expect
    .poll(async () => (await order()).map(({ state, reply }) => `${state} ${reply.trim()}`))
    .toEqual(['cancelled ', 'completed now', 'completed later']);
});

server.test('Escape cancels the running turn only when it is pressed twice', async ({ open }) => {
  const talk = await chat();
  await talk.send('/hang').accepted;
  const page = await open(`/c/${(await talk.get()).id}`);
  await page.getByRole('button', { name: 'Cancel the running turn' }).waitFor();
  const hint = page.getByText('Press Esc again to cancel the turn').waitFor(); // it is shown for two seconds
  await field(page).press('Escape');
  await hint;
  expect((await talk.turns())[0]?.cancelRequested).toBe(false);
  // On a slow machine the two seconds may be over by now: then the next one is the first again.
  await expect
    .poll(async () => {
      await field(page).press('Escape');
      return (await talk.turns())[0]?.cancelRequested;
    })
    .toBe(true);
  await expect.poll(async () => (await talk.turns())[0]?.state).toBe('cancelled');
  await page.getByRole('button', { name: 'Send' }).waitFor();
});

server.test(
  'what the agent plans and which commands it has show as it says so, and the last prompt comes back',
  async ({ open }) => {
    const talk = await chat();
    const { id } = await talk.ensure();
    const page = await open(`/c/${id}`);
    const update = (sessionUpdate: string, rest: object) => `/update ${JSON.stringify({ sessionUpdate, ...rest })}`;
    const planned = (...states: string[]) =>
      update('plan', {
        entries: states.map((status, n) => ({ content: `Step ${n + 1}`, status, priority: 'medium' })),
      });
    const [first, second] = [held(), held()];
    await talk.send(
      [planned('in_progress', 'pending'), first.prompt, planned('completed', 'in_progress'), second.prompt].join('\n'),
    ).accepted;
    const plan = page.getByRole('region', { name: 'Plan' });
    await plan.getByText('Plan 0/2').waitFor();
    await plan.getByText('Step 2').waitFor();
    await first.go();
    await plan.getByText('Plan 1/2').waitFor();
    await plan.getByRole('button').click();
    await plan.getByText('· Step 2').waitFor();
    await second.go();
    await page.getByRole('button', { name: 'Send' }).waitFor();

    const commands = [
      { name: 'review', description: 'Looks at the change.', input: { hint: 'what to look at' } },
      { name: 'compact', description: 'Sums up.' },
    ];
    await talk.ask(`${update('available_commands_update', { availableCommands: commands })}\n/say Known.`);
    // Whoever comes later is offered the same.
    await page.reload();
    await page.getByText('Known.', { exact: true }).waitFor();
    await field(page).pressSequentially('/');
    const options = page.getByRole('listbox', { name: 'Suggestions' }).getByRole('option');
    await expect
      .poll(() => options.allInnerTexts())
      .toEqual([
        expect.stringMatching(/^\/review what to look at\s+Looks at the change\.$/),
        expect.stringMatching(/^\/compact\s+Sums up\.$/),
      ]);
    await axe(page);
    await field(page).press('ArrowDown');
    await field(page).press('Enter');
    expect(await field(page).inputValue()).toBe('/compact ');
    await expect.poll(() => options.count()).toBe(0);
    expect(await talk.turns()).toHaveLength(2);
    await field(page).fill('/say Again.');
    await field(page).press('Enter');
    await page.getByText('Again.', { exact: true }).waitFor();
    await expect.poll(() => field(page).inputValue()).toBe('');
    await field(page).press('ArrowUp');
    expect(await field(page).inputValue()).toBe('/say Again.');
  },
);

server.test('a draft is kept through a reload, apart from those of other conversations', async ({ open }) => {
  const [one, other] = [await (await chat()).ensure(), await (await chat()).ensure()];
  const page = await open(`/c/${one.id}`);
  await field(page).fill('Half a thought');
  await page.reload();
  await expect.poll(() => field(page).inputValue()).toBe('Half a thought');
  await page.goto(`${server.url}/c/${other.id}`);
  expect(await field(page).inputValue()).toBe('');
  await page.goBack();
  await expect.poll(() => field(page).inputValue()).toBe('Half a thought');
});

server.test('a prompt whose reply is lost is kept, and sent again it is one turn', async ({ open, allow }) => {
  allow(/ERR_FAILED|Failed to fetch/);
  const talk = await chat();
  const { id } = await talk.ensure();
  const page = await open(`/c/${id}`);
  // The server stores it, and the page is never told so.
  await page.route(/\/turns$/, async (route) => {
    const { prompt, ...options } = route.request().postDataJSON();
    await (await server.tl()).engine.submit(id, prompt, options);
    await route.abort();
  });
  await say(page, '/say Once');
  await expect.poll(() => talk.turns()).toHaveLength(1);
  expect(await field(page).inputValue()).toBe('/say Once');
  await page.reload();
  // Its turn is there: nothing is left to send.
  await page.getByText('Once', { exact: true }).waitFor();
  await expect.poll(() => field(page).inputValue()).toBe('');
  await page.unrouteAll({ behavior: 'ignoreErrors' });
  await say(page, '/say Twice');
  await expect.poll(() => talk.turns()).toHaveLength(2);
});

/** How many files of a draft the database of the browser has. It is written to after they are shown. */
function keptFiles(page: Page, draft: string): Promise<number> {
  return page.evaluate(
    (id) =>
      new Promise<number>((resolve, reject) => {
        const opening = indexedDB.open('throughline.drafts', 1); // the page has made it
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

server.test('an image is pasted, kept through a reload, shown, and sent as a block', async ({ open }) => {
  const talk = await chat();
  const { id } = await talk.ensure();
  const page = await open(`/c/${id}`);
  await field(page).focus();
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
  await expect.poll(() => keptFiles(page, id)).toBe(1);
  await page.reload();
  await files.getByText('shot.png').waitFor();
  await say(page, 'What is this?');
  await expect.poll(() => talk.turns()).toHaveLength(1);
  const [turn] = await talk.turns();
  expect(turn?.prompt.map(({ type }) => type)).toEqual(['image', 'text']);
  await expect.poll(() => files.count()).toBe(0);
});

server.test('files are dropped; what cannot be sent is named with the reason', async ({ open }) => {
  const { id } = await (await chat()).ensure();
  const page = await open(`/c/${id}`);
  await field(page).waitFor();
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
  const talk = await chat();
  await talk.ask('The codeword is osprey.', { agent: 'scripted' });
  const page = await open(`/c/${(await talk.get()).id}`);
  await page.locator('form').getByRole('combobox', { name: 'Agent' }).selectOption('forgetful');
  await page.getByText('Hand over to').waitFor();
  await say(page, 'Which codewords have you seen?');
  await expect.poll(async () => (await talk.turns())[1]?.state).toBe('completed');
  expect((await talk.turns())[1]).toMatchObject({ agent: 'forgetful', reply: expect.stringContaining('osprey') });
  await expect.poll(() => page.locator('form').getByRole('combobox', { name: 'Agent' }).inputValue()).toBe('forgetful');
  await page.getByText('Hand over to').waitFor({ state: 'detached' });
});

server.test('drafts of erased conversations, and old ones, are freed at the next visit', async ({ open, allow }) => {
  allow(/404/); // it asks for the erased one
  const talks = [await chat(), await chat(), await chat()];
  const ids: string[] = [];
  for (const talk of talks) ids.push((await talk.ensure()).id);
  const [erased = '', old = '', kept = ''] = ids;
  let page = await open(`/c/${erased}`);
  for (const id of ids) {
    await page.goto(`${server.url}/c/${id}`);
    await field(page).fill(`For ${id}`);
  }
  const drafts = () =>
    page.evaluate(() => Object.keys(localStorage).filter((name) => /\.(draft|written)\./.test(name)));
  expect(await drafts()).toHaveLength(6);
  await talks[0]?.erase();
  await page.evaluate((id) => {
    const [, owner] = /^\d+ (.*)$/.exec(localStorage.getItem(`throughline.written.${id}`) ?? '') ?? [];
    localStorage.setItem(`throughline.written.${id}`, `${Date.now() - 29 * 86_400_000} ${owner}`);
  }, old);
  page = await open('/');
  await expect
    .poll(async () => (await drafts()).toSorted())
    .toEqual([`throughline.draft.${kept}`, `throughline.written.${kept}`]);
});

server.test('a way to restore, its budget and a limit are chosen for one prompt', async ({ open }) => {
  const talk = await chat();
  await talk.ask('The codeword is osprey.');
  const page = await open(`/c/${(await talk.get()).id}`);
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
  await say(page, 'Which codewords have you seen?');
  await expect.poll(async () => (await talk.turns()).length).toBe(2);
  const [, turn] = await talk.turns();
  const restore = { policy: 'auto', budgetTokens: 5_000, lastTurns: 3 };
  expect(turn?.options).toMatchObject({ restore, limits: { turnSeconds: 60 } });
  await page.getByRole('button', { name: 'Options for the next prompt', exact: true }).waitFor();
});

server.test('a model, a mode and an option are chosen from what the agent has announced', async ({ open }) => {
  const talk = await chat();
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
  await talk.ask(updates.map((update) => `/update ${JSON.stringify(update)}`).join('\n'));
  const page = await open(`/c/${(await talk.get()).id}`);
  const options = page.getByRole('button', { name: /^Options for the next prompt/ });
  const choice = (name: string) => page.getByRole('combobox', { name, exact: true });
  const offered = (label: string) =>
    choice(label).evaluate((input) => {
      const { list } = input as HTMLInputElement;
      return [...(list?.options ?? [])].map(({ value }) => value);
    });
  await options.click();
  // What is used now is known, and what else there is.
  await expect.poll(() => choice('Model').getAttribute('placeholder')).toBe('small');
  expect(await offered('Model')).toEqual(['small', 'large']);
  expect(await offered('Mode')).toEqual(['code', 'plan']);
  await choice('Model').fill('large');
  await choice('Mode').fill('plan');
  await choice('Web search').selectOption('on');
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'Options for the next prompt: large · plan · web: true' }).waitFor();
  await say(page, '/say Chosen.');
  await expect.poll(async () => (await talk.turns()).length).toBe(2);
  expect((await talk.turns())[1]?.options).toMatchObject({ model: 'large', mode: 'plan', config: { web: true } });
  // A new conversation is offered the same, and none of it is chosen there.
  await page.goto(`${server.url}/new`);
  await options.click();
  await expect.poll(() => offered('Model')).toEqual(['small', 'large']);
  expect(await choice('Model').inputValue()).toBe('');
});

server.test('the session is prepared when somebody is about to write, and not before', async ({ open }) => {
  const talk = await chat();
  await talk.ask('The codeword is osprey.');
  await talk.kill();
  const live = async () => (await talk.sessions()).filter(({ state }) => state === 'live').length;
  const page = await open(`/c/${(await talk.get()).id}`);
  await page.getByRole('article', { name: 'Turn 1' }).waitFor();
  expect(await live()).toBe(0);
  await field(page).focus();
  await expect.poll(live).toBe(1);
  expect((await talk.show()).receipts.at(-1)).toMatchObject({ turn: null, rung: 'resume' });
  await say(page, 'Which codewords have you seen?');
  await expect.poll(async () => (await talk.turns())[1]?.reply).toContain('osprey');
});

server.test('the session is killed while somebody watches, and the next prompt restores it', async ({ open }) => {
  const talk = await chat();
  await talk.ask('The codeword is osprey.');
  const page = await open(`/c/${(await talk.get()).id}`);
  await page.getByRole('button', { name: 'Kill session' }).click();
  await page.getByText('Session ended. Nothing that was said is lost.').waitFor();
  expect(await field(page).evaluate((element) => element === document.activeElement)).toBe(true);
  expect((await talk.sessions()).filter(({ state }) => state === 'live')).toEqual([]);
  // Coming back to the field must not bring back what somebody has just ended.
  await expect.poll(() => page.getByRole('button', { name: 'Kill session' }).count()).toBe(0);
  await field(page).blur();
  await field(page).focus();
  await page.keyboard.type('Which codewords have you seen?');
  await page.keyboard.press('Enter');
  await page
    .getByText(/osprey/)
    .last()
    .waitFor();
  await expect.poll(async () => (await talk.turns())[1]?.state).toBe('completed');
  expect((await talk.show()).receipts.at(-1)).toMatchObject({ turn: 2, rung: 'resume' });
  await page
    .getByRole('region', { name: 'Seam before turn 2' })
    .getByText(/Process was killed.*1 carried, 0 dropped/)
    .waitFor();
  await page.getByRole('button', { name: 'Kill session' }).waitFor();
});

server.test('a failed turn is retried at the head, and going back is a fork with its prompt', async ({ open }) => {
  const talk = await chat();
  await talk.ask('The codeword is osprey.');
  await talk.send('/fail agent_failed').accepted;
  await expect.poll(async () => (await talk.turns()).at(-1)?.state).toBe('failed');
  const page = await open(`/c/${(await talk.get()).id}`);
  const menu = page.getByRole('button', { name: 'Conversation actions' });
  await menu.click();
  await page.getByRole('menuitem', { name: 'Retry the last turn' }).click();
  await expect.poll(async () => (await talk.turns()).length).toBe(3);
  expect((await talk.turns()).at(-1)).toMatchObject({ n: 3, retryOf: (await talk.turns())[1]?.id });
  await expect.poll(async () => (await talk.turns()).at(-1)?.state).toBe('failed');
  // "The last turn" is the last that this page knows of.
  await page.getByRole('article', { name: 'Turn 3', exact: true }).waitFor();
  await page.getByRole('button', { name: 'Send' }).waitFor();
  await menu.click();
  await page.getByRole('menuitem', { name: 'Go back before the last turn' }).click();
  await expect.poll(() => field(page).inputValue()).toBe('/fail agent_failed');
  const fork = new URL(page.url()).pathname.split('/')[2] ?? '';
  expect(fork).not.toBe((await talk.get()).id);
  const copy = (await server.tl()).conversation(fork);
  expect((await copy.get()).parent).toMatchObject({ n: 2 });
});

server.test('it is renamed, exported, verified and erased', async ({ open, allow }) => {
  // The stream of what was erased ends.
  allow(/status of 404|ERR_INCOMPLETE_CHUNKED/);
  const talk = await chat();
  await talk.ask('Hello');
  const page = await open(`/c/${(await talk.get()).id}`);
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
  expect((await talk.get()).title).toBe('Another title');
  await choose('Erase…');
  await page.getByRole('button', { name: 'Erase', exact: true }).click();
  await page.getByText(/^Erased\./).waitFor();
  await page.waitForURL((url) => url.pathname === '/');
  await expect(talk.get()).rejects.toThrow();
});

server.test('a new conversation is made by its first prompt', async ({ open }) => {
  const key = randomUUID();
  const page = await open('/new');
  const files = page.getByRole('list', { name: 'Attached files' }).getByRole('listitem');
  const notes = { name: 'notes.txt', mimeType: 'text/plain', buffer: Buffer.from('x') };
  await page.getByLabel('Files to attach').setInputFiles(notes);
  await files.getByText('notes.txt').waitFor();
  await files.getByRole('button', { name: 'Remove notes.txt' }).click();
  await expect.poll(() => files.count()).toBe(0);
  await page.getByRole('textbox', { name: 'Title', exact: true }).fill('Broken build');
  await page.getByRole('textbox', { name: 'Key', exact: true }).fill(key);
  await axe(page);
  await say(page, '/say Begun.');
  await page.getByText('Begun.', { exact: true }).waitFor();
  const made = await (await server.tl()).conversation(key).get();
  expect(made).toMatchObject({ title: 'Broken build' });
  await page.waitForURL((url) => url.pathname === `/c/${made.id}`);
  await page.goto(`${server.url}/new`);
  expect(await field(page).inputValue()).toBe('');
});

server.test(
  'on a phone, Enter is a new line, and nothing is smaller than a thumb or makes iOS zoom',
  async ({ open }) => {
    const talk = await chatWith('notes.md');
    await talk.ask('Hello');
    const page = await open(`/c/${(await talk.get()).id}`);
    await field(page).fill('@no');
    await suggested(page).getByText('notes.md').tap();
    await expect.poll(() => field(page).inputValue()).toBe('@notes.md ');
    await field(page).fill('one');
    await field(page).press('Enter');
    expect(await field(page).inputValue()).toBe('one\n');
    const size = await field(page).evaluate((element) => Number.parseFloat(getComputedStyle(element).fontSize));
    expect(size).toBeGreaterThanOrEqual(16);
    const small = await page
      .locator('form button:visible, form select:visible')
      .evaluateAll((all) => all.filter((one) => one.getBoundingClientRect().height < 44).map((one) => one.outerHTML));
    expect(small).toEqual([]);
    await axe(page);
    await page.getByRole('button', { name: 'Send' }).tap();
    await expect.poll(() => talk.turns()).toHaveLength(2);
  },
  PHONE,
);
