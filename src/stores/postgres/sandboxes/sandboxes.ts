import { ThroughlineError } from '../../../core/errors.ts';
import { type Sandbox, type SandboxUse, sandboxInUse } from '../../../core/sandbox/sandbox.ts';
import type { TaskProgress } from '../../../core/tasks/task.ts';
import type { TurnFacts, WorkerInfo } from '../../../ports/store/leases.ts';
import type {
  AloneInSandbox,
  DirectoryUse,
  IdleRequest,
  NewSandbox,
  OpenedSandbox,
  SandboxChange,
  SandboxHold,
  SandboxStore,
} from '../../../ports/store/sandboxes.ts';
import type { LeaseRow } from '../../shared/ledger.ts';
import { parsed, type Row } from '../../shared/rows.ts';
import { isName } from '../conversations/conversations.ts';
import { Ledger } from '../conversations/ledger.ts';
import { unindexed } from '../plans.ts';
import type { Access, Tx } from '../server/access.ts';
import type { Sql } from '../server/connect.ts';
import { Collision, violated } from '../server/faults.ts';

/** The conversations of a sandbox. An erased one has no owner. */
const OF_SANDBOX = "FROM conversations c WHERE c.sandbox = s.id AND c.owner <> ''";
const SANDBOX = `
  SELECT s.no, s.id, s.owner, s.name, s.place, s.created_at AS "createdAt", s.opened_at AS "openedAt", s.opened_by AS "openedBy",
    greatest(s.used_at, (SELECT max(c.updated_at) ${OF_SANDBOX})) AS "usedAt", s.rested_at AS "restedAt", s.setup, s.disk,
    (SELECT count(*) ${OF_SANDBOX}) AS conversations, s.holder, s.held_until
  FROM sandboxes s`;
const BY_ID = `${SANDBOX} WHERE s.id = $1 AND ${unindexed('s.owner')} = $2`;
const OPEN_BY = `
  SELECT id, name, setup, holder, held_until FROM sandboxes
  WHERE id = $1 AND ${unindexed('owner')} = $2 AND opened_by = (SELECT id FROM workers WHERE no = $3) AND opened_at IS NOT NULL AND rested_at IS NULL`;
const BY_NAME = `${SANDBOX} WHERE s.owner = $1 AND s.name = $2`;
const LIST = `
  ${SANDBOX} WHERE s.owner = $1 AND s.no < coalesce((SELECT no FROM sandboxes WHERE id = $2 AND owner = $1), 9e18)
  ORDER BY s.no DESC LIMIT $3`;
const IDLE = `${SANDBOX} WHERE s.place = $1 AND s.opened_at IS NOT NULL AND s.no > $2 ORDER BY s.no LIMIT $3`;
const USES = `
  SELECT c.owner, c.sandbox, c.id AS conversation,
    (SELECT id FROM sessions WHERE conv = c.no ORDER BY used_seq DESC LIMIT 1) AS session
  FROM conversations c WHERE c.sandbox = $1 AND ${unindexed('c.owner')} = $2 ORDER BY c.updated_at DESC, c.id DESC LIMIT $3`;
const BELOW = `
  SELECT c.owner, c.id AS conversation, c.key, coalesce(l.pending > 0 OR (l.worker IS NOT NULL AND l.ready_at > $1), false) AS busy
  FROM conversations c LEFT JOIN leases l ON l.conv = c.no
  WHERE c.place = $2 AND c.owner <> '' AND (c.cwd = $3 OR starts_with(c.cwd, $3 || '/'))
  ORDER BY busy DESC, c.owner <> $4 DESC, c.no LIMIT 1`;
// Another owner's is left alone, and not found afterwards.
const INSERT = `
  INSERT INTO sandboxes (owner, id, name, place, created_at, used_at) VALUES ($1, $2, $3, $4, $5, $5) ON CONFLICT (id) DO NOTHING`;
const LOCK = `SELECT 1 FROM sandboxes WHERE id = $1 AND ${unindexed('owner')} = $2 FOR UPDATE`;
const NAME = 'UPDATE sandboxes SET name = $1 WHERE no = $2';
const OPEN = `
  UPDATE sandboxes SET opened_at = coalesce(opened_at, $1), used_at = $1, opened_by = $2, rested_at = NULL WHERE no = $3`;
const HOLD = 'UPDATE sandboxes SET holder = $1, held_until = $2 WHERE no = $3';
const USED = 'UPDATE sandboxes SET used_at = $1 WHERE no = $2';
const RELEASE = 'UPDATE sandboxes SET holder = NULL, held_until = NULL WHERE no = $1';
const CHANGE = 'UPDATE sandboxes SET setup = $1, disk = $2, disk_bytes = $3 WHERE no = $4';
const REST = 'UPDATE sandboxes SET rested_at = $1 WHERE no = $2';
const EMPTY = `
  UPDATE sandboxes SET opened_at = NULL, opened_by = NULL, rested_at = NULL, setup = '[]', disk = NULL, disk_bytes = 0 WHERE no = $1`;
const FORGET = 'DELETE FROM sandboxes WHERE no = $1';
const HELD = `
  SELECT 1 FROM conversations c JOIN leases l ON l.conv = c.no
  WHERE c.sandbox = $1 AND c.owner <> '' AND (l.pending > 0 OR (l.worker IS NOT NULL AND l.ready_at > $2)) LIMIT 1`;
const OPEN_TASKS = "SELECT progress FROM tasks WHERE state IN ('waiting', 'queued', 'running', 'asking')";
const ONE_OF = 'SELECT 1 FROM conversations WHERE sandbox = $1 AND id = ANY($2::text[]) LIMIT 1';
const DISK = 'SELECT count(*) AS sandboxes, coalesce(sum(disk_bytes), 0) AS bytes FROM sandboxes WHERE owner = $1';
const COPIED = `
  SELECT coalesce(sum(s.mirrored), 0) AS bytes FROM conversations c JOIN sessions s ON s.conv = c.no
  WHERE c.sandbox = $1 AND ${unindexed('c.owner')} = $2`;

/** `shared`: it uses the sandbox beside others. */
type Holder = WorkerInfo & { readonly shared?: boolean };
type SandboxRow = Row<Sandbox, 'setup', 'disk'> & {
  readonly no: number;
  readonly holder: string | null;
  readonly held_until: number | null;
};

/** The most conversations that are told of what happens to their sandbox. */
const MOST_TOLD = 100;

export function sandboxStore(access: Access): SandboxStore {
  return {
    async nameSandbox(owner, sandbox) {
      const known = await access.read((sql) => findRow(sql, owner, sandbox.id));
      if (known !== null && known.name === sandbox.name) return sandboxOf(known);
      return access.write((tx) => nameSandbox(tx, owner, sandbox));
    },
    findSandbox: access.looking(findSandbox),
    listSandboxes: access.reading(listSandboxes),
    idleSandboxes: access.reading(idleSandboxes),
    sandboxUses: (owner, id, limit) => access.read((sql) => sql.all<SandboxUse>(USES, id, owner, Math.max(0, limit))),
    worksBelow: (owner, { place, path }) =>
      access.read(async (sql) => {
        const { monotonic } = await access.times(sql);
        return (await sql.one<DirectoryUse>(BELOW, monotonic, place, path, owner)) ?? null;
      }),
    async openSandbox(owner, sandbox, worker) {
      // A process opens the same one again and again: nothing is written then.
      const known = await access.look(async (sql) =>
        opened(sql, owner, sandbox.id, worker, (await access.times(sql)).monotonic),
      );
      return known ?? access.write((tx) => openSandbox(tx, owner, sandbox, worker));
    },
    holdSandbox: access.writing(holdSandbox),
    releaseSandbox: access.writing(releaseSandbox),
    changeSandbox: access.writing(changeSandbox),
    leaveSandbox: access.writing(leaveSandbox),
    diskUse: (owner) =>
      access.read(async (sql) => (await sql.one<{ sandboxes: number; bytes: number }>(DISK, owner)) ?? NOTHING),
    copiedBytes: (owner, id) =>
      access.read(async (sql) => (await sql.one<{ bytes: number }>(COPIED, id, owner))?.bytes ?? 0),
  };
}

const NOTHING = { sandboxes: 0, bytes: 0 };

function sandboxOf({ no: _, holder, held_until, ...row }: SandboxRow): Sandbox {
  return { ...row, setup: JSON.parse(row.setup), disk: parsed(row.disk) };
}

async function findRow(sql: Sql, owner: string, id: string): Promise<SandboxRow | null> {
  return (await sql.one<SandboxRow>(BY_ID, id, owner)) ?? null;
}

async function rowOf(sql: Sql, owner: string, id: string): Promise<SandboxRow> {
  const row = await findRow(sql, owner, id);
  if (row === null) throw new ThroughlineError('not_found', 'There is no such sandbox.');
  return row;
}

/** The same, which nobody else changes until the end of the transaction. */
async function locked({ sql }: Tx, owner: string, id: string): Promise<SandboxRow> {
  sql.run(LOCK, id, owner);
  return rowOf(sql, owner, id);
}

async function findSandbox(sql: Sql, owner: string, idOrName: string): Promise<Sandbox | null> {
  if (!isName(idOrName)) return null;
  const row = (await findRow(sql, owner, idOrName)) ?? (await sql.one<SandboxRow>(BY_NAME, owner, idOrName));
  return row ? sandboxOf(row) : null;
}

async function listSandboxes(sql: Sql, owner: string, { limit, before }: { limit: number; before?: string }) {
  return (await sql.all<SandboxRow>(LIST, owner, before ?? null, Math.max(0, limit))).map(sandboxOf);
}

async function idleSandboxes(sql: Sql, { place, before, awake, limit, after = 0 }: IdleRequest) {
  const rows = await sql.all<SandboxRow>(IDLE, place, after, limit);
  const idle = rows.filter(({ usedAt, restedAt }) => usedAt < before && !(awake && restedAt !== null));
  return { sandboxes: idle.map(sandboxOf), next: rows.length < limit ? null : (rows.at(-1)?.no ?? null) };
}

async function nameSandbox(tx: Tx, owner: string, { id, name, place }: NewSandbox & { name: string }) {
  const other = await tx.sql.one<SandboxRow>(BY_NAME, owner, name);
  if (other !== undefined && other.id !== id) {
    throw new ThroughlineError('conflict', `Another sandbox is named "${name}".`, { hint: 'Choose another name.' });
  }
  const known = await findRow(tx.sql, owner, id);
  const named =
    known === null ? tx.sql.changed(INSERT, owner, id, name, place, tx.now) : tx.sql.changed(NAME, name, known.no);
  await named.catch((error: unknown) => {
    throw violated(error) === null ? error : new Collision();
  });
  return sandboxOf(await rowOf(tx.sql, owner, id));
}

async function opened(sql: Sql, owner: string, id: string, { id: worker }: WorkerInfo, now: number) {
  const row = await findRow(sql, owner, id);
  if (row === null || row.openedBy !== worker || row.openedAt === null || row.restedAt !== null) return null;
  return aloneIn(row, now, worker) === null ? { opened: 'same' as const, sandbox: sandboxOf(row) } : null;
}

/** The sandbox of a conversation whose holder has it open; null: it has not, or somebody else has it alone. */
export async function openInLease(sql: Sql, row: LeaseRow, now: number): Promise<TurnFacts['sandbox']> {
  type Row = Pick<SandboxRow, 'id' | 'name' | 'setup' | 'holder' | 'held_until'>;
  const found = await sql.one<Row>(OPEN_BY, row.sandbox, row.owner, row.worker);
  if (found === undefined || (found.holder !== null && (found.held_until ?? 0) > now)) return null;
  return { id: found.id, name: found.name, setup: JSON.parse(found.setup) };
}

async function openSandbox(
  tx: Tx,
  owner: string,
  { id, place }: NewSandbox,
  worker: WorkerInfo,
): Promise<OpenedSandbox | AloneInSandbox> {
  const { sql, now } = tx;
  sql.run(INSERT, owner, id, null, place, now);
  const row = await locked(tx, owner, id);
  const alone = aloneIn(row, tx.monotonic, worker.id);
  if (alone !== null) return alone;
  const isSame = row.openedBy === worker.id && row.restedAt === null;
  sql.run(OPEN, now, worker.id, row.no);
  return {
    opened: row.openedAt === null ? 'created' : isSame ? 'same' : 'reopened',
    sandbox: sandboxOf(await rowOf(sql, owner, id)),
  };
}

/** Null: nobody but this worker has it alone. */
function aloneIn({ holder, held_until }: SandboxRow, now: number, worker: string): AloneInSandbox | null {
  if (holder === null || (held_until ?? 0) <= now) return null;
  const { shared, ...alone }: Holder = JSON.parse(holder);
  return shared || alone.id === worker ? null : { alone };
}

async function holdSandbox(tx: Tx, owner: string, id: string, hold: SandboxHold): Promise<AloneInSandbox | null> {
  const { worker, leaseMs, unused = false, shared = false, instead } = hold;
  const row = await locked(tx, owner, id);
  const other = aloneIn(row, tx.monotonic, worker.id);
  if (other !== null && other.alone.id !== instead) return other;
  if (unused) await checkUnused(tx, row);
  const holder: Holder = shared ? { ...worker, shared } : worker;
  tx.sql.run(HOLD, JSON.stringify(holder), tx.monotonic + leaseMs, row.no);
  if (shared) tx.sql.run(USED, tx.now, row.no);
  return null;
}

async function checkUnused({ sql, monotonic }: Tx, { id, holder, held_until }: SandboxRow): Promise<void> {
  if (parsed<Holder>(holder)?.shared && (held_until ?? 0) > monotonic) throw sandboxInUse('a command runs in it');
  const tasks = await sql.all<{ progress: string }>(OPEN_TASKS);
  const inWork = tasks.flatMap(({ progress }) => (JSON.parse(progress) as TaskProgress).conversation ?? []);
  const use = (await sql.one(HELD, id, monotonic)) ?? (await sql.one(ONE_OF, id, inWork));
  if (use !== undefined) throw sandboxInUse('a conversation or a task works in it');
}

async function releaseSandbox(tx: Tx, owner: string, id: string, worker: string): Promise<void> {
  tx.sql.run(LOCK, id, owner);
  const row = await findRow(tx.sql, owner, id);
  const holder = parsed<WorkerInfo>(row?.holder ?? null);
  if (row !== null && holder?.id === worker) tx.sql.run(RELEASE, row.no);
}

async function changeSandbox(tx: Tx, owner: string, id: string, change: SandboxChange): Promise<Sandbox> {
  const row = await locked(tx, owner, id);
  const { setup, disk } = { ...sandboxOf(row), ...change };
  const bytes = disk === null ? 0 : disk.work + disk.state + disk.copies;
  tx.sql.run(CHANGE, JSON.stringify(setup), disk && JSON.stringify(disk), bytes, row.no);
  return sandboxOf(await rowOf(tx.sql, owner, id));
}

async function leaveSandbox(
  tx: Tx,
  owner: string,
  id: string,
  how: 'rested' | 'destroyed',
  reason: string,
): Promise<void> {
  const { no, name, conversations } = await locked(tx, owner, id);
  for (const { conversation } of await tx.sql.all<SandboxUse>(USES, id, owner, MOST_TOLD)) {
    const ledger = await Ledger.of(tx, owner, conversation);
    ledger.append(`sandbox.${how}`, null, { id, name, reason });
    await ledger.save();
  }
  if (how === 'rested') tx.sql.run(REST, tx.now, no);
  else tx.sql.run(conversations > 0 ? EMPTY : FORGET, no);
}
