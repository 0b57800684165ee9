/** Keys to the HTTP interface; of the secret only its SHA-256. */
export const sql = `
CREATE TABLE keys (
  no INTEGER PRIMARY KEY,
  owner TEXT NOT NULL,
  id TEXT NOT NULL UNIQUE,
  name TEXT NOT NULL,
  scopes TEXT NOT NULL,
  hash TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER,
  revoked_at INTEGER
);
CREATE INDEX keys_owner ON keys (owner, no);
`;
