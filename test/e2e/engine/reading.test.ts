import { randomUUIDv7 } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { TurnView } from '../../../src/ports/engine.ts';
import { event, refusedWith, run } from '../support/conversations.ts';
import { Home } from '../support/home.ts';

const keysOf = (conversations: readonly { key: string | null }[]) => conversations.map(({ key }) => key);

describe('a conversation that does not exist', () => {
  test('is not created by reading it, and is reported as not found', async () => {
    await using home = new Home();
    const tl = await home.open();
    const cwd = mkdtempSync(join(tmpdir(), 'throughline-reading-'));
    try {
      for (const options of [{}, { agent: 'scripted', title: 'Typo' }, { cwd }]) {
        const typo = tl.conversation('typo', options);
        const reads = {
          get: () => typo.get(),
          show: () => typo.show(),
          summary: () => typo.summary(),
          warm: () => typo.warm(),
          fork: () => typo.fork(),
          follow: () => typo.follow().next(),
        };
        for (const read of Object.values(reads)) {
          await refusedWith('not_found', read(), /There is no conversation "typo"/);
        }
      }
      expect(await tl.engine.list()).toEqual([]);
      const created = await tl.conversation('typo', { cwd }).ensure();
      expect(await tl.conversation('typo').get()).toEqual(created);
    } finally {
      rmSync(cwd, { recursive: true });
    }
  });

  test('is created by its first prompt, and only once if the prompt is repeated', async () => {
    await using home = new Home();
    const tl = await home.open();
    const same = () => tl.engine.submit('new', 'Hello.', { requestId: 'r-1', agent: 'scripted' });
    const all = await Promise.all([same(), same(), same(), tl.engine.submit('new', 'Hello again.')]);
    expect(new Set(all.map(({ turn }) => turn.conversationId)).size).toBe(1);
    expect(new Set(all.map(({ turn }) => turn.id)).size).toBe(2);
    expect(await same()).toMatchObject({ duplicate: true, turn: { id: all[0]?.turn.id } });
    expect(await tl.engine.list()).toMatchObject([{ key: 'new', agent: 'scripted' }]);
  });

  test('is not created by a first prompt that is refused', async () => {
    await using home = new Home({ one: {}, two: {} });
    const tl = await home.open();
    await run(tl.engine, 'other', 'Hello.', { agent: 'one', requestId: 'r-1' });
    await refusedWith('invalid', tl.engine.submit('new', 'Hello.'), /there is no default agent/);
    await refusedWith('invalid', tl.conversation('new').ask('Hello.'), /no default agent/);
    await refusedWith('agent_unavailable', tl.engine.submit('new', 'Hello.', { agent: 'three' }));
    await refusedWith('conflict', tl.engine.submit('new', 'Hello.', { agent: 'one', requestId: 'r-1' }));
    await refusedWith('invalid', tl.engine.submit('new', ' ', { agent: 'one' }));
    await refusedWith('invalid', tl.engine.submit('a\nb', 'Hello.', { agent: 'one' }), /control characters/);
    const refused = await tl.engine.submit('new', 'Hello.', { agent: 'one', create: false }).catch((error) => error);
    expect(refused).toMatchObject({ code: 'not_found', hint: expect.stringContaining('"create": false') });
    expect(refused.hint).not.toContain('creates a conversation');
    expect(keysOf(await tl.engine.list())).toEqual(['other']);
  });

  test('is not created under a key that looks like an id, unless the caller says that it is a key', async () => {
    await using home = new Home();
    const tl = await home.open();
    const { turn } = await run(tl.engine, 'chat', 'Hello.');
    await tl.engine.erase('chat');
    await refusedWith('not_found', tl.engine.submit(turn.conversationId, 'Hello.'), /no (such )?conversation/);
    const key = randomUUIDv7();
    await expect(tl.engine.submit(key, 'Hello.')).rejects.toMatchObject({
      code: 'not_found',
      hint: expect.stringMatching(/looks like an id of ours, and the conversation may have been erased/),
    });
    expect(await tl.engine.list()).toEqual([]);
    await run(tl.engine, key, 'Hello.', { create: true });
    await tl.conversation(randomUUIDv7()).ask('Hello.');
    await run(tl.engine, '...', 'A key of dots.');
    await refusedWith('invalid', tl.engine.submit('..', 'A key that no path can hold.'), /must not be "\.\."/);
    expect(await tl.engine.list()).toHaveLength(3);
    expect((await run(tl.engine, key, 'Again.')).turn.n).toBe(2);
  });
});

test('reading a conversation with other settings than its own is refused; another title is ignored', async () => {
  await using home = new Home();
  const tl = await home.open();
  await tl.conversation('chat').ensure();
  const other = tl.conversation('chat', { restore: { policy: 'auto' }, title: 'Another title' });
  await refusedWith('refused', other.show(), /another restore\.policy/);
  expect(await tl.conversation('chat', { title: 'Another title' }).get()).toMatchObject({ title: '' });
});

describe('the answer of a turn', () => {
  test('that has not ended is refused as a conflict; a caller that waits gets it at the end of the turn', async () => {
    await using home = new Home();
    const tl = await home.open();
    const { turn } = await tl.engine.submit('chat', '/say At last.\n/await go');
    await refusedWith('conflict', tl.engine.answerOf(turn.id), /has not ended: it is (queued|running)/);
    await event(tl.engine, 'chat', 'turn.sent');
    await refusedWith('conflict', tl.engine.answerOf(turn.id, { waitMs: 50 }), /has not ended: it is running/);
    await refusedWith('invalid', tl.engine.answerOf(turn.id, { waitMs: 60_001 }), /from 0 to 60000/);
    const stop = new AbortController();
    const stopped = tl.engine.answerOf(turn.id, { waitMs: 60_000, signal: stop.signal });
    stop.abort();
    await refusedWith('cancelled', stopped, /stopped waiting/);
    const waiting = tl.engine.answerOf(turn.id, { waitMs: 60_000 });
    writeFileSync(join(home.sandboxes, turn.conversationId, 'work', 'go'), '');
    expect(await waiting).toMatchObject({ reply: 'At last.', turn: { state: 'completed' }, receipt: { rung: 'new' } });
    expect(await tl.engine.answerOf(turn.id)).toEqual(await waiting);
  });

  test('that was sent to no agent has no receipt', async () => {
    await using home = new Home();
    const tl = await home.open();
    const running = await tl.engine.submit('chat', '/hang');
    const { turn } = await tl.engine.submit('chat', 'Hello.');
    await tl.engine.cancel(turn.id);
    expect(await tl.engine.answerOf(turn.id)).toMatchObject({ turn: { state: 'cancelled' }, reply: '', receipt: null });
    await tl.engine.cancel(running.turn.id);
  });
});

test('pages of turns contain the replies; pages with large replies are shorter, and no turn is missed', async () => {
  await using home = new Home();
  const tl = await home.open();
  await run(tl.engine, 'chat', '/say small');
  const exported = await tl.engine.export('chat');
  const [record] = exported.records;
  if (record === undefined) throw new Error('There is no record.');
  const large = [1, 2, 3, 4, 5].map((n) => ({
    ...record,
    n,
    parts: [{ type: 'text', text: `${n}`.repeat(3_000_000) }],
  }));
  await tl.engine.import({ ...exported, records: large }, { key: 'large' });
  const { turn } = await tl.engine.submit('large', '/hang');
  const pages: TurnView[][] = [];
  for (let after = 0; ; after = pages.at(-1)?.at(-1)?.n ?? 0) {
    const page = await tl.engine.turns('large', { after });
    if (page.length === 0) break;
    pages.push(page);
  }
  expect(pages.map((page) => page.map(({ n }) => n))).toEqual([
    [1, 2, 3],
    [4, 5, 6],
  ]);
  expect(pages.flat().map(({ reply }) => [reply.length, reply[0]])).toEqual([
    ...[1, 2, 3, 4, 5].map((n) => [3_000_000, `${n}`]),
    [0, undefined],
  ]);
  const back: TurnView[][] = [];
  for (let before: number | 'end' = 'end'; ; before = back[0]?.[0]?.n ?? 0) {
    const page = await tl.engine.turns('large', { before });
    if (page.length === 0) break;
    back.unshift(page);
  }
  expect(back.map((page) => page.map(({ n }) => n))).toEqual([
    [1, 2],
    [3, 4, 5, 6],
  ]);
  const replies = (turns: TurnView[]) => turns.map(({ id, reply }) => [id, reply]);
  expect(replies(back.flat())).toEqual(replies(pages.flat()));
  await tl.engine.cancel(turn.id);
});

test('a page of many turns ends with the one that reaches 8 MiB, in both directions', async () => {
  await using home = new Home();
  const tl = await home.open();
  await run(tl.engine, 'chat', '/say small');
  const exported = await tl.engine.export('chat');
  const [record] = exported.records;
  if (record === undefined) throw new Error('There is no record.');
  // 500 turns are read at a time.
  const size = (n: number) => (n > 500 ? 1_500_000 : 15_000);
  const records = Array.from({ length: 505 }, (_, index) => ({
    ...record,
    n: index + 1,
    parts: [{ type: 'text' as const, text: 'x'.repeat(size(index + 1)) }],
  }));
  await tl.engine.import({ ...exported, records }, { key: 'large' });
  const numbers = async (page: { after?: number; before?: 'end' }) => {
    const turns = await tl.engine.turns('large', { ...page, limit: 1_000 });
    return [turns[0]?.n, turns.at(-1)?.n];
  };
  expect(await numbers({})).toEqual([1, 501]);
  expect(await numbers({ after: 501 })).toEqual([502, 505]);
  const [first = 0, last] = await numbers({ before: 'end' });
  expect(last).toBe(505);
  expect(first).toBeGreaterThan(400);
});

test('a conversation is found by any session that it has used', async () => {
  await using home = new Home({ scripted: { ids: 'rotating' } });
  const tl = await home.open();
  const sessions = [];
  for (const prompt of ['One.', 'Two.']) sessions.push((await run(tl.engine, 'chat', prompt)).turn.sessionId ?? '');
  await run(tl.engine, 'other', 'Hello.');
  expect(new Set(sessions).size).toBe(2);
  for (const session of sessions) expect(keysOf(await tl.engine.list({ session }))).toEqual(['chat']);
  expect(await tl.engine.list({ session: 'nobody’s' })).toEqual([]);
  expect(await tl.engine.as('ann').list({ session: sessions[0] ?? '' })).toEqual([]);
});
