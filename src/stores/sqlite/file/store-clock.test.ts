import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, onTestFinished, test } from 'vitest';
import { temporaryFolder } from '../../../../test/contracts/sqlite-folder.ts';
import {
  begun,
  claim,
  claimRequest,
  enqueue,
  newConversation,
  WORKER,
  worker,
} from '../../../../test/contracts/store/world.ts';
import { openSqliteStore } from '../store.ts';

const YEAR_MS = 365 * 86_400_000;

/** A database, and the times of the boots that open it. */
function site() {
  const file = join(temporaryFolder(), 'store.db');
  let passed = 0;
  async function open(boot: string, wall: number, uptime: number) {
    const clock = { now: () => wall + passed, monotonic: () => uptime + passed };
    const store = await openSqliteStore({ file, clock, boot });
    onTestFinished(() => store.close());
    return store;
  }
  const pass = (ms: number) => {
    passed += ms;
  };
  return { file, open, pass };
}

test('if the wall clock is years behind after a reboot, waiting turns run at once, and an old lease ends within a minute', async () => {
  const { open, pass } = site();
  const before = await open('first', 60 * YEAR_MS, 1_000);
  const held = await begun(before);
  await before.enlist({ ...WORKER, place: 'p', agents: [] });
  const waiting = await newConversation(before);
  await enqueue(before, waiting);
  await before.close();
  const after = await open('second', 0, 50);
  expect((await claim(after)).conversation.id).toBe(waiting);
  expect((await after.takers())[0]?.quietMs).toBe(0);
  pass(59_999);
  const request = claimRequest({ worker: worker('w2', 2), held: [waiting] });
  expect(await after.claim(request)).toBeNull();
  pass(1);
  expect((await after.claim(request))?.conversation.id).toBe(held.conversation);
});

test('the processes of a boot have one time, also when the wall clock was set between them', async () => {
  const { open, pass } = site();
  const first = await open('boot', YEAR_MS, 1_000);
  await begun(first);
  for (const wall of [0, 2 * YEAR_MS]) {
    const next = await open('boot', wall, 1_000);
    expect((await next.holdings('ann', 9))[0]?.leftMs).toBe(1000);
  }
  pass(1000);
  expect((await first.holdings('ann', 9))[0]?.leftMs).toBe(0);
});

test('leases of an older version have ended, and waiting turns keep their order', async () => {
  const { file, open } = site();
  const first = await open('boot', YEAR_MS, 5_000);
  const held = await begun(first);
  const [later, sooner] = [await newConversation(first), await newConversation(first)];
  for (const id of [sooner, later]) await enqueue(first, id);
  await first.enlist({ ...WORKER, place: 'p', agents: [] });
  await first.close();
  // As the older version stored it: in the monotonic time of its boot.
  const db = new DatabaseSync(file);
  const ready = db.prepare('UPDATE leases SET ready_at = ? WHERE conv = (SELECT no FROM conversations WHERE id = ?)');
  for (const [at, id] of [
    [20_000, held.conversation],
    [6_000, sooner],
    [7_000, later],
  ] as const)
    ready.run(at, id);
  db.exec(`
    UPDATE workers SET takes = json_set(takes, '$.at', 6000);
    DELETE FROM facts WHERE name GLOB 'clock:*';
    INSERT INTO facts VALUES ('', 'boot', 'boot');
    ALTER TABLE keys DROP COLUMN owners;
    DROP TRIGGER titles_added; DROP TRIGGER titles_changed; DROP TRIGGER titles_removed; DROP TABLE titles;
    DROP INDEX conversations_sandbox; DROP TABLE sandboxes; DROP TABLE sign_in_links;
    DROP INDEX conversations_listed; DROP INDEX conversations_put_away;
    CREATE INDEX conversations_listed ON conversations (owner, state, updated_at, id, last_agent);
    ALTER TABLE conversations DROP COLUMN pinned; ALTER TABLE conversations DROP COLUMN put_away;
    ALTER TABLE conversations DROP COLUMN project;
    ALTER TABLE sessions DROP COLUMN context; ALTER TABLE permissions DROP COLUMN answered_from;
    PRAGMA user_version = 24`);
  db.close();
  const next = await open('boot', YEAR_MS, 6_000);
  expect((await next.takers())[0]?.quietMs).toBeGreaterThan(180_000);
  const by = worker('w2', 2);
  const ids = [await claim(next, { worker: by }), await claim(next, { worker: by }), await claim(next, { worker: by })];
  expect(ids.map(({ conversation }) => conversation.id)).toEqual([held.conversation, sooner, later]);
});
