/**
 * Sessions that crashes left recorded as living. Nobody else has the file open while it is upgraded, so no process holds them. Those of
 * turns that were sent and have not ended are left to whoever ends the turn.
 */
export const sql = `
UPDATE sessions SET state = 'dormant' WHERE state = 'live'
  AND EXISTS (SELECT 1 FROM leases l WHERE l.conv = sessions.conv AND l.driver = 'worker')
  AND NOT EXISTS (
    SELECT 1 FROM turns t
    WHERE t.conv = sessions.conv AND t.ended_at IS NULL AND t.sent IS NOT NULL AND t.session_id = sessions.id);
`;
