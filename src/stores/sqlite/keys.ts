import { ThroughlineError } from '../../core/errors.ts';
import type { ApiKey, Grant } from '../../core/key.ts';
import type { KeyStore, LinkStore, NewKey, NewLink } from '../../ports/store.ts';
import type { Row } from '../shared/rows.ts';
import type { Access } from './file/access.ts';
import type { Database } from './file/database.ts';
import type { Tx } from './file/write-queue.ts';

const KEY =
  'SELECT owner, id, name, scopes, owners, hash, created_at AS createdAt, expires_at AS expiresAt, revoked_at AS revokedAt FROM keys';
const KEY_BY_ID = `${KEY} WHERE id = ?`;
const KEYS_OF_OWNER = `${KEY} WHERE owner = ? ORDER BY no DESC`;
const INSERT_KEY =
  'INSERT INTO keys (owner, id, name, scopes, owners, hash, created_at, expires_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)';
const REVOKE_KEY = 'UPDATE keys SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL';

const INSERT_LINK = 'INSERT INTO sign_in_links (owner, hash, scopes, grant_ends, expires_at) VALUES (?, ?, ?, ?, ?)';
const FORGET_EXPIRED = 'DELETE FROM sign_in_links WHERE expires_at <= ?';
const FORGET_OLDEST = `
  DELETE FROM sign_in_links WHERE owner = ?1
    AND no <= (SELECT no FROM sign_in_links WHERE owner = ?1 ORDER BY no DESC LIMIT 1 OFFSET ?2)`;
const FIND_LINK = 'SELECT 1 FROM sign_in_links WHERE hash = ?';
const TAKE_LINK =
  'DELETE FROM sign_in_links WHERE hash = ? RETURNING owner, scopes, grant_ends AS expiresAt, expires_at AS until';

/** What callers of the HTTP interface show: keys, and the one-time links of browsers. */
export function keyStore(access: Access): KeyStore & LinkStore {
  return {
    createKey: access.writing(createKey),
    findKey: access.reading(findKey),
    keys: access.reading(keysOf),
    revokeKey: access.writing(revokeKey),
    createLink: access.writing(createLink),
    async takeLink(hash) {
      // Anybody can guess: a wrong code costs no transaction.
      if (await access.read((db) => db.one(FIND_LINK, hash) === undefined)) return null;
      return access.write((tx) => takeLink(tx, hash));
    },
  };
}

type KeyRow = Row<ApiKey, 'scopes'>;

function createKey(tx: Tx, owner: string, { id, name, scopes, owners, hash, expiresAt }: NewKey): ApiKey {
  if (findKey(tx.db, id) !== null) throw new ThroughlineError('conflict', 'A key with this id exists already.');
  tx.db.run(INSERT_KEY, owner, id, name, JSON.stringify(scopes), owners, hash, tx.now, expiresAt);
  return findKey(tx.db, id) as ApiKey;
}

function findKey(db: Database, id: string): ApiKey | null {
  const row = db.one<KeyRow>(KEY_BY_ID, id);
  return row === undefined ? null : keyOf(row);
}

function keysOf(db: Database, owner: string): ApiKey[] {
  return db.all<KeyRow>(KEYS_OF_OWNER, owner).map(keyOf);
}

function revokeKey(tx: Tx, owner: string, id: string): ApiKey {
  if (findKey(tx.db, id)?.owner !== owner) throw new ThroughlineError('not_found', 'There is no such key.');
  tx.db.run(REVOKE_KEY, tx.now, id);
  return findKey(tx.db, id) as ApiKey;
}

function keyOf(row: KeyRow): ApiKey {
  return { ...row, scopes: JSON.parse(row.scopes) };
}

function createLink(tx: Tx, owner: string, { hash, scopes, grantEnds, validMs, most }: NewLink): number {
  const until = tx.now + validMs;
  tx.db.run(FORGET_EXPIRED, tx.now);
  tx.db.run(INSERT_LINK, owner, hash, JSON.stringify(scopes), grantEnds, until);
  tx.db.run(FORGET_OLDEST, owner, most);
  return until;
}

function takeLink(tx: Tx, hash: string): Grant | null {
  const row = tx.db.one<Row<Grant, 'scopes'> & { until: number }>(TAKE_LINK, hash);
  if (row === undefined || tx.now >= row.until) return null;
  return { owner: row.owner, scopes: JSON.parse(row.scopes), expiresAt: row.expiresAt };
}
