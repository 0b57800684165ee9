import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, onTestFinished, test } from 'vitest';
import { CLOCK, temporaryFolder } from '../../../../test/contracts/sqlite-folder.ts';
import { ANN, codeOf, record, spec } from '../../../../test/contracts/store/world.ts';
import { until } from '../../../../test/faults/harness/until.ts';
import type { Store } from '../../../ports/store.ts';
import { openSqliteStore } from '../store.ts';

const TURNS = 2_000;
const SESSION = { agent: 'a', origin: 'new', parent: null, watermark: 0 } as const;
const HISTORY = {
  records: Array.from({ length: TURNS }, (_, i) =>
    record({ n: i + 1, agent: 'a', prompt: [{ type: 'text', text: `swordfish ${i}` }] } as never),
  ),
  sessions: Array.from({ length: 300 }, (_, i) => ({ ...SESSION, id: `s${i}` })),
};

class Home {
  readonly file = join(temporaryFolder(), 'store.db');
  now = 1_000_000;

  /** `ahead`: how many milliseconds its clock is ahead. */
  async open(ahead = 0): Promise<Store> {
    const clock = { ...CLOCK, now: () => this.now + ahead };
    const store = await openSqliteStore({ file: this.file, clock, boot: 'boot-1' });
    onTestFinished(() => store.close());
    return store;
  }

  /** Reads the file directly, not through the store. */
  count(sql: string): number {
    const db = new DatabaseSync(this.file, { readOnly: true });
    const { count } = db.prepare(`SELECT count(*) AS count FROM ${sql}`).get() as { count: number };
    db.close();
    return count;
  }

  get unfinished(): number {
    return this.count("facts WHERE name LIKE 'unfinished%'");
  }
}

/** Counts the other writes that were possible before the work was done. Until then, `look` finds nothing. */
async function writesBeside(store: Store, work: Promise<unknown>, look: () => Promise<unknown[]>): Promise<number> {
  let isDone = false;
  work.finally(() => {
    isDone = true;
  });
  let writes = 0;
  const writing = (async () => {
    for (; !isDone; writes += 1) await store.namePlace('here', `/home/${writes}`);
  })();
  for (;;) {
    const found = await look();
    await new Promise(setImmediate);
    if (isDone) break;
    expect(found).toEqual([]);
  }
  await writing;
  return writes;
}

test('a long conversation is imported, forked and erased in steps, and others write in between', async () => {
  const store = await new Home().open();
  const made = spec({ key: 'long' });
  const hidden = async () => [
    ...(await store.listConversations(ANN, { limit: 9 })),
    ...(await store.search(ANN, 'swordfish', 9)),
    ...(await store.findSessions(ANN, 's1')),
  ];
  await hidden(); // starts the thread that searches
  const importing = store.importConversation(ANN, made, HISTORY);
  expect(await writesBeside(store, importing, hidden)).toBeGreaterThan(3);
  expect(await importing).toMatchObject({ key: 'long', head: TURNS, historyCount: TURNS });
  expect(await store.sessions(ANN, made.id)).toHaveLength(300);

  const forking = store.fork(ANN, made.id, TURNS, spec({ key: 'copy' }));
  expect(await writesBeside(store, forking, async () => [])).toBeGreaterThan(3);
  const fork = await forking;
  expect(fork).toMatchObject({ key: 'copy', parent: { conversation: made.id, n: TURNS } });
  expect((await store.fork(ANN, made.id, TURNS, spec())).parent?.hash).toBe(fork.parent?.hash);

  const [{ id: turn = '' } = {}] = await store.turns(ANN, fork.id, { after: TURNS - 1, limit: 1 });
  const erasing = store.eraseConversation(ANN, fork.id);
  await until('it is hidden', async () => (await store.findConversation(ANN, 'copy')) === null);
  const gone = async () => [
    ...[await store.findConversation(ANN, 'copy'), await store.findTurn(ANN, turn)].filter((found) => found !== null),
    ...(await store.search(ANN, 'swordfish', 9_999)).filter((hit) => hit.conversation === fork.id),
  ];
  expect(await writesBeside(store, erasing, gone)).toBeGreaterThan(3);
});

test('a copy leaves nothing behind if its key was used by another conversation in the meantime', async () => {
  const home = new Home();
  const store = await home.open();
  const importing = codeOf(store.importConversation(ANN, spec({ key: 'long' }), HISTORY));
  await until('it is unfinished', () => home.unfinished === 1);
  const { created } = await store.ensureConversation(ANN, spec({ key: 'long' }));
  expect(created).toBe(true);
  expect(await importing).toBe('conflict');
  expect([home.unfinished, home.count('turns'), home.count('sessions'), home.count('conversations')]).toEqual([
    0, 0, 0, 1,
  ]);
});

test('an incomplete copy is removed, but not while it may still be in progress', async () => {
  const home = new Home();
  const store = await home.open();
  const importing = codeOf(store.importConversation(ANN, spec({ key: 'long' }), HISTORY));
  await until('it is unfinished', () => home.unfinished === 1);
  await store.close();
  expect(await importing).toBe('closed');
  expect(home.count('turns')).toBeGreaterThan(0);

  const next = await home.open();
  expect(await next.listConversations(ANN, { limit: 9 })).toEqual([]);
  await next.namePlace('here', '/home');
  expect(home.unfinished).toBe(1);
  await next.close();

  home.now += 3_600_000;
  const later = await home.open();
  await until('it is removed', () => home.unfinished === 0);
  expect([home.count('turns'), home.count('records'), home.count('sessions'), home.count('conversations')]).toEqual([
    0, 0, 0, 0,
  ]);
  expect(await later.importConversation(ANN, spec({ key: 'long' }), HISTORY)).toMatchObject({ head: TURNS });
});

test('a copy that another process removes as abandoned is interrupted, and leaves nothing behind', async () => {
  const home = new Home();
  const store = await home.open();
  const importing = codeOf(store.importConversation(ANN, spec({ key: 'long' }), HISTORY));
  await until('it is unfinished', () => home.unfinished === 1);
  await home.open(3_600_000);
  expect(await importing).toBe('interrupted');
  await until('it is removed', () => home.unfinished === 0);
  expect([home.count('turns'), home.count('sessions'), home.count('conversations')]).toEqual([0, 0, 0]);
});

test('an incomplete erase is finished by the next process that opens the store', async () => {
  const home = new Home();
  const store = await home.open();
  const { id } = await store.importConversation(ANN, spec({ key: 'long' }), HISTORY);
  const { head } = await store.verify(ANN, id);
  const erasing = codeOf(store.eraseConversation(ANN, id));
  await until('it is unfinished', () => home.unfinished === 1);
  await store.close();
  expect(await erasing).toBe('closed');
  expect(home.count("turns WHERE prompt LIKE '%swordfish%'")).toBeGreaterThan(0);

  const next = await home.open();
  await until('it is finished', () => home.unfinished === 0);
  expect(home.count("turns WHERE prompt LIKE '%swordfish%'")).toBe(0);
  expect(await next.verify(ANN, id, head)).toEqual({ broken: null, head, kept: true });
});
