/**
 * What a list of conversations shows and asks for: the state and the agent of the last turn, kept as turns change, so that a page costs
 * the same however many conversations there are. Questions that are open are counted per conversation.
 */
export const sql = `
ALTER TABLE conversations ADD COLUMN state TEXT NOT NULL DEFAULT 'idle';
ALTER TABLE conversations ADD COLUMN last_agent TEXT;  -- of its last turn, else the one that was set for it

UPDATE conversations SET last_agent = coalesce(
  (SELECT t.agent FROM turns t WHERE t.conv = conversations.no ORDER BY t.n DESC LIMIT 1), agent)
WHERE owner <> '';
UPDATE conversations SET state = coalesce(
  (SELECT CASE t.state WHEN 'waiting' THEN 'asks' ELSE t.state END
    FROM turns t WHERE t.conv = conversations.no AND t.ended_at IS NULL ORDER BY t.n LIMIT 1),
  (SELECT CASE
      WHEN t.failure ->> '$.code' IN ('restore_failed', 'context_refuted') THEN 'unrestored'
      WHEN t.state IN ('failed', 'interrupted') THEN t.state
      ELSE 'idle' END
    FROM turns t WHERE t.conv = conversations.no AND t.imported = 0 ORDER BY t.ended_at DESC, t.n DESC LIMIT 1),
  'idle')
WHERE owner <> '';

-- One index instead of the one by time alone: each would be two pages more in the commits of every turn. The agent is its last column, so that
-- a conversation of another agent is passed over without reading its row.
DROP INDEX conversations_changed;
CREATE INDEX conversations_listed ON conversations (owner, state, updated_at, id, last_agent);
CREATE INDEX permissions_asking ON permissions (conv) WHERE state = 'open';
`;
