// Queued prompts are edited, moved and dropped in one step, while the agent works on another prompt.
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

/** Sends a turn that runs until its question is answered, and three that are queued behind it. */
async function sendWithQueue(chat: ConversationHandle) {
  const running = chat.send('/ask May I?\n/say first', { permissions: 'ask' });
  await running.accepted;
  const answers = ['one', 'two', 'three'].map((word) => chat.send(`/say ${word}`, { requestId: `r-${word}` }));
  const [a, b, c] = await Promise.all(answers.map(async ({ accepted }) => (await accepted).turn.id));
  return { running, answers, ids: { a: a ?? '', b: b ?? '', c: c ?? '' } };
}

test('queued prompts are edited, moved and dropped, and then run in their new order', async () => {
  await using home = new Home();
  const tl = await home.open();
  const chat = tl.conversation('chat');
  const { running, answers, ids } = await sendWithQueue(chat);
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
  const replaced = await answers[0]?.then(
    () => null,
    (error) => error,
  );
  expect(replaced).toBeInstanceOf(TurnError);
  expect(replaced).toMatchObject({ code: 'cancelled', turn: { replacedBy: added } });
  expect((await event(tl.engine, 'chat', 'turn.ended', { turn: ids.b })).payload).toMatchObject({ replacedBy: null });
  const { payload: accepted } = await event(tl.engine, 'chat', 'turn.queued', { turn: added });
  expect(accepted).toMatchObject({ n: 5, replaces: ids.a, requestId: null, preview: '/say uno' });

  await tl.answer(payload.permissionId, 'allow');
  await running;
  expect((await answers[2])?.reply).toBe('three');
  expect((await tl.answerOf(added, { waitMs: 60_000 })).reply).toBe('uno');
  expect((await chat.records()).map(({ n }) => n)).toEqual([1, 4, 5]);
  // The same request again, even much later, gives the same result and changes nothing.
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

test('a list that does not match the queue, or is not valid, is refused and changes nothing', async () => {
  await using home = new Home();
  const tl = await home.open();
  const chat = tl.conversation('chat');
  const { running, ids } = await sendWithQueue(chat);
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

test('after a turn was replaced, the answer of the new turn is pending', async () => {
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

test('a turn that replaces another one just as it begins runs at once, also if the bell is lost', async () => {
  await using home = new Home({ scripted: {}, slow: {} });
  const other = (await home.host()).engine;
  let isReplaced = false;
  const store = (real: Store): Store => ({
    ...real,
    listen: (listener) => real.listen((moved) => isReplaced || listener(moved)),
    async nextTurn(...args) {
      const next = await real.nextTurn(...args);
      if (next !== null && !isReplaced) {
        isReplaced = true;
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
      // The session for the replaced turn opens only after that turn was stopped.
      if (opened === 2) await once(request.signal, 'abort');
      return real.open(request);
    },
  });
  const engine = await home.engine({ store, agent }, { pollMs: 600_000, leaseMs: 600_000 });
  await engine.ensure({ key: 'chat' });
  await run(engine, 'chat', 'Hello.', { agent: 'scripted' });
  const { turn } = await engine.submit('chat', 'To be replaced.', { agent: 'slow' });
  await until('the new turn has completed', async () => (await other.turns('chat')).at(2)?.state === 'completed');
  const events = await allEvents(engine, 'chat');
  const after = events.slice(events.findIndex(({ kind, turnId }) => kind === 'turn.ended' && turnId === turn.id) + 1);
  expect(after.filter(({ turnId }) => turnId === turn.id)).toEqual([]);
  await expectSound(engine, 'chat');
});

test.each(['cancelled', 'replaced'] as const)(
  'a turn that is %s at the moment when it would begin is not sent, and the next one runs',
  async (how) => {
    await using home = new Home();
    const other = (await home.host()).engine;
    let changed: string | null = null;
    const store = (real: Store): Store => ({
      ...real,
      async nextTurn(...args) {
        const next = await real.nextTurn(...args);
        if (next !== null && changed === null) {
          changed = next.turn.id;
          if (how === 'cancelled') await other.cancel(changed);
          else await other.requeue('chat', [{ turn: changed, prompt: '/say Replaced.' }]);
        }
        return next;
      },
    });
    const engine = await home.engine({ store });
    await engine.ensure({ key: 'chat' });
    await run(engine, 'chat', 'The codeword is apple.');
    const { turn } = await engine.submit('chat', 'The codeword is pear.');
    await ended(engine, turn);
    expect(changed).toBe(turn.id);
    // The session has every prompt that was sent, and no other.
    expect(codewordsIn((await run(engine, 'chat', WHICH_CODEWORDS)).reply)).toEqual(['apple']);
    const turns = await engine.turns('chat');
    expect(turns.map(({ state }) => state)).toEqual(
      how === 'cancelled'
        ? ['completed', 'cancelled', 'completed']
        : ['completed', 'cancelled', 'completed', 'completed'],
    );
    expect(turns[1]).toMatchObject({ attempt: 0, sent: null, startedAt: null });
    // Nothing was sent to the session, and it stays open.
    const rungs = (await engine.receipts('chat')).map(({ rung }) => rung);
    expect(rungs).toEqual(how === 'cancelled' ? ['new', 'live'] : ['new', 'live', 'live']);
    await expectSound(engine, 'chat');
  },
);

test.each(['set', 'reopen'] as const)(
  'the model that a turn has chosen is reset when the turn is cancelled before it begins (%s)',
  async (answer) => {
    await using home = new Home();
    const other = (await home.host()).engine;
    const chosen: (string | undefined)[] = [];
    const agent = (real: Agent): Agent => ({
      ...real,
      lacks: async () => null,
      async open(request) {
        const opened = await real.open(request);
        if (opened.ok)
          opened.session.choose = async ({ model }) => {
            const resets = model === undefined && chosen.at(-1) === 'small';
            chosen.push(model);
            return resets ? answer : 'set';
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
    await until('the model was reset', () => chosen.at(-1) === undefined && chosen.includes('small'));
    expect(codewordsIn((await run(engine, 'chat', WHICH_CODEWORDS)).reply)).toEqual(['apple']);
    expect(chosen).toEqual([undefined, 'small', undefined, undefined]);
    // A session that cannot reset its model is opened again.
    const rungs = (await engine.receipts('chat')).map(({ rung }) => rung);
    expect(rungs).toEqual(['new', answer === 'set' ? 'live' : 'resume']);
    await expectSound(engine, 'chat');
  },
);
