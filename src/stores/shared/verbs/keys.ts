import { noSuch, ThroughlineError } from '../../../core/errors.ts';
import type { ApiKey, Grant } from '../../../core/key.ts';
import type { KeyStore, LinkStore, NewKey, NewLink } from '../../../ports/store.ts';
import type { Row } from '../rows.ts';
import { all, changed, one, orTaken, run, type StepAccess, type Steps, type StepTx } from './steps.ts';

const KEY = `
  SELECT owner, id, name, scopes, owners, hash, created_at AS "createdAt", expires_at AS "expiresAt", revoked_at AS "revokedAt"
  FROM keys`;
const KEY_BY_ID = `${KEY} WHERE id = ?`;
const KEYS_OF_OWNER = `${KEY} WHERE owner = ? ORDER BY no DESC`;
const INSERT_KEY = `
  INSERT INTO keys (owner, id, name, scopes, owners, hash, created_at, expires_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`;
const REVOKE_KEY = 'UPDATE keys SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL';

const INSERT_LINK = 'INSERT INTO sign_in_links (owner, hash, scopes, grant_ends, expires_at) VALUES (?, ?, ?, ?, ?)';
const FORGET_EXPIRED = 'DELETE FROM sign_in_links WHERE expires_at <= ?';
const FORGET_OLDEST = `
  DELETE FROM sign_in_links WHERE owner = ?1
    AND no <= (SELECT no FROM sign_in_links WHERE owner = ?1 ORDER BY no DESC LIMIT 1 OFFSET ?2)`;
const FIND_LINK = 'SELECT 1 FROM sign_in_links WHERE hash = ?';
// Of two that take it at the same moment, the second waits for the first, and then finds no row.
const TAKE_LINK =
  'DELETE FROM sign_in_links WHERE hash = ? RETURNING owner, scopes, grant_ends AS "expiresAt", expires_at AS until';

/** What callers of the HTTP interface log in with: keys, and the one-time links of browsers. */
export function keyStore({ reading, writing }: StepAccess): KeyStore & LinkStore {
  const [hasLink, take] = [reading(isLink), writing(takeLink)];
  return {
    createKey: writing(createKey),
    findKey: reading(findKey),
    keys: reading(keysOf),
    revokeKey: writing(revokeKey),
    createLink: writing(createLink),
    // Anybody can guess codes, so a wrong one costs no transaction.
    takeLink: async (hash) => ((await hasLink(hash)) ? take(hash) : null),
  };
}

type KeyRow = Row<ApiKey, 'scopes'>;

function* createKey(tx: StepTx, owner: string, key: NewKey): Steps<ApiKey> {
  const { id, name, scopes, owners, hash, expiresAt } = key;
  const inserted = changed(INSERT_KEY, owner, id, name, JSON.stringify(scopes), owners, hash, tx.now, expiresAt);
  yield* orTaken(tx, inserted, () => new ThroughlineError('conflict', 'A key with this id exists already.'));
  return (yield* findKey(id)) as ApiKey;
}

function* findKey(id: string): Steps<ApiKey | null> {
  const row = yield* one<KeyRow>(KEY_BY_ID, id);
  return row === undefined ? null : keyOf(row);
}

function* keysOf(owner: string): Steps<ApiKey[]> {
  return (yield* all<KeyRow>(KEYS_OF_OWNER, owner)).map(keyOf);
}

function* revokeKey(tx: StepTx, owner: string, id: string): Steps<ApiKey> {
  if ((yield* findKey(id))?.owner !== owner) throw noSuch('key', id);
  yield* run(REVOKE_KEY, tx.now, id);
  return (yield* findKey(id)) as ApiKey;
}

function keyOf(row: KeyRow): ApiKey {
  return { ...row, scopes: JSON.parse(row.scopes) };
}

function* createLink(tx: StepTx, owner: string, { hash, scopes, grantEnds, validMs, most }: NewLink): Steps<number> {
  const until = tx.now + validMs;
  yield* run(FORGET_EXPIRED, tx.now);
  yield* run(INSERT_LINK, owner, hash, JSON.stringify(scopes), grantEnds, until);
  yield* run(FORGET_OLDEST, owner, most);
  return until;
}

function* isLink(hash: string): Steps<boolean> {
  return (yield* one(FIND_LINK, hash)) !== undefined;
}

function* takeLink(tx: StepTx, hash: string): Steps<Grant | null> {
  const row = yield* one<Row<Grant, 'scopes'> & { until: number }>(TAKE_LINK, hash);
  if (row === undefined || tx.now >= row.until) return null;
  return { owner: row.owner, scopes: JSON.parse(row.scopes), expiresAt: row.expiresAt };
}
