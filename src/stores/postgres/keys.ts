import { ThroughlineError } from '../../core/errors.ts';
import type { ApiKey, Grant } from '../../core/key.ts';
import type { KeyStore, LinkStore, NewKey, NewLink } from '../../ports/store.ts';
import type { Row } from '../shared/rows.ts';
import type { Access, Tx } from './server/access.ts';
import type { Sql } from './server/connect.ts';
import { violated } from './server/faults.ts';

const KEY = `
  SELECT owner, id, name, scopes, owners, hash, created_at AS "createdAt", expires_at AS "expiresAt", revoked_at AS "revokedAt"
  FROM keys`;
const KEY_BY_ID = `${KEY} WHERE id = $1`;
const KEYS_OF_OWNER = `${KEY} WHERE owner = $1 ORDER BY no DESC`;
const INSERT_KEY = `
  INSERT INTO keys (owner, id, name, scopes, owners, hash, created_at, expires_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`;
const REVOKE_KEY = 'UPDATE keys SET revoked_at = $1 WHERE id = $2 AND revoked_at IS NULL';

const INSERT_LINK =
  'INSERT INTO sign_in_links (owner, hash, scopes, grant_ends, expires_at) VALUES ($1, $2, $3, $4, $5)';
const FORGET_EXPIRED = 'DELETE FROM sign_in_links WHERE expires_at <= $1';
const FORGET_OLDEST = `
  DELETE FROM sign_in_links WHERE owner = $1
    AND no <= (SELECT no FROM sign_in_links WHERE owner = $1 ORDER BY no DESC LIMIT 1 OFFSET $2)`;
const FIND_LINK = 'SELECT 1 FROM sign_in_links WHERE hash = $1';
// Of two at the same moment the second waits for the first, and finds no row then.
const TAKE_LINK =
  'DELETE FROM sign_in_links WHERE hash = $1 RETURNING owner, scopes, grant_ends AS "expiresAt", expires_at AS until';

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
      if (await access.read(async (sql) => (await sql.one(FIND_LINK, hash)) === undefined)) return null;
      return access.write((tx) => takeLink(tx, hash));
    },
  };
}

type KeyRow = Row<ApiKey, 'scopes'>;

async function createKey(
  tx: Tx,
  owner: string,
  { id, name, scopes, owners, hash, expiresAt }: NewKey,
): Promise<ApiKey> {
  try {
    await tx.sql.changed(INSERT_KEY, owner, id, name, JSON.stringify(scopes), owners, hash, tx.now, expiresAt);
  } catch (error) {
    throw violated(error) === null ? error : new ThroughlineError('conflict', 'A key with this id exists already.');
  }
  return (await findKey(tx.sql, id)) as ApiKey;
}

async function findKey(sql: Sql, id: string): Promise<ApiKey | null> {
  const row = await sql.one<KeyRow>(KEY_BY_ID, id);
  return row === undefined ? null : keyOf(row);
}

async function keysOf(sql: Sql, owner: string): Promise<ApiKey[]> {
  return (await sql.all<KeyRow>(KEYS_OF_OWNER, owner)).map(keyOf);
}

async function revokeKey(tx: Tx, owner: string, id: string): Promise<ApiKey> {
  if ((await findKey(tx.sql, id))?.owner !== owner) throw new ThroughlineError('not_found', 'There is no such key.');
  tx.sql.run(REVOKE_KEY, tx.now, id);
  return (await findKey(tx.sql, id)) as ApiKey;
}

function keyOf(row: KeyRow): ApiKey {
  return { ...row, scopes: JSON.parse(row.scopes) };
}

async function createLink(tx: Tx, owner: string, { hash, scopes, grantEnds, validMs, most }: NewLink): Promise<number> {
  const until = tx.now + validMs;
  tx.sql.run(FORGET_EXPIRED, tx.now);
  tx.sql.run(INSERT_LINK, owner, hash, JSON.stringify(scopes), grantEnds, until);
  tx.sql.run(FORGET_OLDEST, owner, most);
  return until;
}

async function takeLink(tx: Tx, hash: string): Promise<Grant | null> {
  const row = await tx.sql.one<Row<Grant, 'scopes'> & { until: number }>(TAKE_LINK, hash);
  if (row === undefined || tx.now >= row.until) return null;
  return { owner: row.owner, scopes: JSON.parse(row.scopes), expiresAt: row.expiresAt };
}
