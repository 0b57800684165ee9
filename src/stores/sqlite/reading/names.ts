import { existsSync } from 'node:fs';
import type { Name, NameKind } from '../../../core/input/names.ts';
import { connectToRead } from '../file/database.ts';

/** Nobody reads more in a terminal, and reading them is fast. */
const MOST = 500;

/** Newest first. All columns are those of the first versions: an older database is read as it is. */
const SELECT: Partial<Record<NameKind, string>> = {
  conversation: `
    SELECT coalesce(key, id) AS name, title AS about FROM conversations WHERE owner = ?
    ORDER BY updated_at DESC, id DESC LIMIT ${MOST}`,
  task: `
    SELECT coalesce(name, id) AS name, state || ': ' || json_extract(spec, '$.goal') AS about FROM tasks WHERE owner = ?
    ORDER BY no DESC LIMIT ${MOST}`,
  question: `
    SELECT id AS name, title AS about FROM permissions WHERE owner = ? AND state = 'open' ORDER BY no DESC LIMIT ${MOST}`,
};

/**
 * Names for completion in a shell. The file is only read: it is not upgraded, repaired or locked, and a log beside it stays as it
 * is. Empty: there are none, or they cannot be read. Never throws.
 */
export function readNames(file: string, owner: string, kind: NameKind): Name[] {
  const select = SELECT[kind];
  if (select === undefined || !existsSync(file)) return [];
  try {
    using db = connectToRead(file);
    return db.prepare(select).all(owner) as unknown as Name[];
  } catch {
    return [];
  }
}
