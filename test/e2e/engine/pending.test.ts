// Answers with `deliverTo`: they are listed as pending until they are delivered, whichever process dies in between.
import { expect, test } from 'vitest';
import { TurnError } from '../../../src/library/answer.ts';
import type { ThroughlineClient } from '../../../src/library/client.ts';
import { ended, event, refusedWith } from '../support/conversations.ts';
import { Home } from '../support/home.ts';

/** Where each pending answer goes. */
const deliveries = async (tl: ThroughlineClient) =>
  Promise.all((await tl.pending()).map(async ({ accepted }) => (await accepted).turn.options.deliverTo));

test('the answers that a killed bot has not posted are pending in its next process', async () => {
  await using home = new Home();
  const bot = await home.host();
  const options = { requestId: 'event-1', deliverTo: '#birds', permissions: 'deny' } as const;
  const first = await bot.engine.submit('thread', 'The codeword is osprey.', options);
  await bot.engine.answerOf(first.turn.id, { waitMs: 60_000 });
  const { seq } = await bot.engine.submit('thread', '/hang', { requestId: 'event-2', deliverTo: '#birds' });
  await bot.engine.submit('thread', 'Which codewords have you seen?', { requestId: 'event-3', deliverTo: '#birds' });
  await bot.engine.submit('thread', 'Nobody waits for this.', { requestId: 'event-4' });
  await bot.calls.followUntil('thread', seq, 'turn.sent'); // a turn that was not sent would be run by the next process
  await bot.kill();

  const tl = await home.open();
  const posted: (string | undefined)[] = [];
  for (const answer of await tl.pending()) {
    const { turn, reply, failure } = await answer.then(
      (result) => ({ ...result, failure: null }),
      (error) => (error instanceof TurnError ? { ...error, failure: error.code } : Promise.reject(error)),
    );
    posted.push(`${turn.options.deliverTo}: ${failure ?? reply}`);
    expect(await answer.delivered()).toMatchObject({ id: turn.id, delivered: true });
  }
  expect(posted).toEqual([
    '#birds: Noted: The codeword is osprey.',
    '#birds: interrupted',
    '#birds: I have seen these codewords: osprey.',
  ]);
  expect(await tl.pending()).toEqual([]);
  // The webhook is repeated: it gives the same turn, which was delivered.
  const again = tl.conversation('thread').send('The codeword is osprey.', options);
  expect(await again.accepted).toMatchObject({ duplicate: true, turn: { id: first.turn.id, delivered: true } });
  expect((await again).reply).toBe('Noted: The codeword is osprey.');
});

test('only a turn with deliverTo is pending, from its acceptance on, and only for its owner', async () => {
  await using home = new Home();
  const tl = await home.open();
  const chat = tl.conversation('chat');
  const { turn: plain } = await chat.ask('Hello.');
  expect(await deliveries(tl)).toEqual([]);
  await refusedWith('invalid', tl.engine.delivered(plain.id), /sent without "deliverTo"/);
  const hanging = chat.send('/hang', { requestId: 'r', deliverTo: 'mail:ann' });
  const same = chat.send('/hang', { requestId: 'r', deliverTo: 'mail:ann' });
  expect((await same.accepted).turn.id).toBe((await hanging.accepted).turn.id);
  await refusedWith('conflict', chat.send('/hang', { requestId: 'r', deliverTo: 'mail:bob' }).accepted);
  await refusedWith('invalid', chat.send('Hello.', { deliverTo: ' ' }).accepted, /deliverTo/);
  expect(await deliveries(tl)).toEqual(['mail:ann']);
  expect(await tl.as('bob').pending()).toEqual([]);
  await refusedWith('not_found', tl.engine.as('bob').delivered((await hanging.accepted).turn.id));
  await refusedWith('conflict', hanging.delivered(), /has not ended/);
  await chat.cancel();
  await expect(hanging).rejects.toMatchObject({ code: 'cancelled', turn: { options: { deliverTo: 'mail:ann' } } });
  expect(await deliveries(tl)).toEqual(['mail:ann']); // that it was cancelled has to be delivered as well
  await hanging.delivered();
  await same.delivered(); // repeating it changes nothing
  expect(await tl.pending()).toEqual([]);
});

test('pending turns come in pages, in the order in which all conversations accepted them', async () => {
  await using home = new Home();
  const tl = await home.open();
  for (const n of [1, 2, 3, 4, 5]) await tl.conversation(`c${n % 2}`).ask('Hello.', { deliverTo: `place ${n}` });
  expect(await deliveries(tl)).toEqual([1, 2, 3, 4, 5].map((n) => `place ${n}`));
  const [first, second] = await tl.engine.pending({ limit: 2 });
  expect(second?.turn.options.deliverTo).toBe('place 2');
  await tl.engine.delivered(second?.turn.id ?? '');
  const rest = await tl.engine.pending({ after: second?.turn.id ?? '', limit: 2 });
  expect(rest.map(({ turn }) => turn.options.deliverTo)).toEqual(['place 3', 'place 4']);
  expect((await tl.engine.pending({ limit: 1 })).map(({ turn }) => turn.id)).toEqual([first?.turn.id]);
  await refusedWith('not_found', tl.engine.pending({ after: 'nothing' }));
  await refusedWith('invalid', tl.engine.pending({ limit: 0 }));
});

test('a retry is pending as well; a fork, an import and an erased conversation have nothing pending', async () => {
  await using home = new Home();
  const tl = await home.open();
  const chat = tl.conversation('chat');
  const failed = chat.send('/fail agent_failed', { deliverTo: '#birds' });
  await expect(failed).rejects.toMatchObject({ code: 'agent_failed' });
  await failed.delivered();
  const retried = chat.retry(1);
  await expect(retried).rejects.toMatchObject({ code: 'agent_failed', turn: { retryOf: expect.any(String) } });
  expect(await deliveries(tl)).toEqual(['#birds']);
  await chat.fork({ key: 'fork' });
  await tl.import(await chat.export(), { key: 'copy' });
  expect(JSON.stringify(await chat.export())).not.toContain('#birds');
  expect(await tl.pending()).toHaveLength(1);
  const { turn } = await retried.accepted;
  await chat.erase();
  expect(await tl.pending()).toEqual([]);
  await refusedWith('not_found', retried.delivered());
  await refusedWith('not_found', tl.engine.turn(turn.id));
  expect(home.query("SELECT no FROM turns WHERE delivered IS NOT NULL OR options LIKE '%birds%'")).toEqual([]);
});

test('a pending answer whose turn still runs can be read like any other', async () => {
  await using home = new Home();
  const tl = await home.open();
  await tl.conversation('chat').send('/say Wait.\n/ask May I?\n/say Done.', { deliverTo: '#birds' }).accepted;
  const { payload } = await event(tl.engine, 'chat', 'permission.asked');
  const [answer] = await tl.pending();
  const texts = Array.fromAsync(answer?.textStream ?? []);
  await tl.answer(payload.permissionId, 'allow');
  expect((await texts).join('')).toMatch(/^Wait\..*Done\.$/s);
  expect((await answer?.result)?.turn.state).toBe('completed');
  const turn = (await answer?.accepted)?.turn ?? expect.unreachable();
  expect((await ended(tl.engine, turn)).delivered).toBeUndefined();
});

test('a question calls the onPermission of its prompt once, however often its answer is listed or sent again', async () => {
  await using home = new Home();
  const calls: string[] = [];
  const tl = await home.open({}, { onPermission: () => void calls.push('of open') });
  const onPermission = () => void calls.push('of the prompt');
  const send = () =>
    tl
      .conversation('chat')
      .send('/ask May I?\n/say Done.', { requestId: 'event-1', deliverTo: '#birds', onPermission });
  await send().accepted;
  const { payload, turnId } = await event(tl.engine, 'chat', 'permission.asked');
  await send().accepted;
  const answers = [await tl.pending(), await tl.pending()].flat();
  await tl.answer(payload.permissionId, 'allow');
  expect((await Promise.all(answers)).map(({ turn }) => turn.id)).toEqual([turnId, turnId]);
  // A webhook that is repeated after the question is over does not call it again either.
  expect(await Array.fromAsync(send().events)).toContainEqual(expect.objectContaining({ kind: 'permission.asked' }));
  await tl.conversation('chat').ask('Hello.');
  expect(calls).toEqual(['of the prompt']);
});
