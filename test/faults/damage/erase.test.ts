import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import type { Throughline, ThroughlineError } from '../../../src/index.ts';
import { run } from '../../e2e/support/conversations.ts';
import { Home } from '../../e2e/support/home.ts';
import { damagePages } from './damaged-page.ts';

/** Long enough that a page has only one row of it. */
const long = (word: string) => `${word} `.repeat(Math.ceil(3_000 / (word.length + 1)));
const TITLE = 'x'.repeat(190);

/** `bad` comes first, and then enough others that most of their rows are on other pages. */
async function withConversations(home: Home): Promise<string> {
  const { engine, close } = await opened(home);
  const { id } = await engine.ensure({ key: 'bad', title: TITLE });
  for (const n of [1, 2, 3]) await run(engine, 'bad', `/say ${long(`bad-${n}`)}\n/ask May I ${long('bad-ask')}?`);
  for (let n = 0; n < 60; n += 1) await engine.ensure({ key: `more-${n}`, title: TITLE });
  for (const n of [1, 2, 3]) await run(engine, 'more-59', `/say ${long(`more-${n}`)}`);
  await close();
  return id;
}

async function opened(home: Home): Promise<{ engine: Throughline['engine']; close(): Promise<void> }> {
  const tl = await home.open({ permissions: 'deny', maxWarm: 0 }, { takeUp: false });
  return { engine: tl.engine, close: () => tl.close() };
}

/** Bytes that are only on the page of the conversation's lease. */
function chainOf(home: Home, id: string): Buffer {
  const sql = 'SELECT hex(chain) AS chain FROM leases l JOIN conversations c ON c.no = l.conv WHERE c.id = ?';
  return Buffer.from(home.query<{ chain: string }>(sql, id)[0]?.chain ?? '', 'hex');
}

/** Undefined: the row cannot be read. */
function payloadAt(home: Home, no: number): string | null | undefined {
  try {
    return home.query<{ payload: string | null }>('SELECT payload FROM events WHERE no = ?', no)[0]?.payload;
  } catch {
    return undefined;
  }
}

async function refusal(work: Promise<unknown>): Promise<Pick<ThroughlineError, 'code' | 'message' | 'hint'>> {
  return work.then(
    () => expect.unreachable('it is not refused'),
    (error: ThroughlineError) => error,
  );
}

test.each([
  ['events', 'bad-1 bad-1'],
  ['turns', 'bad-1 bad-1'],
  ['records', 'bad-1 bad-1'],
  ['permissions', 'bad-ask'],
  ['sessions', null],
])(
  'a conversation with damaged %s is erased except for the damaged part, and every try reports that',
  async (table, needle) => {
    await using home = new Home();
    const id = await withConversations(home);
    damagePages(home.file, table, needle ?? id);
    const { engine, close } = await opened(home);
    const damaged = {
      code: 'storage_damaged',
      message: expect.stringContaining('no longer shown'),
      hint: expect.stringContaining('delete this data file'),
    };
    expect(await refusal(engine.erase('bad'))).toMatchObject(damaged);
    expect(await refusal(engine.erase(id))).toMatchObject(damaged);
    expect((await engine.list({ limit: 100 })).map(({ key }) => key)).not.toContain('bad');
    // The damaged page of sessions also has those of the others.
    if (table !== 'sessions')
      expect((await run(engine, 'more-59', 'Which words have you seen?')).turn.state).toBe('completed');
    await close();
    // Its data on other pages is erased.
    const left = 'SELECT no FROM events INDEXED BY sqlite_autoindex_events_1 WHERE conv = 1';
    const payloads = home.query<{ no: number }>(left).map(({ no }) => payloadAt(home, no));
    expect(payloads.length).toBeGreaterThan(20);
    expect(payloads.filter((payload) => typeof payload === 'string')).toEqual([]);
    if (table !== 'events') expect(payloads.filter((payload) => payload !== null)).toEqual([]);
  },
);

test.each(['conversations', 'leases'])(
  'a damaged page of %s: conversations on other pages are listed, and to erase one on it is refused with what to do',
  async (table) => {
    await using home = new Home();
    const id = await withConversations(home);
    damagePages(home.file, table, table === 'leases' ? chainOf(home, id) : id);
    const { engine, close } = await opened(home);
    const listed = (await engine.list({ limit: 100 })).map(({ key }) => key);
    expect(listed).toContain('more-59');
    expect(listed).not.toContain('bad');
    // Also page by page, each once.
    const paged: (string | null)[] = [];
    let [last] = await engine.list({ limit: 1 });
    for (; last; [last] = await engine.list({ limit: 1, before: last })) paged.push(last.key);
    expect(paged).toEqual(listed);
    expect(await refusal(engine.erase('bad'))).toMatchObject({
      code: 'storage_damaged',
      message: expect.stringContaining('cannot be erased'),
      hint: expect.stringContaining('delete this data file'),
    });
    await close();
  },
);

test('a damaged page of the index of the list hides nothing', async () => {
  await using home = new Home();
  const id = await withConversations(home);
  damagePages(home.file, 'conversations_listed', id);
  const { engine, close } = await opened(home);
  const listed = (await engine.list({ limit: 100 })).map(({ key }) => key);
  expect([listed.length, listed]).toEqual([61, expect.arrayContaining(['bad', 'more-0', 'more-59'])]);
  await close();
});

test('the data can be opened although internal facts in it are not JSON', async () => {
  await using home = new Home();
  const { engine, close } = await opened(home);
  await run(engine, 'notes', 'Hello.');
  await close();
  const db = new DatabaseSync(home.file);
  db.exec("INSERT INTO facts VALUES ('', 'losses', '[{'), ('', 'unfinished:x', '[{')");
  db.close();
  const again = await opened(home);
  expect((await run(again.engine, 'notes', 'And again.')).turn.state).toBe('completed');
  await again.close();
});
