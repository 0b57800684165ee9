/**
 * Conversations that were erased, for those who had them: by this their chain can still be checked. What is left of one (numbers,
 * kinds, times, digests) has the owner '' and so is nobody's.
 */
export const sql = `
CREATE TABLE erasures (
  owner TEXT NOT NULL,
  conversation TEXT NOT NULL,
  at INTEGER NOT NULL,
  PRIMARY KEY (owner, conversation)
) WITHOUT ROWID;
`;
