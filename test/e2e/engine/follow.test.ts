import { copyFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { Store } from '../../../src/ports/store.ts';
import { allEvents, event, run, until } from '../support/conversations.ts';
import { Home } from '../support/home.ts';

test('a reader may begin after any number, and gets every later event once and in order', async () => {
  await using home = new Home();
  const tl = await home.open();
  await tl.engine.ensure({ key: 'chat' });
  await run(tl.engine, 'chat', 'Hello.\n/tool write out.log\n/think hm');
  const all = await allEvents(tl.engine, 'chat');
  for (let after = 0; after < all.length; after += 1) {
    const seen: unknown[] = [];
    for await (const one of tl.engine.follow('chat', { after })) {
      seen.push(one);
      if (seen.length === all.length - after) break;
    }
    expect(seen).toEqual(all.slice(after));
  }
});

test('a reader that wants to continue at a place that is not in the log is told, and does not wait', async () => {
  await using home = new Home();
  const tl = await home.open();
  await run(tl.engine, 'chat', 'Hello.');
  const { lastSeq, logId } = await tl.engine.conversation('chat');
  const first = async (options: { after: number; log?: string }) => {
    for await (const { seq } of tl.engine.follow('chat', options)) return seq;
    return null;
  };
  expect(await first({ after: lastSeq - 1, log: logId })).toBe(lastSeq);
  await expect(first({ after: lastSeq + 1 })).rejects.toMatchObject({ code: 'log_changed' });
  await expect(first({ after: 1, log: 'another' })).rejects.toMatchObject({ code: 'log_changed' });
});

test.each([
  ['taken away', () => {}, 'was deleted or moved while it was in use'],
  ['replaced', (file: string) => copyFileSync(`${file}.kept`, file), 'Another file was put in the place of'],
])('a reader that waits while the data file is %s is told, and does not wait for ever', async (_, replace, message) => {
  await using home = new Home();
  const tl = await home.open();
  await run(tl.engine, 'chat', 'Hello.');
  const { lastSeq: after } = await tl.engine.conversation('chat');
  const first = async (values: AsyncIterable<unknown>) => {
    for await (const one of values) return one;
    return null;
  };
  const readers = [tl.engine.follow('chat', { after }), tl.hints(), tl.tasks.follow()].map(first);
  const gone = { code: 'storage_gone', message: expect.stringContaining(message) };
  const told = Promise.all(readers.map((reader) => expect(reader).rejects.toMatchObject(gone)));
  renameSync(home.file, `${home.file}.kept`);
  replace(home.file);
  await told;
  // The same file is back: it can be followed again.
  renameSync(`${home.file}.kept`, home.file);
  const { turn } = await tl.engine.submit('chat', 'Again.');
  for await (const one of tl.engine.follow('chat', { after })) if (one.turnId === turn.id) break;
});

test('a command that runs the turn itself goes on when the data file is back', async () => {
  await using home = new Home();
  let reads = 0;
  const store = (of: Store): Store => ({
    ...of,
    events: (...args) => {
      reads += 1;
      return of.events(...args);
    },
  });
  const engine = await home.engine({ store }, { claims: 'own', pollMs: 100 });
  const go = join(home.path, 'go');
  const { seq } = await engine.submit('chat', `/await ${go}`);
  const ended = (async () => {
    for await (const { kind, payload } of engine.follow('chat', { after: seq }))
      if (kind === 'turn.ended') return payload;
    return null;
  })();
  await event(engine, 'chat', 'turn.sent');
  renameSync(home.file, `${home.file}.kept`);
  const before = reads;
  await until('its reader has looked again and again', () => reads > before + 2);
  renameSync(`${home.file}.kept`, home.file);
  writeFileSync(go, '');
  expect(await ended).toMatchObject({ outcome: 'completed' });
});

test('a reader in another process sees a turn as it happens, and again from wherever it was cut off', async () => {
  await using home = new Home();
  const [tl, other] = await Promise.all([home.open(), home.host()]);
  const { id } = await tl.engine.ensure({ key: 'chat' });
  const watching = other.calls.followUntil(id, 0, 'turn.update');
  const { turn } = await tl.engine.submit('chat', '/say first\n/hang');
  const seen = await watching; // the turn has not ended: this came live
  expect((await tl.engine.turn(turn.id)).state).toBe('running');
  await tl.engine.cancel(turn.id);
  const rest = await other.calls.followUntil(id, seen.at(-1)?.seq ?? 0, 'turn.ended');
  const all = await allEvents(tl.engine, 'chat');
  expect([...seen, ...rest]).toEqual(all.slice(0, seen.length + rest.length));
});

test('a reader that is stopped by its signal ends, also while it waits', async () => {
  await using home = new Home();
  const tl = await home.open();
  await tl.engine.ensure({ key: 'chat' });
  const stop = new AbortController();
  let count = 0;
  for await (const _ of tl.engine.follow('chat', { signal: stop.signal })) {
    count += 1;
    setImmediate(() => stop.abort());
  }
  expect(count).toBe(1); // conversation.created; then it waited
});

test('readers of other conversations are not woken into seeing foreign events', async () => {
  await using home = new Home();
  const tl = await home.open();
  for (const key of ['one', 'two']) await tl.engine.ensure({ key });
  await Promise.all([run(tl.engine, 'one', 'Hello.'), run(tl.engine, 'two', 'Hello.')]);
  const ids = new Set((await allEvents(tl.engine, 'one')).map(({ conversationId }) => conversationId));
  expect(ids.size).toBe(1);
});

test('a reader that has stopped reading costs no memory while megabytes go by, and misses nothing', async () => {
  await using home = new Home();
  const [tl, reader] = await Promise.all([home.open(), home.host()]);
  const { id } = await tl.engine.ensure({ key: 'chat' });
  await reader.calls.stall(id); // has taken one event and not asked for the next
  const before = await reader.calls.memory();
  const loud = Array.from({ length: 30 }, (_, i) => `/think ${i}\n/say ${'x'.repeat(100_000)}`).join('\n');
  for (let turn = 0; turn < 2; turn += 1) await run(tl.engine, 'chat', loud);
  await event(tl.engine, 'chat', 'turn.ended');
  const [{ bytes } = { bytes: 0 }] = home.query<{ bytes: number }>('SELECT sum(length(payload)) AS bytes FROM events');
  expect(bytes).toBeGreaterThan(5_000_000);
  expect((await reader.calls.memory()) - before).toBeLessThan(1_500_000);
  const { lastSeq } = await tl.engine.conversation('chat');
  expect(await reader.calls.unstall(lastSeq)).toEqual(Array.from({ length: lastSeq - 1 }, (_, i) => i + 2));
});

test('a history of large events is read to its end at once: a short page is not the last', async () => {
  await using home = new Home();
  const tl = await home.open({ pollMs: 3_600_000 });
  await tl.engine.ensure({ key: 'chat' });
  const loud = Array.from({ length: 5 }, (_, i) => `/think ${i}\n/say ${'x'.repeat(200_000 * (i + 1))}`).join('\n');
  await run(tl.engine, 'chat', loud);
  const { lastSeq } = await tl.engine.conversation('chat');
  const seqs: number[] = [];
  for await (const { seq } of tl.engine.follow('chat')) {
    seqs.push(seq);
    if (seq === lastSeq) break;
  }
  expect(seqs).toEqual(Array.from({ length: lastSeq }, (_, i) => i + 1));
});
