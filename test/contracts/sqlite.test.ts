import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { Store } from '../../src/ports/store.ts';
import { openSqliteStore } from '../../src/stores/sqlite/store.ts';
import { type Damage, type StoreSite, storeContract } from './store.contract.ts';

storeContract({ name: 'SQLite', site });

async function site(): Promise<StoreSite> {
  const folder = await mkdtemp(join(tmpdir(), 'throughline-store-'));
  const file = join(folder, 'store.db');
  const opened: Store[] = [];
  let [now, monotonic] = [Date.UTC(2026, 0, 15, 12), 5_000];
  /** Each boot counts from another moment. */
  const boots = ['boot-1', 'boot-2', 'boot-3'];
  const clockOf = (boot: string) => {
    const uptime = boots.indexOf(boot) * 777_000_000;
    return { now: () => now, monotonic: () => uptime + monotonic };
  };
  return {
    async open({ boot = 'boot-1' } = {}) {
      const store = await openSqliteStore({ file, clock: clockOf(boot), boot });
      opened.push(store);
      return store;
    },
    pass(ms) {
      now += ms;
      monotonic += ms;
    },
    jump(ms) {
      now += ms;
    },
    contents: async () => dump(file),
    damage: async (what) => damage(file, what),
    async destroy() {
      await Promise.all(opened.map((store) => store.close()));
      await rm(folder, { recursive: true });
    },
  };
}

/** Every row of every real table, except the number of commits. */
function dump(file: string): string {
  const db = new DatabaseSync(file, { readOnly: true });
  const tables = db
    .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE '%VIRTUAL%' ORDER BY 1")
    .all();
  const rows = tables.map(({ name }) => [
    name,
    db
      .prepare(`SELECT * FROM "${name}"`)
      .all()
      .filter((row) => row.name !== 'changes'),
  ]);
  db.close();
  return JSON.stringify(rows);
}

const DAMAGES: Record<Damage['kind'], string> = {
  payload: `UPDATE events SET payload = replace(payload, '{', '{"extra":1,') WHERE`,
  time: 'UPDATE events SET at = at + 1 WHERE',
  missing: 'DELETE FROM events WHERE',
  tail: 'DELETE FROM events WHERE',
};

function damage(file: string, { kind, conversation, seq }: Damage): void {
  const db = new DatabaseSync(file);
  const which = `seq ${kind === 'tail' ? '>=' : '='} ? AND conv = (SELECT no FROM conversations WHERE id = ?)`;
  db.prepare(`${DAMAGES[kind]} ${which}`).run(seq, conversation);
  db.close();
}
