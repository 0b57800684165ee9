import { randomUUID } from 'node:crypto';
import { DatabaseSync } from 'node:sqlite';
import { isDeepStrictEqual } from 'node:util';
import { expect, test } from 'vitest';
import type { ThroughlineError } from '../../../src/index.ts';
import { JSON_OF_CONVERSATIONS } from '../../../src/stores/shared/rows.ts';
import { openAt } from '../../contracts/sqlite-folder.ts';
import { enqueue } from '../../contracts/store/world.ts';
import { run } from '../../e2e/support/conversations.ts';
import { Home } from '../../e2e/support/home.ts';
import { until } from '../harness/until.ts';

/** Every column of a conversation that holds JSON; each gets a conversation of its own, named after it. */
const COLUMNS = Object.entries(JSON_OF_CONVERSATIONS).flatMap(([table, names]) =>
  names.map((column) => ({ table, column, key: `${table}.${column}` })),
);

test('despite rows that are not JSON the other conversations can be listed and used, and each damaged one can be erased', async () => {
  await using home = new Home();
  const open = () => home.open({ permissions: 'deny' }, { takeUp: false });
  const before = await open();
  const prompt = 'The codeword is amber.\n/ask May I write?\n/tool edit notes.txt';
  for (const key of ['good', ...COLUMNS.map((one) => one.key), 'other']) await run(before.engine, key, prompt);
  const ids = new Map((await before.engine.list()).map(({ id, key }) => [key, id]));
  await before.close();
  // An open turn that no process runs: the one that accepted it has ended.
  const store = await openAt(home.file);
  const turns = new Map<string, string>();
  for (const { key } of COLUMNS) turns.set(key, (await enqueue(store, ids.get(key) ?? '', {}, 'local')).id);
  const change = { turn: turns.get('requeues.result') ?? '', id: randomUUID() };
  const conversation = ids.get('requeues.result') ?? '';
  await store.requeue('local', { conversation, changes: [change], requestId: 'kept', by: 'local' });
  await store.close();
  const db = new DatabaseSync(home.file);
  for (const { table, column, key } of COLUMNS) {
    const where = table === 'conversations' ? 'id = ?' : 'conv = (SELECT no FROM conversations WHERE id = ?)';
    const damage = db.prepare(`UPDATE ${table} SET ${column} = '[{' WHERE ${where}`);
    expect(damage.run(ids.get(key) ?? '').changes, key).toBeGreaterThan(0);
  }
  db.close();
  const tl = await open();
  const listed = async () => (await tl.engine.list({ limit: 100 })).map(({ key }) => key);
  const readable = COLUMNS.filter(({ table }) => table !== 'conversations').map(({ key }) => key);
  expect((await listed()).sort()).toEqual(['good', 'other', ...readable].sort());
  // In pages of one conversation: damage must not make a page empty.
  const paged = async () => {
    const keys: (string | null)[] = [];
    let [last] = await tl.engine.list({ limit: 1 });
    for (; last; [last] = await tl.engine.list({ limit: 1, before: last })) keys.push(last.key);
    return keys;
  };
  // At the same time the open turns are taken up, which changes the order.
  await until('the pages are the whole list', async () => isDeepStrictEqual(await paged(), await listed()));
  const questions = await tl.engine.permissions();
  expect(questions).toHaveLength(COLUMNS.length); // of the twenty conversations, two have a damaged one
  expect((await run(tl.engine, 'good', 'Which codewords have you seen?')).reply).toContain('amber');
  for (const { key } of COLUMNS) {
    const erase = () => tl.engine.erase(key);
    const { conversationId } = await erase().catch(async (error: ThroughlineError) => {
      // Its open turn is readable, so it must be cancelled first.
      expect(error.code, key).toBe('conflict');
      await tl.engine.cancel(turns.get(key) ?? '');
      return erase();
    });
    expect(conversationId, key).toBe(ids.get(key));
  }
  expect(await listed()).toEqual(['good', 'other']);
});
