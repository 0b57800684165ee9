/**
 * Where a native session lives decides whose it is, not the name under which its agent is configured. Sessions of before are
 * known by that name alone, and keep it.
 */
export const sql = `
ALTER TABLE sessions ADD COLUMN storage TEXT NOT NULL DEFAULT '';
UPDATE sessions SET storage = agent;

DROP INDEX sessions_usable;
-- A native session that can still be used belongs to one conversation (R1).
CREATE UNIQUE INDEX sessions_usable ON sessions (id, storage) WHERE state IN ('live', 'dormant', 'unsettled');
DROP INDEX sessions_id;
CREATE INDEX sessions_id ON sessions (id, owner);
`;
