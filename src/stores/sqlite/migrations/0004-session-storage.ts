/**
 * The storage of a native session decides to which conversation it belongs, and not the name of its agent in the settings. For earlier sessions
 * only that name is known, so it is their storage.
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
