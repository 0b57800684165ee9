/**
 * How a list of conversations arranges them: those that are pinned or put away, and by project. Also how full the context of a session is, and
 * from where a question was answered.
 */
export const sql = `
ALTER TABLE conversations ADD COLUMN pinned INTEGER NOT NULL DEFAULT 0;
ALTER TABLE conversations ADD COLUMN put_away INTEGER NOT NULL DEFAULT 0;
ALTER TABLE conversations ADD COLUMN project TEXT;     -- the directory that cwd counts to, if it is another one
ALTER TABLE sessions ADD COLUMN context TEXT;          -- as JSON: used, size; null: the agent has not reported it
ALTER TABLE permissions ADD COLUMN answered_from TEXT; -- null: not answered, or not known

-- The last columns let conversations that do not match be passed over without reading their rows.
DROP INDEX conversations_listed;
CREATE INDEX conversations_listed ON conversations (owner, state, updated_at, id, last_agent, put_away, pinned);
CREATE INDEX conversations_put_away ON conversations (owner) WHERE put_away = 1;
`;
