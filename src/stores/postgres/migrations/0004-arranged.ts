/**
 * How a list of conversations arranges them: those that are pinned or put away, and by project. Also how full the context of a session is, and
 * from where a question was answered. A server of the version before leaves these columns empty.
 */
const TEXT = 'text COLLATE "C"';

export const sql = `
ALTER TABLE conversations ADD COLUMN pinned int NOT NULL DEFAULT 0, ADD COLUMN put_away int NOT NULL DEFAULT 0, ADD COLUMN project ${TEXT};
ALTER TABLE sessions ADD COLUMN context ${TEXT};
ALTER TABLE permissions ADD COLUMN answered_from ${TEXT};
CREATE INDEX conversations_put_away ON conversations (owner) WHERE put_away = 1;
`;
