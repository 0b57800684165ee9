import { ThroughlineError } from '../../../core/errors.ts';
import type { BackupOptions, StoreCopied } from '../../../ports/store/backup.ts';
import type { Chain, CopiedRow, CopiedValue, CopySide, CopySource, CopyTarget } from './side.ts';
import { asCopied, BEGUN, COMPLETE, halfCopied, hasMoved, SUCCESSOR, TABLES, type Table } from './tables.ts';

/*
 * Makes a store the same as another one, row by row. Both are read in the order of keys. Rows that differ are written; rows that the source
 * does not have are deleted. The same pass therefore continues a copy that was killed, and updates one that was made beside a running server.
 *
 *   empty ──begin──▶ begun (refused to everybody else) ──passes──▶ the same as the source at one moment
 *                                                          └─ nobody uses the source: verified, completed ─▶ a store of its own
 *
 * Right before it is completed, the source records the target as its successor, and is refused from then on. A process that is killed between the
 * two leaves both refused: the same copy, repeated, completes it.
 */

type Copied = Omit<StoreCopied, 'from' | 'to'>;

/** The fact of a copy that has ended: the log of its source, as in `BEGUN`. */
const ENDED = 'copied';
const FACT = "SELECT value FROM facts WHERE owner = '' AND name = ?";
const SET_FACT = "INSERT INTO facts (owner, name, value) VALUES ('', ?, ?)";
const REMOVE_FACT = "DELETE FROM facts WHERE owner = '' AND name = ?";
const CHAINS = `
  SELECT c.no, c.id, l.next_seq - 1 AS last FROM conversations c JOIN leases l ON l.conv = c.no WHERE c.no > ? ORDER BY c.no LIMIT 200`;
const COUNTS = `
  SELECT (SELECT count(*) FROM conversations WHERE owner <> '') AS conversations, (SELECT count(*) FROM turns WHERE owner <> '') AS turns,
    (SELECT coalesce(sum(next_seq - 1), 0) FROM leases) AS events`;
const PLACES = `
  SELECT c.place, coalesce(f.value, c.place) AS name, count(*) AS conversations FROM conversations c
  LEFT JOIN facts f ON f.owner = '' AND f.name = 'place:' || c.place
  WHERE c.owner <> '' AND c.driver = 'worker' AND c.place <> 'any' GROUP BY c.place, f.value ORDER BY 2`;

/**
 * `address`: of the target, which the source records as its successor. Throws `conflict` when the target has data that is not from this source, and `refused`
 * when the source was copied to another target before.
 */
export async function copyRows(
  from: CopySource,
  to: CopyTarget,
  address: string,
  options: BackupOptions,
): Promise<Copied> {
  const log = await begin(from, to);
  try {
    await pass(from, to, options);
  } catch (error) {
    // Since the last pass, a unique value moved from one row to another, and the other row was written first. That cannot happen in empty tables.
    if (!to.isTaken(error)) throw error;
    await clear(to);
    await pass(from, to, options);
  }
  const broken = from.isAlone ? await verify(from, to, options) : [];
  if (from.isAlone) await complete(from, to, { log, address });
  const [counts] = await to.all<Pick<Copied, 'conversations' | 'turns' | 'events'>>(COUNTS);
  const places = await to.all<Copied['places'][number]>(PLACES);
  return { complete: from.isAlone, ...(counts as NonNullable<typeof counts>), broken, places };
}

async function begin(from: CopySource, to: CopyTarget): Promise<string> {
  const log = (await fact(from, 'log')) ?? '';
  if ((await fact(from, BEGUN)) !== null) throw halfCopied();
  const known = await fact(to, BEGUN);
  if (known === null) {
    await checkEmpty(to, (await fact(to, ENDED)) === log);
    const successor = await fact(from, SUCCESSOR);
    if (successor !== null) throw hasMoved(successor);
    await to.write(() => to.run(SET_FACT, BEGUN, log));
  } else if (known !== log) {
    throw new ThroughlineError('conflict', 'The target holds an unfinished copy of another store.', {
      hint: 'Finish that copy, or name an empty target. Nothing was changed.',
    });
  }
  await to.begun();
  return log;
}

async function checkEmpty(to: CopyTarget, wasCopied: boolean): Promise<void> {
  for (const { name, only } of TABLES) {
    if (only !== undefined || (await to.all(`SELECT 1 FROM ${name} LIMIT 1`)).length === 0) continue;
    const message = wasCopied
      ? 'The target is a copy of this store that was finished before.'
      : 'The target has data already.';
    throw new ThroughlineError('conflict', message, {
      hint: 'Name an empty database, or a file that does not exist: two stores are never mixed. Nothing was changed.',
    });
  }
}

async function pass(from: CopySource, to: CopyTarget, { onProgress, signal }: BackupOptions): Promise<void> {
  const [{ events: total = 0 } = {}] = await from.all<{ events: number }>(COUNTS);
  let done = 0;
  const gone: (readonly [Table, CopiedRow[]])[] = [];
  for (const table of TABLES) {
    const columns = await sameColumns(from, to, table.name);
    for await (const conv of partsOf(from, to, table)) {
      gone.push([table, []]);
      for await (const { has, had } of differences(from, to, table, columns, conv)) {
        signal?.throwIfAborted();
        await to.write(() => to.put(table.name, table.key, has));
        gone.at(-1)?.[1].push(...had);
        if (conv === undefined) continue;
        done += has.length;
        onProgress?.({ step: 'copying', done: Math.min(done, total), total });
      }
    }
  }
  for (const [table, rows] of gone.reverse()) await to.write(() => remove(to, table, rows));
}

async function sameColumns(from: CopySide, to: CopySide, table: string): Promise<string[]> {
  const [has, wants] = [(await from.columns(table)).sort(), (await to.columns(table)).sort()];
  if (has.join() !== wants.join())
    throw new Error(`The table ${table} has different columns in the two stores: ${has}; ${wants}.`);
  return wants;
}

/** A table as a whole (undefined); events of each conversation that has new ones, or is being erased: nothing else changes an event. */
async function* partsOf(from: CopySource, to: CopyTarget, { name }: Table): AsyncGenerator<number | undefined> {
  if (name !== 'events') return yield undefined;
  const leases = TABLES.find((table) => table.name === 'leases') as Table;
  for await (const [has, had] of pairs(from, to, leases, await to.columns(leases.name))) {
    if (!isSame(has, had) || has?.driver === 'erased') yield (has ?? had)?.conv as number;
  }
}

interface Difference {
  readonly has: readonly CopiedRow[];
  readonly had: readonly CopiedRow[];
}

/** In pages. `has`: rows that the target lacks, or has with other values. `had`: rows that only the target has. */
async function* differences(
  from: CopySide,
  to: CopySide,
  table: Table,
  columns: readonly string[],
  conv?: number,
): AsyncGenerator<Difference> {
  let page = { has: [] as CopiedRow[], had: [] as CopiedRow[] };
  for await (const [has, had] of pairs(from, to, table, columns, conv)) {
    if (has === undefined) page.had.push(had as CopiedRow);
    else if (!isSame(has, had)) page.has.push(has);
    if (page.has.length + page.had.length < table.page) continue;
    yield page;
    page = { has: [], had: [] };
  }
  if (page.has.length + page.had.length > 0) yield page;
}

type Pair = readonly [has: CopiedRow | undefined, had: CopiedRow | undefined];

/** The rows of both sides, paired by their keys, in the order of the keys. What is written meanwhile has keys that were read already. */
async function* pairs(
  from: CopySide,
  to: CopySide,
  table: Table,
  columns: readonly string[],
  conv?: number,
): AsyncGenerator<Pair> {
  const [source, target] = [from, to].map((side) => rowsOf(side, table, columns, conv)) as [Rows, Rows];
  let [has, had] = [await nextOf(source), await nextOf(target)];
  while (has !== undefined || had !== undefined) {
    const order = has === undefined ? 1 : had === undefined ? -1 : compareKeys(table, has, had);
    yield [order > 0 ? undefined : has, order < 0 ? undefined : had];
    if (order <= 0) has = await nextOf(source);
    if (order >= 0) had = await nextOf(target);
  }
}

type Rows = AsyncGenerator<CopiedRow>;

async function nextOf(rows: Rows): Promise<CopiedRow | undefined> {
  const { value, done } = await rows.next();
  return done ? undefined : value;
}

async function* rowsOf(side: CopySide, table: Table, columns: readonly string[], conv?: number): Rows {
  const { name, key, only, page } = table;
  const after = key.length === 1 ? `${key[0]} > ?` : `(${key.join(', ')}) > (${key.map(() => '?').join(', ')})`;
  const within = [...(only === undefined ? [] : [only]), ...(conv === undefined ? [] : ['conv = ?'])];
  const values: CopiedValue[] = conv === undefined ? [] : [conv];
  for (let last: CopiedRow | undefined, rows: CopiedRow[] = []; last === undefined || rows.length === page; ) {
    const conditions = [...within, ...(last === undefined ? [] : [after])];
    const where = conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`;
    const place = last === undefined ? [] : key.map((column) => last?.[column] as CopiedValue);
    const select = `SELECT ${columns.join(', ')} FROM ${name} ${where} ORDER BY ${key.join(', ')} LIMIT ${page}`;
    rows = await side.all(select, ...values, ...place);
    for (const row of rows) yield asCopied(table, row);
    last = rows.at(-1);
    if (last === undefined) return;
  }
}

/** In the order of both databases: texts by their bytes. */
function compareKeys({ key }: Table, a: CopiedRow, b: CopiedRow): number {
  for (const column of key) {
    const [x, y] = [a[column], b[column]];
    const order = typeof x === 'number' ? x - (y as number) : Buffer.compare(bytesOf(x), bytesOf(y));
    if (order !== 0) return order;
  }
  return 0;
}

function isSame(a: CopiedRow | undefined, b: CopiedRow | undefined): boolean {
  if (a === undefined || b === undefined) return a === b;
  return Object.keys(a).every((column) => {
    const [x, y] = [a[column], b[column]];
    return x === y || (x instanceof Uint8Array && y instanceof Uint8Array && Buffer.compare(x, y) === 0);
  });
}

function bytesOf(value: CopiedValue | undefined): Uint8Array {
  return value instanceof Uint8Array ? value : Buffer.from(String(value));
}

async function remove(to: CopyTarget, { name, key }: Table, rows: readonly CopiedRow[]): Promise<void> {
  if (name === 'records') await to.forgetWords(rows.map(({ turn }) => turn as number));
  const isRow = key.map((column) => `${column} = ?`).join(' AND ');
  for (const row of rows) {
    await to.run(`DELETE FROM ${name} WHERE ${isRow}`, ...key.map((column) => row[column] as CopiedValue));
  }
}

async function clear(to: CopyTarget): Promise<void> {
  await to.write(async () => {
    const turns = await to.all<{ turn: number }>('SELECT turn FROM records');
    await to.forgetWords(turns.map(({ turn }) => turn));
    for (const { name, only } of TABLES.toReversed()) {
      await to.run(`DELETE FROM ${name}${only === undefined ? '' : ` WHERE ${only}`}`);
    }
  });
}

/** Chains that were already broken in the source. Throws when a chain is broken only in the copy. */
async function verify(from: CopySource, to: CopyTarget, { onProgress, signal }: BackupOptions) {
  const [{ conversations: total = 0 } = {}] = await to.all<{ conversations: number }>(COUNTS);
  const broken: { conversation: string; event: number }[] = [];
  let done = 0;
  for await (const chain of chainsOf(to)) {
    signal?.throwIfAborted();
    done += 1;
    onProgress?.({ step: 'checking', done: Math.min(done, total), total });
    const event = await to.firstBroken(chain);
    if (event === null) continue;
    if (event !== (await from.firstBroken(chain))) {
      throw new ThroughlineError(
        'storage_damaged',
        `The copy of conversation ${chain.id} is broken at event ${event}.`,
        {
          hint: 'The source is unchanged. Copy it to another, empty target.',
        },
      );
    }
    broken.push({ conversation: chain.id, event });
  }
  return broken;
}

async function* chainsOf(to: CopyTarget): AsyncGenerator<Chain> {
  for (let after = 0; ; ) {
    const chains = await to.all<Chain>(CHAINS, after);
    yield* chains;
    const last = chains.at(-1);
    if (last === undefined) return;
    after = last.no;
  }
}

/** `finish` may find damage: the source gets its successor after it. */
async function complete(
  from: CopySource,
  to: CopyTarget,
  { log, address }: { log: string; address: string },
): Promise<void> {
  const time = await to.time();
  await to.write(async () => {
    await to.finish();
    if ((await fact(from, SUCCESSOR)) === null) await from.run(SET_FACT, SUCCESSOR, address);
    const [ready, living] = COMPLETE;
    await to.run(ready, time, time);
    await to.run(living);
    await to.run(REMOVE_FACT, BEGUN);
    await to.run(SET_FACT, ENDED, log);
  });
}

/**
 * The store can be used again, beside the one that it was copied to. Returns the address of that one; null: it was not copied. Throws
 * `refused` when the store is itself a copy that was not finished.
 */
export async function forgetSuccessor(store: CopyTarget): Promise<string | null> {
  if ((await fact(store, BEGUN)) !== null) throw halfCopied();
  const successor = await fact(store, SUCCESSOR);
  if (successor !== null) await store.write(() => store.run(REMOVE_FACT, SUCCESSOR));
  return successor;
}

async function fact(side: CopySide, name: string): Promise<string | null> {
  return (await side.all<{ value: string }>(FACT, name))[0]?.value ?? null;
}
