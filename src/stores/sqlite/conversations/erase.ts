import { isDamage } from '../../../core/errors.ts';
import type { EraseStored, Erasure, ToErase } from '../../../ports/store/conversations.ts';
import { checkEndsWith, hasOpenTurns, noConversation } from '../../shared/ledger.ts';
import * as shared from '../../shared/verbs/erase.ts';
import { eraseTasks } from '../../shared/verbs/task-changes.ts';
import type { Access } from '../file/access.ts';
import type { Tx } from '../file/write-queue.ts';
import { isStuckByDamage } from '../reading/inspect.ts';
import { carryOut, writer } from '../steps.ts';
import { dropIdleWorker } from '../turns/leases.ts';
import { Ledger } from './ledger.ts';
import { forget, isErasedInPart, keptByDamage, markUnfinished } from './unfinished.ts';

/** Each takes the conversation's number. From then on nobody finds it. */
const HIDE = [
  'DELETE FROM totals WHERE conv = ?',
  `UPDATE conversations SET owner = '', key = NULL, title = '', agent = NULL, last_agent = NULL, cwd = NULL, project = NULL, pinned = 0, put_away = 0, restore = '{}', parent = NULL
     WHERE no = ?`,
  // No driver claims it, and its holder has lost the lease.
  `UPDATE leases SET owner = '', driver = 'erased', epoch = epoch + 1, pending = 0, worker = NULL, ready_at = NULL WHERE conv = ?`,
];

/** Hides the conversation in one transaction, and deletes all that was said in steps after it. */
export async function eraseConversation(
  access: Access,
  owner: string,
  id: string,
  options: EraseStored = {},
): Promise<Erasure> {
  const outside = await access
    .write((tx) => hide(tx, owner, id, options))
    .catch((error: unknown) => {
      if (!isDamage(error)) throw error;
      // Which sessions remain cannot be read then. The rest is still erased.
      return access.write((tx) => hide(tx, owner, id, options, false)).catch(sayDamage);
    });
  await forget(access, id);
  return outside;
}

function sayDamage(error: unknown): never {
  throw isDamage(error) ? keptByDamage(error) : error;
}

/** What was erased before is not refused, so that its sandbox can be deleted, or the rest of it. */
function hide(tx: Tx, owner: string, id: string, options: EraseStored, withSessions = true): Erasure {
  const { db } = tx;
  const { sandbox } = options;
  const before = carryOut(db, shared.findErased(owner, id));
  if (before === undefined) return hideNow(tx, owner, id, options, withSessions);
  if (sandbox === undefined && !isErasedInPart(db, id)) throw noConversation();
  carryOut(db, shared.checkUnused(before.no, sandbox));
  if (sandbox !== undefined) carryOut(db, shared.noteSandbox(owner, id));
  return { cwd: null, sessions: [] };
}

function hideNow(tx: Tx, owner: string, id: string, { sandbox, head }: EraseStored, withSessions: boolean): Erasure {
  const { db } = tx;
  const { row } = Ledger.of(tx, owner, id);
  carryOut(db, shared.checkUnused(row.conv, sandbox));
  if (row.pending > 0 && !isStuckByDamage(db, row.conv)) throw hasOpenTurns();
  checkEndsWith(row, head);
  carryOut(db, eraseTasks(owner, id));
  const outside = carryOut(db, shared.outsideOf(row.conv, withSessions));
  for (const statement of HIDE) db.run(statement, row.conv);
  if (row.worker !== null) dropIdleWorker(db, row.worker);
  writer(shared.noteErasure)(tx, owner, id, sandbox !== undefined);
  markUnfinished(tx, id, 'erase', row.conv);
  return outside;
}

/** One that was erased in part can be erased again. Throws `storage_damaged` with what to do. */
export function findToErase(access: Access, owner: string, idOrKey: string): Promise<ToErase | null> {
  return access
    .read((db) => {
      const found = carryOut(db, shared.findToErase(owner, idOrKey));
      return found && { ...found, isErased: found.isErased && !isErasedInPart(db, found.id) };
    })
    .catch(sayDamage);
}
