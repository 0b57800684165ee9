import { getEventListeners } from 'node:events';
import { expect, test } from 'vitest';
import type { Answer, ConversationHandle } from '../../../src/index.ts';
import { statusOf, ThroughlineError, TurnError } from '../../../src/index.ts';
import { SubmittedAnswer } from '../../../src/library/answer.ts';
import { Answerer } from '../../../src/library/answering.ts';
import { event, until } from '../support/conversations.ts';
import { Home } from '../support/home.ts';

const RETRACTED = '/say The cap\n/retract\n/say Paris it is.';

async function chat(home: Home): Promise<ConversationHandle> {
  return (await home.open()).conversation('chat');
}

test('an answer is text as it comes, events, and when awaited the result; ask() gives the same', async () => {
  await using home = new Home();
  const c = await chat(home);
  const answer = c.send('/say One.\n/tool write effects.log\n/stream 5 1\n/usage 7 3');
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
  const asked = await c.ask('Hello.');
  expect(Object.keys(asked).sort()).toEqual(Object.keys(result).sort());
});

test('text that an agent retracts is not in the reply; whoever shows whole replies never keeps it', async () => {
  await using home = new Home();
  const c = await chat(home);
  const answer = c.send(RETRACTED);
  const [texts, replies] = await Promise.all([Array.fromAsync(answer.textStream), Array.fromAsync(answer.replyStream)]);
  expect((await answer).reply).toBe('Paris it is.');
  expect(replies.at(-1)).toBe('Paris it is.');
  expect(texts.join('')).toBe('The cap\n\nParis it is.');
  // What comes again the same is not shown twice.
  const again = await Array.fromAsync(c.send('/say The cap\n/retract\n/say The capital is Paris.').textStream);
  expect(again.join('')).toBe('The capital is Paris.');
});

test('a slow reader of whole replies gets the newest one, and none that is out of date', async () => {
  await using home = new Home();
  const c = await chat(home);
  const answer = c.send('/stream 20 60');
  const replies = answer.replyStream[Symbol.asyncIterator]();
  expect((await replies.next()).value).toMatch(/^chunk 1 /);
  const { reply } = await answer;
  expect(await replies.next()).toEqual({ done: false, value: reply });
  expect(await replies.next()).toEqual({ done: true, value: undefined });
});

test('what can be read once says so when it is read again; the result can be had as often as one likes', async () => {
  await using home = new Home();
  const answer = (await chat(home)).send('Hello.');
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

test('a turn that does not complete throws what is known of it, wherever it is awaited or its text is read', async () => {
  await using home = new Home();
  const c = await chat(home);
  const failing = '/say Beginning.\n/tool write effects.log\n/fail agent_failed';
  const known = {
    name: 'TurnError',
    code: 'agent_failed',
    message: expect.stringContaining('failed as asked'),
    turn: { state: 'failed', failure: { code: 'agent_failed' } },
    reply: 'Beginning.',
    receipt: { rung: 'live' },
    tools: [{ title: 'write' }],
    denied: [],
  };
  await c.ask('Hello.');
  const reads: ((answer: Answer) => PromiseLike<unknown>)[] = [
    (answer) => answer,
    (answer) => answer.result,
    (answer) => Array.fromAsync(answer.textStream),
    (answer) => Array.fromAsync(answer.replyStream),
  ];
  const error = await c.ask(failing).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(TurnError);
  expect(error).toBeInstanceOf(ThroughlineError);
  expect(error).toMatchObject(known);
  expect(statusOf(error)).toBe(424);
  for (const read of reads) {
    const answer = c.send(failing);
    await expect(read(answer)).rejects.toMatchObject({ name: 'TurnError', code: 'agent_failed', reply: 'Beginning.' });
  }
  const answer = c.send(failing);
  expect((await Array.fromAsync(answer.events)).at(-1)).toMatchObject({ payload: { outcome: 'failed' } });
});

test('aborting the signal cancels the turn: the error says so, and has the reply so far', async () => {
  await using home = new Home();
  const c = await chat(home);
  const stop = new AbortController();
  const answer = c.send('/stream 100000 5', { signal: stop.signal });
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
  // A signal that lives longer than its prompts keeps nothing of them.
  const long = new AbortController();
  await c.ask('Hello.', { signal: long.signal });
  expect(getEventListeners(long.signal, 'abort')).toEqual([]);
  // Before it was submitted there is no turn.
  const never = await c.ask('Hello.', { signal: AbortSignal.abort('too late') }).catch((thrown: unknown) => thrown);
  expect(never).toMatchObject({ name: 'ThroughlineError', code: 'cancelled', cause: 'too late' });
  expect(await c.turns()).toHaveLength(2);
});

test('an answer that nobody reads rejects nothing, and leaving a stream leaves the turn alone', async () => {
  await using home = new Home();
  const c = await chat(home);
  const unhandled: unknown[] = [];
  const note = (error: unknown) => unhandled.push(error);
  process.on('unhandledRejection', note);
  try {
    const { turn } = await c.send('/fail agent_failed').accepted;
    c.send('Hello.', { agent: 'nobody' }); // refused
    c.send('Hello.', { signal: AbortSignal.abort() });
    const left = c.send('/stream 5 20');
    for await (const _ of left.textStream) break;
    for await (const _ of c.send('/say Beginning.\n/fail agent_failed').replyStream) break;
    expect((await left).reply).toContain('chunk 5');
    await until('both have ended', async () => (await c.turns()).every(({ endedAt }) => endedAt !== null));
    expect((await c.turns({ limit: 1 }))[0]).toMatchObject({ id: turn.id, state: 'failed' });
    await new Promise((resolve) => setImmediate(resolve));
  } finally {
    process.off('unhandledRejection', note);
  }
  expect(unhandled).toEqual([]);
});

test('a program that dies with an unread answer loses nothing: the turn runs, and the same request gives its answer', async () => {
  await using home = new Home();
  const host = await home.host({ maxRunning: 0 });
  await host.calls.send('chat', 'The codeword is amber.', { requestId: 'r-1' });
  await host.kill();
  const c = await chat(home);
  const answer = c.send('The codeword is amber.', { requestId: 'r-1' });
  expect((await Array.fromAsync(answer.textStream)).join('')).toBe('Noted: The codeword is amber.');
  expect(await answer.accepted).toMatchObject({ duplicate: true });
  expect(await c.turns()).toHaveLength(1);
});

test('a function may leave a question to others: it stays open until somebody answers', async () => {
  await using home = new Home();
  const tl = await home.open();
  const asked: string[] = [];
  const prompt = '/ask May I write?\n/tool write effects.log';
  for (const left of [null, undefined]) {
    const c = tl.conversation('chat', {
      onPermission: async ({ title }) => {
        asked.push(title);
        return left;
      },
    });
    const answer = c.send(prompt);
    const { turn, seq } = await answer.accepted;
    const { payload } = await event(tl.engine, 'chat', 'permission.asked', { after: seq, turn: turn.id });
    await until('the function was asked', async () => asked.length > 0);
    expect(await tl.permissions({ open: true })).toMatchObject([{ id: payload.permissionId, state: 'open' }]);
    await tl.answer(payload.permissionId, 'allow');
    expect(await answer).toMatchObject({ reply: 'Done.', denied: [], tools: [{ status: 'completed' }] });
    expect(asked.splice(0)).toEqual(['May I write?']);
  }
});

test('a connection that is lost while a question is answered does not cancel the turn: the answer is brought again', async () => {
  await using home = new Home();
  const tl = await home.open();
  await tl.engine.ensure({ key: 'chat' });
  const lost: string[] = [];
  const engine = new Proxy(tl.engine, {
    get(real, name) {
      const isAsked = (name === 'permission' || name === 'answer') && !lost.includes(name);
      if (isAsked) lost.push(name);
      const away = () => Promise.reject(new ThroughlineError('unreachable', 'The server does not answer.'));
      return isAsked ? away : Reflect.get(real, name).bind?.(real);
    },
  });
  const asked: string[] = [];
  const answerer = new Answerer(engine, ({ title }) => {
    asked.push(title);
    return 'allow';
  });
  const submitted = engine.submit('chat', '/ask May I write?\n/tool write effects.log');
  expect(await new SubmittedAnswer(engine, submitted, answerer)).toMatchObject({ reply: 'Done.' });
  expect([lost, asked]).toEqual([['permission', 'answer'], ['May I write?']]);
});

test('what is given to send is checked before anything is stored', async () => {
  await using home = new Home();
  const c = await chat(home);
  const wrong = [
    [{ signal: 5 }, '"signal" must be an AbortSignal, not 5.'],
    [{ onPermission: 'allow' }, 'onPermission must be a function, not "allow".'],
    [{ agnet: 'x' }, 'send() has no option "agnet".'],
    [null, 'send() takes its options as an object, not null.'],
    ['sonnet', 'send() takes its options as an object, not "sonnet".'],
  ] as const;
  for (const [options, message] of wrong) {
    await expect(c.ask('Hello.', options as never)).rejects.toMatchObject({ code: 'invalid', message });
  }
  await expect(c.ask('')).rejects.toMatchObject({ code: 'invalid', message: 'The prompt is empty.' });
  await expect(c.turns()).rejects.toMatchObject({ code: 'not_found' });
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

test('whoever uses it after close() is told that Throughline is closed', async () => {
  await using home = new Home();
  const tl = await home.open();
  const c = tl.conversation('chat');
  await c.ask('Hello.');
  await tl.close();
  const uses = [c.ask('Hello.'), c.turns(), tl.conversations(), Array.fromAsync(c.follow())];
  const closed = { code: 'closed', message: 'Throughline is closed.' };
  await Promise.all(uses.map((use) => expect(use).rejects.toMatchObject(closed)));
});

test('whoever waits for an answer is told when Throughline is closed before its turn has ended', async () => {
  await using home = new Home();
  const tl = await home.open();
  const c = tl.conversation('chat');
  const running = c.send('/say So far.\n/hang');
  for await (const _ of running.textStream) break;
  const queued = c.send('Hello.');
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

test('who answers is named for one prompt, else for the conversation, also for its forks', async () => {
  await using home = new Home();
  const tl = await home.open();
  const prompt = '/ask May I write?\n/tool write effects.log';
  const c = tl.conversation('chat', { onPermission: () => 'allow' });
  expect((await c.ask(prompt)).reply).toBe('Done.');
  expect((await c.ask(prompt, { onPermission: () => 'reject' })).reply).toBe('Permission denied: May I write?.');
  expect((await (await c.fork()).ask(prompt)).reply).toBe('Done.');
});
