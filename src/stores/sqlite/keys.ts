import { ThroughlineError } from '../../core/errors.ts';
import type { ApiKey } from '../../core/key.ts';
import type { NewKey } from '../../ports/store/keys.ts';
import type { Database } from './file/database.ts';
import type { Tx } from './file/write-queue.ts';

const KEY = 'SELECT owner, id, name, scopes, hash, created_at, expires_at, revoked_at FROM keys';
const BY_ID = `${KEY} WHERE id = ?`;
const OF_OWNER = `${KEY} WHERE owner = ? ORDER BY no DESC`;
const INSERT = 'INSERT INTO keys (owner, id, name, scopes, hash, created_at, expires_at) VALUES (?, ?, ?, ?, ?, ?, ?)';
const REVOKE = 'UPDATE keys SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL';

interface KeyRow {
  readonly owner: string;
  readonly id: string;
  readonly name: string;
  readonly scopes: string;
  readonly hash: string;
  readonly created_at: number;
  readonly expires_at: number | null;
  readonly revoked_at: number | null;
}

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

function keyOf({ scopes, created_at, expires_at, revoked_at, ...row }: KeyRow): ApiKey {
  return {
    ...row,
    scopes: JSON.parse(scopes),
    createdAt: created_at,
    expiresAt: expires_at,
    revokedAt: revoked_at,
  };
}
