/**
 * The list of conversations by when they changed. What a conversation is (`state`, `last_agent`) changes in every turn: it is in no index, so that
 * most of these changes write no index. `'' || owner`: an index that begins with the owner would be taken for one that finds a key.
 *
 * The server no longer looks up what each added event, record and receipt refers to: that took half of the time of adding events. The verb that adds
 * them has locked the conversation, and has read or written the turn.
 */
export const sql = `
CREATE INDEX conversations_recent ON conversations (('' || owner), updated_at DESC, id DESC);
DROP INDEX conversations_listed;
ALTER TABLE conversations SET (fillfactor = 70);
ALTER TABLE sessions SET (fillfactor = 70);
ALTER TABLE events DROP CONSTRAINT events_conv_fkey, DROP CONSTRAINT events_turn_fkey;
ALTER TABLE records DROP CONSTRAINT records_turn_fkey, DROP CONSTRAINT records_conv_fkey;
ALTER TABLE words DROP CONSTRAINT words_turn_fkey;
ALTER TABLE receipts DROP CONSTRAINT receipts_conv_fkey;
`;
