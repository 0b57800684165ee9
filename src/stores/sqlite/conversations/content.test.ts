import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { openAt, temporaryFolder } from '../../../../test/contracts/sqlite-folder.ts';
import {
  ANN,
  BOB,
  begun,
  ending,
  enqueue,
  newConversation,
  prompt,
  record,
  sending,
  spec,
} from '../../../../test/contracts/store/world.ts';

const LONG = 'long '.repeat(20_000);

test('a long string is stored once per owner, however often it is used and forked', async () => {
  const file = join(temporaryFolder(), 'store.db');
  const store = await openAt(file);
  const { conversation, turn, holder } = await begun(store);
  const told = record(turn, { parts: [{ type: 'text', text: LONG }] });
  await holder.write(sending(turn.id), ending(turn, { record: told }));
  await enqueue(store, conversation, { prompt: prompt(LONG) });
  for (let i = 0; i < 3; i += 1) await store.fork(ANN, conversation, 1, spec());
  expect(count(file, 'contents')).toBe(1);
  expect(count(file, 'content_links')).toBe(5);
  await enqueue(store, await newConversation(store, {}, BOB), { prompt: prompt(LONG) }, BOB);
  expect(count(file, 'contents')).toBe(2);
});

test('a short string is stored in the row that uses it', async () => {
  const file = join(temporaryFolder(), 'store.db');
  const store = await openAt(file);
  await enqueue(store, await newConversation(store), { prompt: prompt('x'.repeat(8000)) });
  expect(count(file, 'contents')).toBe(0);
});

function count(file: string, table: string): number {
  const db = new DatabaseSync(file, { readOnly: true });
  const { n } = db.prepare(`SELECT count(*) AS n FROM ${table}`).get() as { n: number };
  db.close();
  return n;
}
