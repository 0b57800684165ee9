// The verbs of the library: a program can do everything that an engine can, without the engine itself.
import { expect, test } from 'vitest';
import { event, refusedWith } from '../support/conversations.ts';
import { Home } from '../support/home.ts';

test('a handle reads the turns, records, sessions and receipts of its conversation, and renames, exports and erases it', async () => {
  await using home = new Home();
  const tl = await home.open();
  const chat = tl.conversation('chat');
  await chat.ask('The codeword is osprey.\n/tool write out.log');
  await chat.ask('Which codewords have you seen?');
  expect(await chat.turns({ limit: 1 })).toMatchObject([{ n: 1, state: 'completed' }]);
  expect((await chat.turns({ after: 1 })).map(({ reply }) => reply)).toEqual(['I have seen these codewords: osprey.']);
  const records = await chat.records();
  expect(records.map(({ n }) => n)).toEqual([1, 2]);
  expect(records[0]?.parts).toContainEqual(expect.objectContaining({ type: 'tool', status: 'completed' }));
  expect(await chat.records({ after: 1, limit: 1 })).toEqual(records.slice(1));
  expect(await chat.records({ after: 2 })).toEqual([]);
  const turns = await chat.turns();
  expect(await chat.outline()).toEqual(
    turns.map(({ id, n, state, agent, sessionId, imported, usage, startedAt, endedAt, sent }) => {
      return { id, n, state, agent, sessionId, imported, usage, startedAt, endedAt, rung: sent?.rung, given: null };
    }),
  );
  expect(await chat.sessions()).toMatchObject([{ watermark: 2, turns: 2 }]);
  expect((await chat.receipts()).map(({ rung }) => rung)).toEqual(['new', 'live']);
  expect(await chat.kill()).toMatchObject([{ state: 'dormant' }]);
  expect(await chat.warm()).toMatchObject({ rung: 'resume', turn: null });
  expect(await chat.rename('Birds')).toMatchObject({ key: 'chat', title: 'Birds' });
  expect(await chat.arrange({ pinned: true, putAway: true })).toMatchObject({ pinned: true, putAway: true });
  expect(await tl.conversations({ putAway: false })).toEqual([]);
  expect(await tl.conversations({ pinned: true })).toMatchObject([{ key: 'chat' }]);
  expect(await chat.verify()).toMatchObject({ broken: null });

  const copy = await tl.import(await chat.export(), { key: 'copy' });
  expect((await copy.turns()).map(({ imported, reply }) => [imported, reply])).toEqual([
    [true, records[0] && (await chat.turns())[0]?.reply],
    [true, 'I have seen these codewords: osprey.'],
  ]);
  expect((await copy.ask('Which codewords have you seen?')).reply).toContain('osprey');
  expect((await copy.erase()).remains[0]).toMatchObject({ what: 'sandbox' });
  await refusedWith('not_found', copy.get());
  expect(await chat.erase({ sandbox: true })).toMatchObject({ remains: [] });
  await refusedWith('not_found', chat.turns(), /There is no conversation "chat"/);
  await refusedWith('not_found', chat.outline(), /There is no conversation "chat"/);
  await refusedWith('not_found', chat.records(), /There is no conversation "chat"/);
  expect((await chat.ask('Hello again.')).turn.n).toBe(1);
});

test('the outline says where a session was given its context, also by a warm-up', async () => {
  await using home = new Home({ forgetful: { memory: 'process' } });
  const tl = await home.open();
  const chat = tl.conversation('chat', { agent: 'forgetful' });
  for (const prompt of ['One.', 'Two.']) await chat.ask(prompt);
  await chat.kill();
  await chat.ask('Three.');
  await chat.kill();
  await chat.warm();
  await chat.ask('Four.');
  await chat.ask('Five.', { restore: { policy: 'off' } });
  const given = async (page = {}) => (await chat.outline(page)).map(({ rung, given }) => [rung, given]);
  const all = [
    ['new', null],
    ['live', null],
    ['transcript', 'transcript'],
    ['live', 'transcript'],
    ['fresh', 'fresh'],
  ];
  expect(await given()).toEqual(all);
  expect(await given({ after: 3, limit: 1 })).toEqual([all[3]]);
  expect(await given({ before: 5, limit: 2 })).toEqual(all.slice(2, 4));
});

test('conversations are listed with their state, and found by agent, state and time', async () => {
  await using home = new Home({ scripted: {}, other: {} });
  const tl = await home.open();
  const since = Date.now();
  await tl.conversation('done', { agent: 'scripted' }).ask('Hello.');
  await refusedWith('agent_failed', tl.conversation('broken', { agent: 'other' }).ask('/fail'));
  const asking = tl
    .conversation('asking', { agent: 'scripted' })
    .send('/ask May I?\n/say done', { permissions: 'ask' });
  const { turn } = await asking.accepted;
  const { payload } = await event(tl.engine, 'asking', 'permission.asked', { turn: turn.id });
  const queued = tl.conversation('asking').send('Next.', { agent: 'other' });
  await queued.accepted;
  const rows = (await tl.conversations()).map((one) => [one.key, one.state, one.lastAgent, one.openPermissions]);
  expect(rows).toEqual([
    ['asking', 'asks', 'other', 1],
    ['broken', 'failed', 'other', 0],
    ['done', 'idle', 'scripted', 0],
  ]);
  const keys = async (...[options]: Parameters<typeof tl.conversations>) =>
    (await tl.conversations(options)).map(({ key }) => key);
  expect(await keys({ state: 'asks' })).toEqual(['asking']);
  expect(await keys({ state: ['idle', 'failed'] })).toEqual(['broken', 'done']);
  expect(await keys({ agent: 'other' })).toEqual(['asking', 'broken']);
  expect(await keys({ agent: 'other', state: 'failed', since })).toEqual(['broken']);
  expect(await keys({ since, until: new Date(Date.now() + 1_000) })).toHaveLength(3);
  expect(await keys({ until: since })).toEqual([]);
  const [, broken] = await tl.conversations();
  expect(await keys({ state: ['idle', 'failed', 'asks'], ...(broken && { before: broken }) })).toEqual(['done']);
  const done = await tl.conversation('done').get();
  expect(done.usage).toEqual((await tl.conversation('done').summary()).usage);
  await tl.answer(payload.permissionId, 'allow');
  await queued;
  expect(await keys({ state: 'idle' })).toEqual(['asking', 'done']);
  expect(await tl.conversation('asking').get()).toMatchObject({
    state: 'idle',
    lastAgent: 'other',
    openPermissions: 0,
  });
});

test('a conversation is read backwards in pages', async () => {
  await using home = new Home();
  const tl = await home.open();
  const chat = tl.conversation('chat');
  expect((await chat.ensure()).lastSeq).toBe(1);
  expect(await chat.turns({ before: 'end' })).toEqual([]);
  for (const n of [1, 2, 3]) await chat.ask(`/say ${n}`);
  const hanging = chat.send('/hang');
  const { turn } = await hanging.accepted;
  await event(tl.engine, 'chat', 'turn.sent', { turn: turn.id });
  const replies = async (page: Parameters<typeof chat.turns>[0]) =>
    (await chat.turns(page)).map(({ n, reply }) => [n, reply]);
  expect(await replies({ before: 'end', limit: 2 })).toEqual([
    [3, '3'],
    [4, ''],
  ]);
  expect(await replies({ before: 3, limit: 2 })).toEqual([
    [1, '1'],
    [2, '2'],
  ]);
  expect(await replies({ before: 3, limit: 1 })).toEqual([[2, '2']]);
  expect(await replies({ before: 1 })).toEqual([]);
  const outline = async (page: Parameters<typeof chat.outline>[0]) => (await chat.outline(page)).map(({ n }) => n);
  expect(await outline({ before: 'end', limit: 2 })).toEqual([3, 4]);
  expect(await outline({ before: 3 })).toEqual([1, 2]);
  expect(await outline({ after: 3 })).toEqual([4]);
  expect((await chat.records({ before: 'end', limit: 2 })).map(({ n }) => n)).toEqual([2, 3]);
  expect((await chat.records({ before: 2 })).map(({ n }) => n)).toEqual([1]);

  const all = await chat.events({ limit: 1_000 });
  expect(all.map(({ seq }) => seq)).toEqual(all.map((_, index) => index + 1));
  const last = await chat.events({ limit: 3 });
  expect(last).toEqual(all.slice(-3));
  expect(await chat.events({ before: last[0]?.seq ?? 0, limit: 2 })).toEqual(all.slice(-5, -3));
  expect(await chat.events({ before: 1 })).toEqual([]);
  const ofFirstTurn = all.filter((one) => one.turnId === all.find(({ kind }) => kind === 'turn.queued')?.turnId);
  expect(await chat.events({ turn: 1 })).toEqual(ofFirstTurn);
  expect(await chat.events({ turn: 1, limit: 1 })).toMatchObject([{ kind: 'turn.ended', payload: { n: 1 } }]);
  const { logId } = await chat.get();
  expect(await chat.events({ before: 3, log: logId })).toEqual(all.slice(0, 2));
  await refusedWith('log_changed', chat.events({ before: 3, log: 'another' }));
  await refusedWith('log_changed', chat.events({ before: 10_000 }), /There is no event 9999/);
  await refusedWith('not_found', chat.events({ turn: 99 }), /There is no turn "99"/);
  await refusedWith('invalid', chat.events({ before: 0 }), /"before" must be/);
  await refusedWith('invalid', chat.turns({ before: 2, after: 1 }), /not both/);
  await chat.cancel();
});

test('cancel() takes a turn, its id or its number, and cancels all open turns if none is named', async () => {
  await using home = new Home();
  const tl = await home.open();
  const chat = tl.conversation('chat');
  const done = await chat.ask('Hello.');
  const { accepted } = chat.send('/hang');
  const { turn } = await accepted;
  const waiting = [chat.send('Second.'), chat.send('Third.')];
  await Promise.all(waiting.map((one) => one.accepted));
  expect(await chat.cancel(3)).toMatchObject([{ n: 3, state: 'cancelled' }]);
  expect(await chat.cancel(done.turn)).toMatchObject([{ n: 1, state: 'completed' }]);
  const other = tl.conversation('other');
  await other.ask('Hello.');
  await refusedWith('not_found', other.cancel(turn.id), /There is no turn/);
  await refusedWith('not_found', chat.cancel(9), /There is no turn "9"/);
  await refusedWith('not_found', chat.cancel(0), /There is no turn "0"/);
  expect((await tl.conversation('chat').turns({ after: 1 })).map(({ state }) => state)).not.toContain('completed');
  expect((await chat.cancel()).map(({ n }) => n)).toEqual([2, 4]);
  await event(tl.engine, 'chat', 'turn.ended', { turn: turn.id });
  expect((await chat.turns()).map(({ state }) => state)).toEqual([
    'completed',
    ...['cancelled', 'cancelled', 'cancelled'],
  ]);
  expect(await chat.cancel()).toEqual([]);
});

test('the client has the verbs that do not belong to one conversation', async () => {
  await using home = new Home();
  const tl = await home.open();
  const { turn } = await tl.conversation('one').ask('The codeword is osprey.');
  const asking = tl.conversation('two').send('/ask May I?\n/say done');
  const { turn: asked } = await asking.accepted;
  await event(tl.engine, 'two', 'permission.asked', { turn: asked.id });
  expect((await tl.conversations()).map(({ key }) => key).toSorted()).toEqual(['one', 'two']);
  expect(await tl.conversations({ limit: 1 })).toHaveLength(1);
  expect(await tl.search('osprey')).toMatchObject([{ key: 'one', n: 1 }]);
  const [question] = await tl.permissions({ open: true });
  expect(question).toMatchObject({ title: 'May I?', turnId: asked.id });
  expect(await tl.answer(question?.id ?? '', 'allow')).toMatchObject({ state: 'answered', optionId: 'allow' });
  await tl.answerOf(asked.id, { waitMs: 60_000 });
  expect(await tl.answerOf(turn.id)).toMatchObject({ turn: { id: turn.id }, receipt: { rung: 'new' } });
  expect(await tl.usage()).toMatchObject([{ turns: 2 }]);
  expect(await tl.agents()).toMatchObject([{ name: 'scripted', problem: null }]);
  const stop = new AbortController();
  const untilHinted = async (conversation: string) => {
    for await (const { conversationId } of tl.hints({ signal: stop.signal })) {
      if (conversationId === null || conversationId === conversation) return true;
    }
    return false;
  };
  const hinted = untilHinted(turn.conversationId);
  await tl.conversation('one').rename('Birds');
  expect(await hinted).toBe(true);
  stop.abort();
  expect(await tl.as('somebody').conversations()).toEqual([]);
});

test('prompts that are sent at once are accepted in the order of the calls', async () => {
  await using home = new Home();
  const chat = (await home.open()).conversation('chat');
  const words = Array.from({ length: 12 }, (_, n) => `word-${n}`);
  const accepted = await Promise.all(words.map((word) => chat.send(word).accepted));
  expect(accepted.map(({ turn }) => turn.n)).toEqual(words.map((_, n) => n + 1));
  await chat.cancel();
});

test('retry() repeats the last turn, or the one that is named, and gives an answer as send() does', async () => {
  await using home = new Home();
  const tl = await home.open();
  const chat = tl.conversation('chat');
  await refusedWith('not_found', chat.retry().accepted, /There is no conversation "chat"/);
  await chat.ensure();
  await refusedWith('not_found', chat.retry().accepted, /has no turn yet/);
  const { turn } = await chat.ask('The codeword is osprey.');
  await chat.ask('Which codewords have you seen?');
  const again = chat.retry(undefined, { requestId: 'once' });
  expect((await Array.fromAsync(again.textStream)).join('')).toContain('osprey');
  expect(await again).toMatchObject({ turn: { n: 3, state: 'completed' }, reply: expect.stringContaining('osprey') });
  expect(await chat.retry(2, { requestId: 'once' }).accepted).toMatchObject({ duplicate: true, turn: { n: 3 } });
  expect((await chat.retry(turn)).turn).toMatchObject({ n: 4, retryOf: turn.id });
  // The question of the first turn was denied; that of the retry is answered by onPermission.
  await chat.ask('/ask May I?\n/say done', { permissions: 'deny' });
  const titles: string[] = [];
  const onPermission = ({ title }: { title: string }) => {
    titles.push(title);
    return 'allow';
  };
  expect((await chat.retry(5, { onPermission })).reply).toContain('done');
  expect(titles).toEqual(['May I?']);
  const stop = new AbortController();
  const hanging = chat.send('/hang', { signal: stop.signal });
  await refusedWith('conflict', chat.retry((await hanging.accepted).turn).accepted, /still/);
  stop.abort();
  await expect(hanging).rejects.toMatchObject({ code: 'cancelled' });
  await refusedWith('cancelled', chat.retry(7, { signal: AbortSignal.abort() }).accepted, /before it was submitted/);
  // The last turn is repeated also if it was never sent.
  const [running, queued] = [chat.send('/hang'), chat.send('Second.')];
  await running.accepted;
  const { turn: last } = await queued.accepted;
  await chat.cancel();
  await expect(running).rejects.toMatchObject({ code: 'cancelled' });
  expect((await chat.retry()).turn.retryOf).toBe(last.id);
  const typo = { requestID: 'r' } as never;
  expect(() => chat.retry(1, typo)).toThrow('retry() has no option "requestID".');
});

test('a handle follows its key: after the conversation was erased, it uses the next one with that key', async () => {
  await using home = new Home();
  const tl = await home.open();
  const [chat, kept, named] = [
    tl.conversation('chat'),
    tl.conversation('chat'),
    tl.conversation('chat', { title: 'T' }),
  ];
  await kept.ask('The codeword is osprey.');
  const { id } = await named.ensure();
  await chat.erase();
  await refusedWith('not_found', kept.turns(), /"chat"/);
  expect((await kept.ask('Which codewords have you seen?')).reply).toBe('I have seen no codewords.');
  expect((await named.turns()).map(({ n }) => n)).toEqual([1]);
  await chat.erase();
  expect(await named.ensure()).toMatchObject({ id: expect.not.stringMatching(id), title: 'T' });
  expect((await kept.get()).id).toBe((await named.get()).id);
  // A conversation without a key has no next one.
  await kept.ask('Hello.');
  const fork = await kept.fork();
  const { id: erased } = await fork.get();
  await tl.engine.erase(erased);
  await refusedWith('not_found', fork.send('Hello.').accepted, new RegExp(erased));
});
