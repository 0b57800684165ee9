/**
 * Why a question was denied or withdrawn: until now both were `withdrawn`, with the reason only in the event. And what a limit of
 * spending per day needs: the conversation's own limits, and what it has used on its last day, so that a look costs the same at any length.
 */
export const sql = `
ALTER TABLE permissions ADD COLUMN reason TEXT;      -- null: open, answered, or withdrawn before this column
ALTER TABLE conversations ADD COLUMN limits TEXT NOT NULL DEFAULT '{}';
ALTER TABLE totals ADD COLUMN day TEXT;              -- the last day (UTC) on which something was used; null: none since this column
ALTER TABLE totals ADD COLUMN day_spent TEXT;
`;
