/**
 * Marks turns that ended elsewhere: they came with a fork, an import, or an adopted session. Earlier copies are found by `queued_seq`: the
 * first event of a conversation is never that of a turn. Also marks where the history of an adopted session could not be read.
 */
export const sql = `
ALTER TABLE turns ADD COLUMN imported INTEGER NOT NULL DEFAULT 0;
UPDATE turns SET imported = 1 WHERE queued_seq = 1;

-- 1: what it knew before it was adopted could not be read.
ALTER TABLE sessions ADD COLUMN unread INTEGER NOT NULL DEFAULT 0;

-- 1: something was said before this turn that is not known.
ALTER TABLE records ADD COLUMN unknown_before INTEGER NOT NULL DEFAULT 0;
CREATE INDEX records_unknown ON records (conv, n) WHERE unknown_before = 1;
`;
