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

test('a reader that continues after a number that the log does not have, or in another log, is refused and does not wait', async () => {
  await using home = new Home();
  const tl = await home.open();
  await run(tl.engine, 'chat', 'Hello.');
  const { lastSeq, logId } = await tl.engine.conversation('chat');
  const firstSeq = async (options: { after: number; log?: string }) => {
    for await (const { seq } of tl.engine.follow('chat', options)) return seq;
    return null;
  };
  expect(await firstSeq({ after: lastSeq - 1, log: logId })).toBe(lastSeq);
  await expect(firstSeq({ after: lastSeq + 1 })).rejects.toMatchObject({ code: 'log_changed' });
  await expect(firstSeq({ after: 1, log: 'another' })).rejects.toMatchObject({ code: 'log_changed' });
});

test.each([
  ['moved away', () => {}, 'was deleted or moved while it was in use'],
  ['replaced', (file: string) => copyFileSync(`${file}.kept`, file), 'Another file was put in the place of'],
])(
  'a waiting reader gets an error when the data file is %s, and does not wait for ever',
  async (_, replace, message) => {
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
    const refused = Promise.all(readers.map((reader) => expect(reader).rejects.toMatchObject(gone)));
    renameSync(home.file, `${home.file}.kept`);
    replace(home.file);
    await refused;
    // When the same file is back, it can be followed again.
    renameSync(`${home.file}.kept`, home.file);
    const { turn } = await tl.engine.submit('chat', 'Again.');
    await event(tl.engine, 'chat', 'turn.ended', { after, turn: turn.id });
  },
);

test('a command that runs the turn itself continues when the data file is back', async () => {
  await using home = new Home();
  let reads = 0;
  const store = (real: Store): Store => ({
    ...real,
    events: (...args) => {
      reads += 1;
      return real.events(...args);
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
  await until('its reader has tried several times', () => reads > before + 2);
  renameSync(`${home.file}.kept`, home.file);
  writeFileSync(go, '');
  expect(await ended).toMatchObject({ outcome: 'completed' });
});

test('a reader in another process sees a turn as it happens, and can continue after the last event that it got', async () => {
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

test('a reader that waits gets no events of another conversation that runs at the same time', async () => {
  await using home = new Home();
  const tl = await home.open();
  const keys = ['one', 'two'];
  const ids = await Promise.all(keys.map(async (key) => (await tl.engine.ensure({ key })).id));
  const readUntilEnd = async (key: string) => {
    const conversations = new Set<string>();
    for await (const { kind, conversationId } of tl.engine.follow(key)) {
      conversations.add(conversationId);
      if (kind === 'turn.ended') break;
    }
    return [...conversations];
  };
  const readers = keys.map(readUntilEnd);
  await Promise.all(keys.map((key) => run(tl.engine, key, '/stream 5 5')));
  expect(await Promise.all(readers)).toEqual(ids.map((id) => [id]));
});

test('a reader that pauses needs no memory for the megabytes that are written meanwhile, and misses nothing', async () => {
  await using home = new Home();
  const [tl, reader] = await Promise.all([home.open(), home.host({ claims: 'own' })]);
  const { id } = await tl.engine.ensure({ key: 'chat' });
  await reader.calls.stall(id); // it has read one event, and does not read the next
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

test('a history of large events is read to its end without waiting, although such pages are short', async () => {
  await using home = new Home();
  const tl = await home.open({ pollMs: 3_600_000 }); // a reader that waits after a short page would not continue
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
