import { ThroughlineError } from '../../../core/errors.ts';
import { type Sandbox, type SandboxUse, sandboxInUse } from '../../../core/sandbox/sandbox.ts';
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
import { Ledger } from '../conversations/ledger.ts';
import type { Access } from '../file/access.ts';
import type { Database } from '../file/database.ts';
import type { Tx } from '../file/write-queue.ts';

/** The conversations of a sandbox. An erased one, or one that is being copied, has no owner. */
const OF_SANDBOX = "FROM conversations c WHERE c.sandbox = s.id AND c.owner <> ''";
const SANDBOX = `
  SELECT s.no, s.id, s.owner, s.name, s.place, s.created_at AS createdAt, s.opened_at AS openedAt, s.opened_by AS openedBy,
    max(s.used_at, coalesce((SELECT max(c.updated_at) ${OF_SANDBOX}), 0)) AS usedAt, s.rested_at AS restedAt, s.setup, s.disk,
    (SELECT count(*) ${OF_SANDBOX}) AS conversations, s.holder, s.held_until
  FROM sandboxes s`;
const BY_ID = `${SANDBOX} WHERE s.id = ? AND s.owner = ?`;
const OPEN_BY = `
  SELECT id, name, setup, holder, held_until FROM sandboxes
  WHERE id = ? AND owner = ? AND opened_by = (SELECT id FROM workers WHERE no = ?) AND opened_at IS NOT NULL AND rested_at IS NULL`;
const BY_NAME = `${SANDBOX} WHERE s.owner = ? AND s.name = ?`;
const LIST = `
  ${SANDBOX} WHERE s.owner = ?1 AND s.no < coalesce((SELECT no FROM sandboxes WHERE id = ?2 AND owner = ?1), 9e18)
  ORDER BY s.no DESC LIMIT ?3`;
const IDLE = `${SANDBOX} WHERE s.place = ? AND s.opened_at IS NOT NULL AND s.no > ? ORDER BY s.no LIMIT ?`;
const USES = `
  SELECT c.owner, c.sandbox, c.id AS conversation,
    (SELECT id FROM sessions WHERE conv = c.no ORDER BY used_seq DESC LIMIT 1) AS session
  FROM conversations c WHERE c.sandbox = ? AND c.owner = ? ORDER BY c.updated_at DESC, c.id DESC LIMIT ?`;
const BELOW = `
  SELECT c.owner, c.id AS conversation, c.key, coalesce(l.pending > 0 OR (l.worker IS NOT NULL AND l.ready_at > ?1), 0) AS busy
  FROM conversations c LEFT JOIN leases l ON l.conv = c.no
  WHERE c.place = ?2 AND c.owner <> '' AND (c.cwd = ?3 OR substr(c.cwd, 1, length(?3) + 1) = ?3 || '/')
  ORDER BY busy DESC, c.owner <> ?4 DESC, c.no LIMIT 1`;
// Another owner's is left alone, and not found afterwards.
const INSERT =
  'INSERT OR IGNORE INTO sandboxes (owner, id, name, place, created_at, used_at) VALUES (?, ?, ?, ?, ?, ?)';
const NAME = 'UPDATE sandboxes SET name = ? WHERE no = ?';
const OPEN = `
  UPDATE sandboxes SET opened_at = coalesce(opened_at, ?1), used_at = ?1, opened_by = ?2, rested_at = NULL WHERE no = ?3`;
const HOLD = 'UPDATE sandboxes SET holder = ?, held_until = ? WHERE no = ?';
const USED = 'UPDATE sandboxes SET used_at = ? WHERE no = ?';
const RELEASE = `
  UPDATE sandboxes SET holder = NULL, held_until = NULL WHERE id = ? AND owner = ? AND holder ->> '$.id' = ?`;
const CHANGE = 'UPDATE sandboxes SET setup = ?, disk = ?, disk_bytes = ? WHERE no = ?';
const REST = 'UPDATE sandboxes SET rested_at = ? WHERE no = ?';
const EMPTY = `
  UPDATE sandboxes SET opened_at = NULL, opened_by = NULL, rested_at = NULL, setup = '[]', disk = NULL, disk_bytes = 0 WHERE no = ?`;
const FORGET = 'DELETE FROM sandboxes WHERE no = ?';
const HELD = `
  SELECT 1 FROM conversations c JOIN leases l ON l.conv = c.no
  WHERE c.sandbox = ? AND c.owner <> '' AND (l.pending > 0 OR (l.worker IS NOT NULL AND l.ready_at > ?)) LIMIT 1`;
const TASKS = `
  SELECT 1 FROM tasks t JOIN conversations c ON c.id = json_extract(t.progress, '$.conversation')
  WHERE t.state IN ('waiting', 'queued', 'running', 'asking') AND c.sandbox = ? LIMIT 1`;
const DISK = 'SELECT count(*) AS sandboxes, coalesce(sum(disk_bytes), 0) AS bytes FROM sandboxes WHERE owner = ?';
const COPIED = `
  SELECT coalesce(sum(s.mirrored), 0) AS bytes FROM conversations c JOIN sessions s ON s.conv = c.no
  WHERE c.sandbox = ? AND c.owner = ?`;

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
      const known = await access.read((db) => findRow(db, owner, sandbox.id));
      if (known !== null && known.name === sandbox.name) return sandboxOf(known);
      return access.write((tx) => nameSandbox(tx, owner, sandbox));
    },
    findSandbox: access.reading(findSandbox),
    listSandboxes: access.paging('listSandboxes', listSandboxes),
    idleSandboxes: access.reading(idleSandboxes),
    sandboxUses: access.reading((db, owner: string, id: string, limit: number) =>
      db.all<SandboxUse>(USES, id, owner, limit),
    ),
    worksBelow: access.reading((db, owner: string, { place, path }: { place: string; path: string }) => {
      const use = db.one<Omit<DirectoryUse, 'busy'> & { busy: number }>(
        BELOW,
        access.clock.monotonic(),
        place,
        path,
        owner,
      );
      return use === undefined ? null : { ...use, busy: use.busy === 1 };
    }),
    async openSandbox(owner, sandbox, worker) {
      // A process opens the same one again and again: nothing is written then.
      const known = await access.read((db) => opened(db, owner, sandbox.id, worker, access.clock.monotonic()));
      return known ?? access.write((tx) => openSandbox(tx, owner, sandbox, worker));
    },
    holdSandbox: access.writing(holdSandbox),
    releaseSandbox: access.writing((tx, owner: string, id: string, worker: string) => {
      tx.db.run(RELEASE, id, owner, worker);
    }),
    changeSandbox: access.writing(changeSandbox),
    leaveSandbox: access.writing(leaveSandbox),
    diskUse: access.reading(
      (db, owner: string) =>
        db.one<{ sandboxes: number; bytes: number }>(DISK, owner) as { sandboxes: number; bytes: number },
    ),
    copiedBytes: access.reading(
      (db, owner: string, id: string) => db.one<{ bytes: number }>(COPIED, id, owner)?.bytes ?? 0,
    ),
  };
}

function sandboxOf({ no: _, holder, held_until, ...row }: SandboxRow): Sandbox {
  return { ...row, setup: JSON.parse(row.setup), disk: parsed(row.disk) };
}

function findRow(db: Database, owner: string, id: string): SandboxRow | null {
  return db.one<SandboxRow>(BY_ID, id, owner) ?? null;
}

function rowOf(db: Database, owner: string, id: string): SandboxRow {
  const row = findRow(db, owner, id);
  if (row === null) throw new ThroughlineError('not_found', 'There is no such sandbox.');
  return row;
}

function findSandbox(db: Database, owner: string, idOrName: string): Sandbox | null {
  if (!idOrName.isWellFormed()) return null;
  const row = findRow(db, owner, idOrName) ?? db.one<SandboxRow>(BY_NAME, owner, idOrName);
  return row ? sandboxOf(row) : null;
}

export function listSandboxes(
  db: Database,
  owner: string,
  { limit, before }: { limit: number; before?: string },
): Sandbox[] {
  return db.all<SandboxRow>(LIST, owner, before ?? null, limit).map(sandboxOf);
}

function idleSandboxes(db: Database, { place, before, awake, limit, after = 0 }: IdleRequest) {
  const rows = db.all<SandboxRow>(IDLE, place, after, limit);
  const idle = rows.filter(({ usedAt, restedAt }) => usedAt < before && !(awake && restedAt !== null));
  return { sandboxes: idle.map(sandboxOf), next: rows.length < limit ? null : (rows.at(-1)?.no ?? null) };
}

function nameSandbox(tx: Tx, owner: string, { id, name, place }: NewSandbox & { name: string }): Sandbox {
  const other = tx.db.one<SandboxRow>(BY_NAME, owner, name);
  if (other !== undefined && other.id !== id) {
    throw new ThroughlineError('conflict', `Another sandbox is named "${name}".`, { hint: 'Choose another name.' });
  }
  const known = findRow(tx.db, owner, id);
  if (known === null) tx.db.run(INSERT, owner, id, name, place, tx.now, tx.now);
  else tx.db.run(NAME, name, known.no);
  return sandboxOf(rowOf(tx.db, owner, id));
}

function opened(db: Database, owner: string, id: string, { id: worker }: WorkerInfo, now: number) {
  const row = findRow(db, owner, id);
  if (row === null || row.openedBy !== worker || row.openedAt === null || row.restedAt !== null) return null;
  return aloneIn(row, now, worker) === null ? { opened: 'same' as const, sandbox: sandboxOf(row) } : null;
}

/** The sandbox of a conversation whose holder has it open; null: it has not, or somebody else has it alone. */
export function openInLease(db: Database, { owner, sandbox, worker }: LeaseRow, now: number): TurnFacts['sandbox'] {
  type Row = Pick<SandboxRow, 'id' | 'name' | 'setup' | 'holder' | 'held_until'>;
  const row = db.one<Row>(OPEN_BY, sandbox, owner, worker);
  if (row === undefined || (row.holder !== null && (row.held_until ?? 0) > now)) return null;
  return { id: row.id, name: row.name, setup: JSON.parse(row.setup) };
}

function openSandbox(
  tx: Tx,
  owner: string,
  { id, place }: NewSandbox,
  worker: WorkerInfo,
): OpenedSandbox | AloneInSandbox {
  const { db, now } = tx;
  if (findRow(db, owner, id) === null) db.run(INSERT, owner, id, null, place, now, now);
  const row = rowOf(db, owner, id);
  const alone = aloneIn(row, tx.monotonic, worker.id);
  if (alone !== null) return alone;
  const isSame = row.openedBy === worker.id && row.restedAt === null;
  db.run(OPEN, now, worker.id, row.no);
  return {
    opened: row.openedAt === null ? 'created' : isSame ? 'same' : 'reopened',
    sandbox: sandboxOf(rowOf(db, owner, id)),
  };
}

/** Null: nobody but this worker has it alone. */
function aloneIn({ holder, held_until }: SandboxRow, now: number, worker: string): AloneInSandbox | null {
  if (holder === null || (held_until ?? 0) <= now) return null;
  const { shared, ...alone }: Holder = JSON.parse(holder);
  return shared || alone.id === worker ? null : { alone };
}

function holdSandbox(
  tx: Tx,
  owner: string,
  id: string,
  { worker, leaseMs, unused = false, shared = false, instead }: SandboxHold,
): AloneInSandbox | null {
  const row = rowOf(tx.db, owner, id);
  const other = aloneIn(row, tx.monotonic, worker.id);
  if (other !== null && other.alone.id !== instead) return other;
  if (unused) checkUnused(tx, row);
  const holder: Holder = shared ? { ...worker, shared } : worker;
  tx.db.run(HOLD, JSON.stringify(holder), tx.monotonic + leaseMs, row.no);
  if (shared) tx.db.run(USED, tx.now, row.no);
  return null;
}

function checkUnused(tx: Tx, { id, holder, held_until }: SandboxRow): void {
  if (parsed<Holder>(holder)?.shared && (held_until ?? 0) > tx.monotonic) throw sandboxInUse('a command runs in it');
  if (tx.db.one(HELD, id, tx.monotonic) === undefined && tx.db.one(TASKS, id) === undefined) return;
  throw sandboxInUse('a conversation or a task works in it');
}

function changeSandbox(tx: Tx, owner: string, id: string, change: SandboxChange): Sandbox {
  const row = rowOf(tx.db, owner, id);
  const { setup, disk } = { ...sandboxOf(row), ...change };
  const bytes = disk === null ? 0 : disk.work + disk.state + disk.copies;
  tx.db.run(CHANGE, JSON.stringify(setup), disk && JSON.stringify(disk), bytes, row.no);
  return sandboxOf(rowOf(tx.db, owner, id));
}

function leaveSandbox(tx: Tx, owner: string, id: string, how: 'rested' | 'destroyed', reason: string): void {
  const { no, name, conversations } = rowOf(tx.db, owner, id);
  for (const { conversation } of tx.db.all<SandboxUse>(USES, id, owner, MOST_TOLD)) {
    const ledger = Ledger.of(tx, owner, conversation);
    ledger.append(`sandbox.${how}`, null, { id, name, reason });
    ledger.save();
  }
  if (how === 'rested') tx.db.run(REST, tx.now, no);
  else tx.db.run(conversations > 0 ? EMPTY : FORGET, no);
}
