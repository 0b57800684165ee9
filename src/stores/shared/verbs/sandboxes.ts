import { noSuch, ThroughlineError } from '../../../core/errors.ts';
import { type Sandbox, type SandboxUse, sandboxInUse } from '../../../core/sandbox/sandbox.ts';
import { MILESTONE_KEY, TASK_KEY } from '../../../core/tasks/task.ts';
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
import type { LeaseRow } from '../ledger.ts';
import { isName, parsed, type Row } from '../rows.ts';
import type { LedgerAccess, LedgerTx } from '../writing/ledger.ts';
import {
  act,
  all,
  Collision,
  changed,
  LIMIT,
  lock,
  one,
  orTaken,
  run,
  type Steps,
  type StepTx,
  unindexed,
} from './steps.ts';

/** The conversations of a sandbox. An erased one, or one that is being copied, has no owner. */
const OF_SANDBOX = "FROM conversations c WHERE c.sandbox = s.id AND c.owner <> ''";
const SANDBOX = `
  SELECT s.no, s.id, s.owner, s.name, s.place, s.created_at AS "createdAt", s.opened_at AS "openedAt", s.opened_by AS "openedBy",
    s.used_at AS "usedAt", (SELECT max(c.updated_at) ${OF_SANDBOX}) AS updated_at, s.rested_at AS "restedAt", s.setup, s.disk,
    (SELECT count(*) ${OF_SANDBOX}) AS conversations, s.holder, s.held_until
  FROM sandboxes s`;
const IS_IT = `id = ? AND ${unindexed('owner')} = ?`;
const BY_ID = `${SANDBOX} WHERE ${IS_IT}`;
const OPEN_BY = `
  SELECT id, name, setup, holder, held_until FROM sandboxes
  WHERE ${IS_IT} AND opened_by = (SELECT id FROM workers WHERE no = ?) AND opened_at IS NOT NULL AND rested_at IS NULL`;
const BY_NAME = `${SANDBOX} WHERE s.owner = ? AND s.name = ?`;
const LIST = `
  ${SANDBOX} WHERE s.owner = ?1 AND s.no < coalesce((SELECT no FROM sandboxes WHERE id = ?2 AND owner = ?1), 9e18)
  ORDER BY s.no DESC LIMIT CAST(?3 AS bigint)`;
const IDLE = `${SANDBOX} WHERE s.place = ? AND s.opened_at IS NOT NULL AND s.no > ? ORDER BY s.no ${LIMIT}`;
const USES = `
  SELECT c.owner, c.sandbox, c.id AS conversation,
    (SELECT id FROM sessions WHERE conv = c.no ORDER BY used_seq DESC LIMIT 1) AS session
  FROM conversations c WHERE c.sandbox = ? AND ${unindexed('c.owner')} = ? ORDER BY c.updated_at DESC, c.id DESC ${LIMIT}`;
const BELOW = `
  SELECT c.owner, c.id AS conversation, c.key, coalesce(l.pending > 0 OR (l.worker IS NOT NULL AND l.ready_at > ?1), false) AS busy
  FROM conversations c LEFT JOIN leases l ON l.conv = c.no
  WHERE c.place = ?2 AND c.owner <> '' AND (c.cwd = ?3 OR substr(c.cwd, 1, length(?3) + 1) = ?3 || '/')
  ORDER BY busy DESC, c.owner <> ?4 DESC, c.no LIMIT 1`;
// A sandbox of another owner with this id stays as it is, and is not found afterwards.
const INSERT = `
  INSERT INTO sandboxes (owner, id, name, place, created_at, used_at) VALUES (?1, ?2, ?3, ?4, ?5, ?5) ON CONFLICT (id) DO NOTHING`;
const LOCK = `SELECT 1 FROM sandboxes WHERE ${IS_IT}`;
const NAME = 'UPDATE sandboxes SET name = ? WHERE no = ?';
const OPEN = `
  UPDATE sandboxes SET opened_at = coalesce(opened_at, ?1), used_at = ?1, opened_by = ?2, rested_at = NULL WHERE no = ?3`;
const HOLD = 'UPDATE sandboxes SET holder = ?, held_until = ? WHERE no = ?';
const USED = 'UPDATE sandboxes SET used_at = ? WHERE no = ?';
const RELEASE = 'UPDATE sandboxes SET holder = NULL, held_until = NULL WHERE no = ?';
const CHANGE = 'UPDATE sandboxes SET setup = ?, disk = ?, disk_bytes = ? WHERE no = ?';
const REST = 'UPDATE sandboxes SET rested_at = ? WHERE no = ?';
const EMPTY = `
  UPDATE sandboxes SET opened_at = NULL, opened_by = NULL, rested_at = NULL, setup = '[]', disk = NULL, disk_bytes = 0 WHERE no = ?`;
const FORGET = 'DELETE FROM sandboxes WHERE no = ?';
const HELD = `
  SELECT 1 FROM conversations c JOIN leases l ON l.conv = c.no
  WHERE c.sandbox = ? AND c.owner <> '' AND (l.pending > 0 OR (l.worker IS NOT NULL AND l.ready_at > ?)) LIMIT 1`;
// The conversation of a task has the task's key, and its progress names the conversation as JSON writes it. So only these tasks are read.
const WORKS_HERE = `${unindexed('t.state')} IN ('waiting', 'queued', 'running', 'asking')
  AND t.progress LIKE '%"conversation":"' || c.id || '"%'`;
const keyIs = (start: string) => `substr(c.key, 1, ${start.length}) = '${start}'`;
const afterKey = (start: string) => `substr(c.key, ${start.length + 1})`;
const TASK = `
  SELECT 1 FROM conversations c JOIN tasks t ON t.id = ${afterKey(TASK_KEY)}
  WHERE c.sandbox = ? AND ${keyIs(TASK_KEY)} AND ${WORKS_HERE} LIMIT 1`;
const TASK_OF_MILESTONE = `
  SELECT 1 FROM conversations c JOIN tasks t ON t.owner = c.owner AND t.milestone = ${afterKey(MILESTONE_KEY)}
  WHERE c.sandbox = ? AND ${keyIs(MILESTONE_KEY)} AND ${WORKS_HERE} LIMIT 1`;
const DISK = 'SELECT count(*) AS sandboxes, coalesce(sum(disk_bytes), 0) AS bytes FROM sandboxes WHERE owner = ?';
const COPIED = `
  SELECT coalesce(sum(s.mirrored), 0) AS bytes FROM conversations c JOIN sessions s ON s.conv = c.no
  WHERE c.sandbox = ? AND ${unindexed('c.owner')} = ?`;

/** `shared`: it uses the sandbox together with others. */
type Holder = WorkerInfo & { readonly shared?: boolean };
type SandboxRow = Row<Sandbox, 'setup', 'disk'> & {
  readonly no: number;
  readonly holder: string | null;
  readonly held_until: number | null;
  /** The last change of one of its conversations. */
  readonly updated_at: number | null;
};

/** At most so many conversations get an event about the end of their sandbox. */
const MOST_TOLD = 100;

export function sandboxStore(access: LedgerAccess): SandboxStore {
  const { reading, looking, lookingAt, paging, writing, changing } = access;
  const [find, name, findOpened, open] = [
    reading(findRow),
    writing(nameSandbox),
    lookingAt(opened),
    writing(openSandbox),
  ];
  return {
    async nameSandbox(owner, sandbox) {
      const known = await find(owner, sandbox.id);
      return known !== null && known.name === sandbox.name ? sandboxOf(known) : name(owner, sandbox);
    },
    findSandbox: looking(findSandbox),
    listSandboxes: paging('listSandboxes', listSandboxes),
    idleSandboxes: reading(idleSandboxes),
    sandboxUses: reading(sandboxUses),
    worksBelow: lookingAt(worksBelow),
    // A process opens the same one again and again. Then nothing is written.
    openSandbox: async (...args) => (await findOpened(...args)) ?? open(...args),
    holdSandbox: writing(holdSandbox),
    releaseSandbox: writing(releaseSandbox),
    changeSandbox: writing(changeSandbox),
    leaveSandbox: changing(leaveSandbox),
    diskUse: reading(diskUse),
    copiedBytes: reading(copiedBytes),
  };
}

function sandboxOf({ no: _, holder, held_until, updated_at, ...row }: SandboxRow): Sandbox {
  const usedAt = Math.max(row.usedAt, updated_at ?? 0);
  return { ...row, usedAt, setup: JSON.parse(row.setup), disk: parsed(row.disk) };
}

function* findRow(owner: string, id: string): Steps<SandboxRow | null> {
  return (yield* one<SandboxRow>(BY_ID, id, owner)) ?? null;
}

function* rowOf(owner: string, id: string): Steps<SandboxRow> {
  const row = yield* findRow(owner, id);
  if (row === null) throw noSuch('sandbox', id);
  return row;
}

/** The same, locked until the end of the transaction. */
function* locked(owner: string, id: string): Steps<SandboxRow> {
  yield* lock(LOCK, id, owner);
  return yield* rowOf(owner, id);
}

function* findSandbox(owner: string, idOrName: string): Steps<Sandbox | null> {
  if (!isName(idOrName)) return null;
  const row = (yield* findRow(owner, idOrName)) ?? (yield* one<SandboxRow>(BY_NAME, owner, idOrName));
  return row ? sandboxOf(row) : null;
}

export function* listSandboxes(owner: string, { limit, before }: { limit: number; before?: string }): Steps<Sandbox[]> {
  return (yield* all<SandboxRow>(LIST, owner, before ?? null, Math.max(0, limit))).map(sandboxOf);
}

function* idleSandboxes({ place, before, awake, limit, after = 0 }: IdleRequest) {
  const rows = yield* all<SandboxRow>(IDLE, place, after, limit);
  const idle = rows.map(sandboxOf).filter(({ usedAt, restedAt }) => usedAt < before && !(awake && restedAt !== null));
  return { sandboxes: idle, next: rows.length < limit ? null : (rows.at(-1)?.no ?? null) };
}

function sandboxUses(owner: string, id: string, limit: number): Steps<SandboxUse[]> {
  return all<SandboxUse>(USES, id, owner, Math.max(0, limit));
}

function* worksBelow(monotonic: number, owner: string, { place, path }: { place: string; path: string }) {
  const use = yield* one<DirectoryUse>(BELOW, monotonic, place, path, owner);
  return use === undefined ? null : { ...use, busy: Boolean(use.busy) };
}

function* nameSandbox(tx: StepTx, owner: string, { id, name, place }: NewSandbox & { name: string }): Steps<Sandbox> {
  const other = yield* one<SandboxRow>(BY_NAME, owner, name);
  if (other !== undefined && other.id !== id) {
    throw new ThroughlineError('conflict', `Another sandbox is named "${name}".`, { hint: 'Choose another name.' });
  }
  const known = yield* findRow(owner, id);
  const named = known === null ? changed(INSERT, owner, id, name, place, tx.now) : changed(NAME, name, known.no);
  yield* orTaken(tx, named, () => new Collision());
  return sandboxOf(yield* rowOf(owner, id));
}

function* opened(
  now: number,
  owner: string,
  { id }: NewSandbox,
  { id: worker }: WorkerInfo,
): Steps<OpenedSandbox | null> {
  const row = yield* findRow(owner, id);
  if (row === null || row.openedBy !== worker || row.openedAt === null || row.restedAt !== null) return null;
  return aloneIn(row, now, worker) === null ? { opened: 'same', sandbox: sandboxOf(row) } : null;
}

/** The sandbox of a conversation, if the holder of the conversation has it open; null: the holder has not opened it, or another worker has it alone. */
export function* openInLease({ owner, sandbox, worker }: LeaseRow, now: number): Steps<TurnFacts['sandbox']> {
  type Row = Pick<SandboxRow, 'id' | 'name' | 'setup' | 'holder' | 'held_until'>;
  const row = yield* one<Row>(OPEN_BY, sandbox, owner, worker);
  if (row === undefined || (row.holder !== null && (row.held_until ?? 0) > now)) return null;
  return { id: row.id, name: row.name, setup: JSON.parse(row.setup) };
}

function* openSandbox(
  tx: StepTx,
  owner: string,
  { id, place }: NewSandbox,
  worker: WorkerInfo,
): Steps<OpenedSandbox | AloneInSandbox> {
  yield* run(INSERT, owner, id, null, place, tx.now);
  const row = yield* locked(owner, id);
  const alone = aloneIn(row, tx.monotonic, worker.id);
  if (alone !== null) return alone;
  const isSame = row.openedBy === worker.id && row.restedAt === null;
  yield* run(OPEN, tx.now, worker.id, row.no);
  return {
    opened: row.openedAt === null ? 'created' : isSame ? 'same' : 'reopened',
    sandbox: sandboxOf(yield* rowOf(owner, id)),
  };
}

/** The other worker that has the sandbox alone; null: there is none. */
function aloneIn({ holder, held_until }: SandboxRow, now: number, worker: string): AloneInSandbox | null {
  if (holder === null || (held_until ?? 0) <= now) return null;
  const { shared, ...alone }: Holder = JSON.parse(holder);
  return shared || alone.id === worker ? null : { alone };
}

function* holdSandbox(tx: StepTx, owner: string, id: string, hold: SandboxHold): Steps<AloneInSandbox | null> {
  const { worker, leaseMs, unused = false, shared = false, instead } = hold;
  const row = yield* locked(owner, id);
  const other = aloneIn(row, tx.monotonic, worker.id);
  if (other !== null && other.alone.id !== instead) return other;
  if (unused) yield* checkUnused(tx, row);
  const holder: Holder = shared ? { ...worker, shared } : worker;
  yield* run(HOLD, JSON.stringify(holder), tx.monotonic + leaseMs, row.no);
  if (shared) yield* run(USED, tx.now, row.no);
  return null;
}

function* checkUnused({ monotonic }: StepTx, { id, holder, held_until }: SandboxRow): Steps<void> {
  if (parsed<Holder>(holder)?.shared && (held_until ?? 0) > monotonic) throw sandboxInUse('a command runs in it');
  const isInWork = (yield* one(TASK, id)) !== undefined || (yield* one(TASK_OF_MILESTONE, id)) !== undefined;
  if (!isInWork && (yield* one(HELD, id, monotonic)) === undefined) return;
  throw sandboxInUse('a conversation or a task works in it');
}

function* releaseSandbox(_: StepTx, owner: string, id: string, worker: string): Steps<void> {
  yield* lock(LOCK, id, owner);
  const row = yield* findRow(owner, id);
  if (row !== null && parsed<Holder>(row.holder)?.id === worker) yield* run(RELEASE, row.no);
}

function* changeSandbox(_: StepTx, owner: string, id: string, change: SandboxChange): Steps<Sandbox> {
  const row = yield* locked(owner, id);
  const { setup, disk } = { ...sandboxOf(row), ...change };
  const bytes = disk === null ? 0 : disk.work + disk.state + disk.copies;
  yield* run(CHANGE, JSON.stringify(setup), disk && JSON.stringify(disk), bytes, row.no);
  return sandboxOf(yield* rowOf(owner, id));
}

function* leaveSandbox(
  tx: LedgerTx,
  owner: string,
  id: string,
  how: 'rested' | 'destroyed',
  reason: string,
): Steps<void> {
  const { no, name, conversations } = yield* locked(owner, id);
  for (const { conversation } of yield* sandboxUses(owner, id, MOST_TOLD)) {
    const ledger = yield* act(() => tx.ledgerOf(owner, conversation));
    ledger.append(`sandbox.${how}`, null, { id, name, reason });
    yield* act(() => ledger.save());
  }
  if (how === 'rested') yield* run(REST, tx.now, no);
  else yield* run(conversations > 0 ? EMPTY : FORGET, no);
}

function* diskUse(owner: string) {
  return (yield* one<{ sandboxes: number; bytes: number }>(DISK, owner)) ?? { sandboxes: 0, bytes: 0 };
}

function* copiedBytes(owner: string, id: string): Steps<number> {
  return (yield* one<{ bytes: number }>(COPIED, id, owner))?.bytes ?? 0;
}
