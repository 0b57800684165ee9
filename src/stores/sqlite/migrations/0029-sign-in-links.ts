/** One-time links that sign browsers in; of the code only a hash. A link that was used has no row. */
export const sql = `
CREATE TABLE sign_in_links (
  no INTEGER PRIMARY KEY,
  owner TEXT NOT NULL,
  hash TEXT NOT NULL UNIQUE,
  scopes TEXT NOT NULL,
  grant_ends INTEGER,         -- null: a week after it is used
  expires_at INTEGER NOT NULL
);
CREATE INDEX sign_in_links_owner ON sign_in_links (owner, no);
CREATE INDEX sign_in_links_expiry ON sign_in_links (expires_at);
`;
