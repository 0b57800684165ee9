/**
 * Erased conversations and their owners, so that an owner can still check the chain. The rows that remain of one (numbers, kinds, times,
 * digests) have the owner ''.
 */
export const sql = `
CREATE TABLE erasures (
  owner TEXT NOT NULL,
  conversation TEXT NOT NULL,
  at INTEGER NOT NULL,
  PRIMARY KEY (owner, conversation)
) WITHOUT ROWID;
`;
