/**
 * The list of conversations by when they changed. What a conversation is (`state`, `last_agent`) changes in every turn: it is in no index, so that
 * most of these changes write no index. `'' || owner`: an index that begins with the owner would be taken for one that finds a key.
 */
export const sql = `
CREATE INDEX conversations_recent ON conversations (('' || owner), updated_at DESC, id DESC);
DROP INDEX conversations_listed;
ALTER TABLE conversations SET (fillfactor = 70);
ALTER TABLE sessions SET (fillfactor = 70);
`;
