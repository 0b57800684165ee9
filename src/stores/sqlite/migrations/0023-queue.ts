/**
 * Of a queued turn that was replaced: the turn that takes its place, and there the turn whose place it took. `requeues`: what changes
 * of a queue came to, so that one that is repeated after a lost reply changes nothing.
 */
export const sql = `
ALTER TABLE turns ADD COLUMN replaces TEXT;
ALTER TABLE turns ADD COLUMN replaced_by TEXT;
CREATE TABLE requeues (
  no INTEGER PRIMARY KEY,
  owner TEXT NOT NULL,
  conv INTEGER NOT NULL REFERENCES conversations (no),
  request_id TEXT NOT NULL,
  request_hash BLOB NOT NULL, -- of what was asked for, to tell a repeat from another request with the same id
  result TEXT NOT NULL,
  UNIQUE (owner, request_id)
);
CREATE INDEX requeues_conv ON requeues (conv, no);
`;
