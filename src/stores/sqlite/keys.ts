import { ThroughlineError } from '../../core/errors.ts';
import type { ApiKey } from '../../core/key.ts';
import type { NewKey } from '../../ports/store/keys.ts';
import type { Row } from './conversations/rows.ts';
import type { Database } from './file/database.ts';
import type { Tx } from './file/write-queue.ts';

const KEY =
  'SELECT owner, id, name, scopes, hash, created_at AS createdAt, expires_at AS expiresAt, revoked_at AS revokedAt FROM keys';
const BY_ID = `${KEY} WHERE id = ?`;
const OF_OWNER = `${KEY} WHERE owner = ? ORDER BY no DESC`;
const INSERT = 'INSERT INTO keys (owner, id, name, scopes, hash, created_at, expires_at) VALUES (?, ?, ?, ?, ?, ?, ?)';
const REVOKE = 'UPDATE keys SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL';

type KeyRow = Row<ApiKey, 'scopes'>;

export function createKey(tx: Tx, owner: string, { id, name, scopes, hash, expiresAt }: NewKey): ApiKey {
  if (findKey(tx.db, id) !== null) throw new ThroughlineError('conflict', 'A key with this id exists already.');
  tx.db.run(INSERT, owner, id, name, JSON.stringify(scopes), hash, tx.now, expiresAt);
  return findKey(tx.db, id) as ApiKey;
}

export function findKey(db: Database, id: string): ApiKey | null {
  const row = db.one<KeyRow>(BY_ID, id);
  return row === undefined ? null : keyOf(row);
}

export function keysOf(db: Database, owner: string): ApiKey[] {
  return db.all<KeyRow>(OF_OWNER, owner).map(keyOf);
}

export function revokeKey(tx: Tx, owner: string, id: string): ApiKey {
  if (findKey(tx.db, id)?.owner !== owner) throw new ThroughlineError('not_found', 'There is no such key.');
  tx.db.run(REVOKE, tx.now, id);
  return findKey(tx.db, id) as ApiKey;
}

function keyOf(row: KeyRow): ApiKey {
  return { ...row, scopes: JSON.parse(row.scopes) };
}
