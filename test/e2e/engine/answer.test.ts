import { getEventListeners } from 'node:events';
import { expect, test } from 'vitest';
import type { Answer, ConversationHandle } from '../../../src/index.ts';
import { statusOf, ThroughlineError, TurnError } from '../../../src/index.ts';
import { SubmittedAnswer } from '../../../src/library/answer.ts';
import { Answerer } from '../../../src/library/answering.ts';
import { temporaryFolder } from '../../temporary-folder.ts';
import { event, until } from '../support/conversations.ts';
import { Home } from '../support/home.ts';

const RETRACTED = '/say The cap\n/retract\n/say Paris it is.';

async function openChat(home: Home): Promise<ConversationHandle> {
  return (await home.open()).conversation('chat');
}

test('an answer gives its text as it comes, its events, and its result when awaited; ask() gives the same result', async () => {
  await using home = new Home();
  const chat = await openChat(home);
  const answer = chat.send('/say One.\n/tool write effects.log\n/stream 5 1\n/usage 7 3');
  const [texts, replies, events, result] = await Promise.all([
    Array.fromAsync(answer.textStream),
    Array.fromAsync(answer.replyStream),
    Array.fromAsync(answer.events),
    answer,
  ]);
  const reply = 'One.\n\nchunk 1 chunk 2 chunk 3 chunk 4 chunk 5 ';
  expect({ reply: result.reply, joined: texts.join(''), last: replies.at(-1) }).toEqual({
    reply,
    joined: reply,
    last: reply,
  });
  expect([events.at(0)?.kind, events.at(-1)?.kind]).toEqual(['turn.queued', 'turn.ended']);
  expect(new Set(events.map(({ turnId }) => turnId))).toEqual(new Set([result.turn.id]));
  expect(await answer.result).toBe(result);
  expect(result).toMatchObject({
    turn: { state: 'completed', n: 1 },
    receipt: { rung: 'new' },
    usage: { inputTokens: 7, outputTokens: 3 },
    tools: [
      {
        title: 'write',
        kind: 'edit',
        target: 'effects.log',
        status: 'completed',
        output: 'appended a line to effects.log',
      },
    ],
    denied: [],
  });
  expect(await answer.accepted).toMatchObject({ turn: { id: result.turn.id }, duplicate: false });
  const asked = await chat.ask('Hello.');
  expect(Object.keys(asked).sort()).toEqual(Object.keys(result).sort());
});

test('text that an agent retracts is not in the reply, and not in the last value of replyStream', async () => {
  await using home = new Home();
  const chat = await openChat(home);
  const answer = chat.send(RETRACTED);
  const [texts, replies] = await Promise.all([Array.fromAsync(answer.textStream), Array.fromAsync(answer.replyStream)]);
  expect((await answer).reply).toBe('Paris it is.');
  expect(replies.at(-1)).toBe('Paris it is.');
  expect(texts.join('')).toBe('The cap\n\nParis it is.');
  // Text that the agent repeats after the retraction is not repeated in the stream.
  const again = await Array.fromAsync(chat.send('/say The cap\n/retract\n/say The capital is Paris.').textStream);
  expect(again.join('')).toBe('The capital is Paris.');
});

test('a slow reader of replyStream gets the newest reply, and none that is outdated', async () => {
  await using home = new Home();
  const chat = await openChat(home);
  const answer = chat.send('/stream 20 60');
  const replies = answer.replyStream[Symbol.asyncIterator]();
  expect((await replies.next()).value).toMatch(/^chunk 1 /);
  const { reply } = await answer;
  expect(await replies.next()).toEqual({ done: false, value: reply });
  expect(await replies.next()).toEqual({ done: true, value: undefined });
});

test('each stream of an answer can be read once and then refuses; the result can be awaited again and again', async () => {
  await using home = new Home();
  const answer = (await openChat(home)).send('Hello.');
  for (const name of ['textStream', 'replyStream', 'events'] as const) {
    await Array.fromAsync<unknown>(answer[name]);
    await expect(Array.fromAsync<unknown>(answer[name])).rejects.toMatchObject({
      code: 'invalid',
      message: `"${name}" of this answer is being read, or was read, already.`,
      hint: expect.stringContaining('Await the answer'),
    });
  }
  expect((await answer).reply).toBe('Noted: Hello.');
  expect((await answer).reply).toBe('Noted: Hello.');
});

test('a turn that fails throws a TurnError with its reply, receipt and tools, whether it is awaited or its text is read', async () => {
  await using home = new Home();
  const chat = await openChat(home);
  const failing = '/say Beginning.\n/tool write effects.log\n/fail agent_failed';
  const expected = {
    name: 'TurnError',
    code: 'agent_failed',
    message: expect.stringContaining('failed as asked'),
    turn: { state: 'failed', failure: { code: 'agent_failed' } },
    reply: 'Beginning.',
    receipt: { rung: 'live' },
    tools: [{ title: 'write' }],
    denied: [],
  };
  await chat.ask('Hello.');
  const reads: ((answer: Answer) => PromiseLike<unknown>)[] = [
    (answer) => answer,
    (answer) => answer.result,
    (answer) => Array.fromAsync(answer.textStream),
    (answer) => Array.fromAsync(answer.replyStream),
  ];
  const error = await chat.ask(failing).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(TurnError);
  expect(error).toBeInstanceOf(ThroughlineError);
  expect(error).toMatchObject(expected);
  expect(statusOf(error)).toBe(424);
  for (const read of reads) {
    const answer = chat.send(failing);
    await expect(read(answer)).rejects.toMatchObject({ name: 'TurnError', code: 'agent_failed', reply: 'Beginning.' });
  }
  const answer = chat.send(failing);
  expect((await Array.fromAsync(answer.events)).at(-1)).toMatchObject({ payload: { outcome: 'failed' } });
});

test('aborting the signal cancels the turn: the error says so, and has the reply so far', async () => {
  await using home = new Home();
  const chat = await openChat(home);
  const stop = new AbortController();
  const answer = chat.send('/stream 100000 5', { signal: stop.signal });
  let seen = '';
  const reading = (async () => {
    for await (const text of answer.textStream) {
      seen += text;
      stop.abort('the person left');
    }
  })();
  await expect(reading).rejects.toMatchObject({ name: 'TurnError', code: 'cancelled' });
  const error = await answer.then(null, (thrown: unknown) => thrown as TurnError);
  expect(error).toMatchObject({ code: 'cancelled', turn: { state: 'cancelled' }, receipt: { rung: 'new' } });
  expect((error as TurnError).cause).toBe('the person left');
  expect(seen).toMatch(/^chunk 1 /);
  expect((error as TurnError).reply).toBe(seen);
  // A signal that is used longer than for one prompt keeps no listener of it.
  const long = new AbortController();
  await chat.ask('Hello.', { signal: long.signal });
  expect(getEventListeners(long.signal, 'abort')).toEqual([]);
  // A signal that is aborted before the prompt is submitted: there is no turn.
  const never = await chat.ask('Hello.', { signal: AbortSignal.abort('too late') }).catch((thrown: unknown) => thrown);
  expect(never).toMatchObject({ name: 'ThroughlineError', code: 'cancelled', cause: 'too late' });
  expect(await chat.turns()).toHaveLength(2);
});

test('an answer that nobody reads causes no unhandled rejection, and leaving a stream does not end the turn', async () => {
  await using home = new Home();
  const chat = await openChat(home);
  const unhandled: unknown[] = [];
  const record = (error: unknown) => unhandled.push(error);
  process.on('unhandledRejection', record);
  try {
    const { turn } = await chat.send('/fail agent_failed').accepted;
    chat.send('Hello.', { agent: 'nobody' }); // refused
    chat.send('Hello.', { signal: AbortSignal.abort() });
    const abandoned = chat.send('/stream 5 20');
    for await (const _ of abandoned.textStream) break;
    for await (const _ of chat.send('/say Beginning.\n/fail agent_failed').replyStream) break;
    expect((await abandoned).reply).toContain('chunk 5');
    await until('all turns have ended', async () => (await chat.turns()).every(({ endedAt }) => endedAt !== null));
    expect((await chat.turns({ limit: 1 }))[0]).toMatchObject({ id: turn.id, state: 'failed' });
    await new Promise(setImmediate); // Node reports unhandled rejections before this
  } finally {
    process.off('unhandledRejection', record);
  }
  expect(unhandled).toEqual([]);
});

test('a turn whose program has died is run by the next program, and the same request gives its answer', async () => {
  await using home = new Home();
  const host = await home.host({ maxRunning: 0 });
  await host.calls.send('chat', 'The codeword is amber.', { requestId: 'r-1' });
  await host.kill();
  const chat = await openChat(home);
  const answer = chat.send('The codeword is amber.', { requestId: 'r-1' });
  expect((await Array.fromAsync(answer.textStream)).join('')).toBe('Noted: The codeword is amber.');
  expect(await answer.accepted).toMatchObject({ duplicate: true });
  expect(await chat.turns()).toHaveLength(1);
});

test('onPermission may leave a question to others: it stays open until somebody answers', async () => {
  await using home = new Home();
  const tl = await home.open();
  const titles: string[] = [];
  const prompt = '/ask May I write?\n/tool write effects.log';
  for (const noAnswer of [null, undefined]) {
    const chat = tl.conversation('chat', {
      onPermission: async ({ title }) => {
        titles.push(title);
        return noAnswer;
      },
    });
    const answer = chat.send(prompt);
    const { turn, seq } = await answer.accepted;
    const { payload } = await event(tl.engine, 'chat', 'permission.asked', { after: seq, turn: turn.id });
    await until('onPermission was called', async () => titles.length > 0);
    expect(await tl.permissions({ open: true })).toMatchObject([{ id: payload.permissionId, state: 'open' }]);
    await tl.answer(payload.permissionId, 'allow');
    expect(await answer).toMatchObject({ reply: 'Done.', denied: [], tools: [{ status: 'completed' }] });
    expect(titles.splice(0)).toEqual(['May I write?']);
  }
});

test('a connection that is lost while a question is answered does not cancel the turn: the calls are repeated', async () => {
  await using home = new Home();
  const tl = await home.open();
  await tl.engine.ensure({ key: 'chat' });
  /** Calls that have failed; each fails once. */
  const failed: string[] = [];
  const engine = new Proxy(tl.engine, {
    get(real, name) {
      const fails = (name === 'permission' || name === 'answer') && !failed.includes(name);
      if (fails) failed.push(name);
      const unreachable = () => Promise.reject(new ThroughlineError('unreachable', 'The server does not answer.'));
      return fails ? unreachable : Reflect.get(real, name).bind?.(real);
    },
  });
  const titles: string[] = [];
  const answerer = new Answerer(engine, ({ title }) => {
    titles.push(title);
    return 'allow';
  });
  const submitted = engine.submit('chat', '/ask May I write?\n/tool write effects.log');
  expect(await new SubmittedAnswer(engine, submitted, answerer)).toMatchObject({ reply: 'Done.' });
  expect([failed, titles]).toEqual([['permission', 'answer'], ['May I write?']]);
});

test('the prompt and the options of send() are checked before anything is stored', async () => {
  await using home = new Home();
  const chat = await openChat(home);
  const wrong = [
    [{ signal: 5 }, '"signal" must be an AbortSignal, not 5.'],
    [{ onPermission: 'allow' }, 'onPermission must be a function, not "allow".'],
    [{ agnet: 'x' }, 'send() has no option "agnet".'],
    [null, 'send() takes its options as an object, not null.'],
    ['sonnet', 'send() takes its options as an object, not "sonnet".'],
  ] as const;
  for (const [options, message] of wrong) {
    await expect(chat.ask('Hello.', options as never)).rejects.toMatchObject({ code: 'invalid', message });
  }
  await expect(chat.ask('')).rejects.toMatchObject({ code: 'invalid', message: 'The prompt is empty.' });
  await expect(chat.turns()).rejects.toMatchObject({ code: 'not_found' });
});

test('a first prompt creates its conversation with the settings of the handle; a refused one leaves none behind', async () => {
  await using home = new Home();
  const tl = await home.open();
  const [cwd, elsewhere] = [temporaryFolder(), temporaryFolder()];
  const c = tl.conversation('chat', { cwd, title: 'A title', limitPerDay: '50k tokens' });
  const refused = [
    c.ask('Hello.', { session: 'one', newSession: 'two' }),
    c.ask('Hello.', { newSession: 'chosen', agent: 'scripted' }),
    c.ask('Hello.', { agent: 'nobody' }),
  ];
  for (const { status } of await Promise.allSettled(refused)) expect(status).toBe('rejected');
  expect(await tl.conversations()).toEqual([]);
  await c.ask('Hello.');
  const made = { key: 'chat', cwd, title: 'A title', limitPerDay: { tokens: 50_000 } };
  expect(await tl.conversation('chat').get()).toMatchObject(made);
  // An existing one is checked against the settings, and gets a new title.
  const other = tl.conversation('chat', { cwd: elsewhere }).ask('Hello.');
  await expect(other).rejects.toMatchObject({ code: 'refused', message: expect.stringContaining('directory') });
  await tl.conversation('chat', { title: 'Another' }).ask('Hello.');
  expect(await tl.conversation('chat').get()).toMatchObject({ ...made, title: 'Another', head: 2 });
});

test('of prompts that create the same conversation at once, one with another directory is refused', async () => {
  await using home = new Home();
  const [tl, second] = [await home.open(), await home.open()];
  const [cwd, elsewhere] = [temporaryFolder(), temporaryFolder()];
  for (let n = 1; n <= 5; n += 1) {
    const uses = [
      tl.conversation(`chat ${n}`, { cwd }).ask('Hello.'),
      second.conversation(`chat ${n}`, { cwd: elsewhere }).ask('Hello.'),
    ];
    const ends = await Promise.allSettled(uses);
    const [lost] = ends.filter((end) => end.status === 'rejected');
    expect(ends.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected']);
    expect(lost?.reason).toMatchObject({ code: 'refused', message: expect.stringContaining('directory') });
  }
});

test('a first prompt that is refused leaves no empty conversation behind', async () => {
  await using home = new Home();
  const tl = await home.open();
  const titled = tl.conversation('titled', { title: 'Titled', agent: 'scripted' });
  const named = tl.conversation('named', { agent: 'scripted' });
  const refused = [
    titled.ask(''),
    titled.ask('Hello.', { signal: AbortSignal.abort() }),
    named.ask(''),
    named.ask('Hello.', { limits: { turnSeconds: -1 } }),
    named.ask('Hello.', { newSession: 'chosen' }),
  ];
  for (const { status } of await Promise.allSettled(refused)) expect(status).toBe('rejected');
  expect(await tl.conversations()).toEqual([]);
  expect((await named.ask('Hello.')).turn).toMatchObject({ n: 1, agent: 'scripted' });
  expect((await named.get()).agent).toBe('scripted');
});

test('calls after close() are refused with the code "closed"', async () => {
  await using home = new Home();
  const tl = await home.open();
  const chat = tl.conversation('chat');
  await chat.ask('Hello.');
  await tl.close();
  const uses = [chat.ask('Hello.'), chat.turns(), tl.conversations(), Array.fromAsync(chat.follow())];
  const closed = { code: 'closed', message: 'Throughline is closed.' };
  await Promise.all(uses.map((use) => expect(use).rejects.toMatchObject(closed)));
});

test('close() rejects every answer whose turn has not ended, and what was said so far is in the error', async () => {
  await using home = new Home();
  const tl = await home.open();
  const chat = tl.conversation('chat');
  const running = chat.send('/say So far.\n/hang');
  for await (const _ of running.textStream) break;
  const queued = chat.send('Hello.');
  const results = [
    running.result,
    queued.result,
    Array.fromAsync(queued.textStream),
    Array.fromAsync(queued.replyStream),
  ];
  const ends = results.map((result: Promise<unknown>) => result.catch((error: unknown) => error));
  await queued.accepted;
  await tl.close({ graceMs: 0 });
  const [interrupted, ...unsent] = await Promise.all(ends);
  expect(interrupted).toMatchObject({ name: 'TurnError', reply: 'So far.' });
  for (const error of unsent) {
    expect(error).toMatchObject({
      name: 'TurnError',
      code: expect.stringMatching(/^(closed|unreachable)$/),
      turn: { n: 2 },
      hint: expect.stringMatching(/stored|runs/),
    });
  }
});

test('onPermission of a prompt takes precedence over that of the conversation, which its forks use as well', async () => {
  await using home = new Home();
  const tl = await home.open();
  const prompt = '/ask May I write?\n/tool write effects.log';
  const chat = tl.conversation('chat', { onPermission: () => 'allow' });
  expect((await chat.ask(prompt)).reply).toBe('Done.');
  expect((await chat.ask(prompt, { onPermission: () => 'reject' })).reply).toBe('Permission denied: May I write?.');
  expect((await (await chat.fork()).ask(prompt)).reply).toBe('Done.');
});
