/** Copies of agents' own transcript files, in the pieces in which they grew, and what adapters note about their sessions. */
export const sql = `
ALTER TABLE sessions ADD COLUMN mirrored INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN memo TEXT;

CREATE TABLE mirrors (
  session INTEGER NOT NULL REFERENCES sessions (no),
  start INTEGER NOT NULL,
  owner TEXT NOT NULL,
  bytes BLOB NOT NULL,
  PRIMARY KEY (session, start)
) WITHOUT ROWID;
`;
