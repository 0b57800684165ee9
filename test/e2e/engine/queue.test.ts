// Prompts that wait: edited, moved and dropped in one step, while the agent works on another one.
import { once } from 'node:events';
import { expect, test } from 'vitest';
import { TurnError } from '../../../src/library/answer.ts';
import type { ConversationHandle } from '../../../src/library/conversation.ts';
import type { Agent } from '../../../src/ports/agent.ts';
import type { Store } from '../../../src/ports/store.ts';
import {
  allEvents,
  codewordsIn,
  ended,
  event,
  expectSound,
  refusedWith,
  run,
  until,
  WHICH_CODEWORDS,
} from '../support/conversations.ts';
import { Home } from '../support/home.ts';

/** Sends a turn that runs until it is answered, and three that wait for it. */
async function waiting(chat: ConversationHandle) {
  const running = chat.send('/ask May I?\n/say first', { permissions: 'ask' });
  await running.accepted;
  const answers = ['one', 'two', 'three'].map((word) => chat.send(`/say ${word}`, { requestId: `r-${word}` }));
  const [a, b, c] = await Promise.all(answers.map(async ({ accepted }) => (await accepted).turn.id));
  return { running, answers, ids: { a: a ?? '', b: b ?? '', c: c ?? '' } };
}

test('queued prompts are edited, moved and dropped, and run as they were left', async () => {
  await using home = new Home();
  const tl = await home.open();
  const chat = tl.conversation('chat');
  const { running, answers, ids } = await waiting(chat);
  const { payload } = await event(tl.engine, 'chat', 'permission.asked');
  expect((await chat.queue()).map(({ id, state }) => [id, state])).toEqual(
    Object.values(ids).map((id) => [id, 'queued']),
  );
  expect((await chat.queue({ after: 2, limit: 1 })).map(({ n }) => n)).toEqual([3]);

  const changes = [{ turn: ids.c }, { turn: ids.a, prompt: '/say uno' }, { turn: ids.b, drop: true }];
  const result = await chat.requeue(changes, { requestId: 'change' });
  const added = result.queue[1]?.turnId ?? '';
  expect(result).toEqual({
    queue: [
      { turnId: ids.c, n: 4, replaces: null },
      { turnId: added, n: 5, replaces: ids.a },
    ],
    cancelled: [
      { turnId: ids.a, n: 2, replacedBy: added },
      { turnId: ids.b, n: 3, replacedBy: null },
    ],
    duplicate: false,
  });
  const lost = await answers[0]?.then(
    () => null,
    (error) => error,
  );
  expect(lost).toBeInstanceOf(TurnError);
  expect(lost).toMatchObject({ code: 'cancelled', turn: { replacedBy: added } });
  expect((await event(tl.engine, 'chat', 'turn.ended', { turn: ids.b })).payload).toMatchObject({ replacedBy: null });
  const { payload: accepted } = await event(tl.engine, 'chat', 'turn.queued', { turn: added });
  expect(accepted).toMatchObject({ n: 5, replaces: ids.a, requestId: null, preview: '/say uno' });

  await tl.answer(payload.permissionId, 'allow');
  await running;
  expect((await answers[2])?.reply).toBe('three');
  expect((await tl.answerOf(added, { waitMs: 60_000 })).reply).toBe('uno');
  expect((await chat.records()).map(({ n }) => n)).toEqual([1, 4, 5]);
  // After the reply was lost, or much later: the same result, and nothing happens.
  expect(await chat.requeue(changes, { requestId: 'change' })).toEqual({ ...result, duplicate: true });
  await refusedWith('conflict', chat.requeue([], { requestId: 'change' }), /already used for another request/);
  expect(await chat.queue()).toEqual([]);
  expect(await chat.requeue([])).toEqual({ queue: [], cancelled: [], duplicate: false });

  const exported = await chat.export();
  expect(exported.records.map(({ n }) => n)).toEqual([1, 4, 5]);
  const fork = await chat.fork();
  expect((await fork.turns()).map(({ replaces, replacedBy }) => [replaces, replacedBy])).toEqual(
    Array.from({ length: 3 }, () => [null, null]),
  );
  await expectSound(tl.engine, 'chat');
});

test('what has changed meanwhile is said, and what cannot be is refused; nothing is changed then', async () => {
  await using home = new Home();
  const tl = await home.open();
  const chat = tl.conversation('chat');
  const { running, ids } = await waiting(chat);
  const { turn } = await running.accepted;
  const all = [{ turn: ids.a }, { turn: ids.b }, { turn: ids.c }];
  await event(tl.engine, 'chat', 'permission.asked');
  await refusedWith('conflict', chat.requeue([{ turn: turn.id }, ...all]), /turn 1 is (running|waiting)/);
  await refusedWith('conflict', chat.requeue(all.slice(1)), /turn 2 is queued and not in the list/);
  await refusedWith('not_found', chat.requeue([...all, { turn: 'nothing' }]), /There is no turn "nothing"/);
  await refusedWith('invalid', chat.requeue([...all, { turn: ids.a }]), /twice/);
  await refusedWith('invalid', chat.requeue([{ turn: ids.a, prompt: '' }, ...all.slice(1)]), /prompt/i);
  await refusedWith('not_found', tl.conversation('nothing').requeue([]), /There is no conversation/);
  await refusedWith('not_found', tl.as('bob').conversation('chat').queue(), /There is no conversation/);
  expect((await chat.queue()).map(({ id }) => id)).toEqual(Object.values(ids));
  await chat.cancel();
  await ended(tl.engine, turn);
});

test('the answer of what took the place of a turn is the one to deliver', async () => {
  await using home = new Home();
  const tl = await home.open();
  const chat = tl.conversation('chat');
  const blocker = await chat.send('/hang').accepted;
  await event(tl.engine, 'chat', 'turn.sent'); // until then it is in the queue itself
  const first = await chat.send('/say one', { deliverTo: '#a' }).accepted;
  const { queue } = await chat.requeue([{ turn: first.turn.id, prompt: '/say uno' }]);
  const pending = await tl.pending();
  expect(await Promise.all(pending.map(async ({ accepted }) => (await accepted).turn.id))).toEqual([queue[0]?.turnId]);
  await chat.cancel(blocker.turn);
  expect((await pending[0])?.reply).toBe('uno');
  await pending[0]?.delivered();
  expect(await tl.pending()).toEqual([]);
});

test('what took the place of a turn runs at once, also when it was replaced as it began and nobody tells of that', async () => {
  await using home = new Home({ scripted: {}, slow: {} });
  const other = (await home.host()).engine;
  let isTaken = false;
  const store = (real: Store): Store => ({
    ...real,
    listen: (listener) => real.listen((moved) => isTaken || listener(moved)),
    async nextTurn(...args) {
      const next = await real.nextTurn(...args);
      if (next !== null && !isTaken) {
        isTaken = true;
        await other.requeue('chat', [{ turn: next.turn.id, prompt: 'Replaced.' }]);
      }
      return next;
    },
  });
  let opened = 0;
  const agent = (real: Agent): Agent => ({
    ...real,
    async open(request) {
      opened += 1;
      // That of the turn which was replaced.
      if (opened === 2) await once(request.signal, 'abort');
      return real.open(request);
    },
  });
  const engine = await home.engine({ store, agent }, { pollMs: 600_000, leaseMs: 600_000 });
  await engine.ensure({ key: 'chat' });
  await run(engine, 'chat', 'Hello.', { agent: 'scripted' });
  const { turn } = await engine.submit('chat', 'To be replaced.', { agent: 'slow' });
  await until('it has ended', async () => (await other.turns('chat')).at(2)?.state === 'completed');
  const events = await allEvents(engine, 'chat');
  const after = events.slice(events.findIndex(({ kind, turnId }) => kind === 'turn.ended' && turnId === turn.id) + 1);
  expect(after.filter(({ turnId }) => turnId === turn.id)).toEqual([]);
  await expectSound(engine, 'chat');
});

test.each(['cancelled', 'replaced'] as const)(
  'a turn that is %s in the moment in which it would begin is not sent, and the next one runs',
  async (how) => {
    await using home = new Home();
    const other = (await home.host()).engine;
    let taken: string | null = null;
    const store = (real: Store): Store => ({
      ...real,
      async nextTurn(...args) {
        const next = await real.nextTurn(...args);
        if (next !== null && taken === null) {
          taken = next.turn.id;
          if (how === 'cancelled') await other.cancel(taken);
          else await other.requeue('chat', [{ turn: taken, prompt: '/say Replaced.' }]);
        }
        return next;
      },
    });
    const engine = await home.engine({ store });
    await engine.ensure({ key: 'chat' });
    await run(engine, 'chat', 'The codeword is apple.');
    const { turn } = await engine.submit('chat', 'The codeword is pear.');
    await ended(engine, turn);
    expect(taken).toBe(turn.id);
    // The model is told all that was sent, and nothing else.
    expect(codewordsIn((await run(engine, 'chat', WHICH_CODEWORDS)).reply)).toEqual(['apple']);
    const turns = await engine.turns('chat');
    expect(turns.map(({ state }) => state)).toEqual(
      how === 'cancelled'
        ? ['completed', 'cancelled', 'completed']
        : ['completed', 'cancelled', 'completed', 'completed'],
    );
    expect(turns[1]).toMatchObject({ attempt: 0, sent: null, startedAt: null });
    // The session was sent nothing, and stays open.
    const rungs = (await engine.receipts('chat')).map(({ rung }) => rung);
    expect(rungs).toEqual(how === 'cancelled' ? ['new', 'live'] : ['new', 'live', 'live']);
    await expectSound(engine, 'chat');
  },
);

test.each(['set', 'reopen'] as const)(
  'the model that a turn has chosen is given back when the turn is cancelled before it begins (%s)',
  async (answer) => {
    await using home = new Home();
    const other = (await home.host()).engine;
    const chosen: (string | undefined)[] = [];
    const agent = (real: Agent): Agent => ({
      ...real,
      async open(request) {
        const opened = await real.open(request);
        if (opened.ok)
          opened.session.choose = async ({ model }) => {
            const givesBack = model === undefined && chosen.at(-1) === 'small';
            chosen.push(model);
            return givesBack ? answer : 'set';
          };
        return opened;
      },
    });
    const store = (real: Store): Store => ({
      ...real,
      async nextTurn(...args) {
        const next = await real.nextTurn(...args);
        if (next?.turn.options.model !== undefined) await other.cancel(next.turn.id);
        return next;
      },
    });
    const engine = await home.engine({ store, agent });
    await engine.ensure({ key: 'chat' });
    await run(engine, 'chat', 'The codeword is apple.');
    const { turn } = await engine.submit('chat', 'The codeword is pear.', { model: 'small' });
    await ended(engine, turn);
    await until('it was given back', () => chosen.at(-1) === undefined && chosen.includes('small'));
    expect(codewordsIn((await run(engine, 'chat', WHICH_CODEWORDS)).reply)).toEqual(['apple']);
    expect(chosen).toEqual([undefined, 'small', undefined, undefined]);
    // A session that cannot be as it was is opened again.
    const rungs = (await engine.receipts('chat')).map(({ rung }) => rung);
    expect(rungs).toEqual(['new', answer === 'set' ? 'live' : 'resume']);
    await expectSound(engine, 'chat');
  },
);
