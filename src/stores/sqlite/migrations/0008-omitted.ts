/** What a session was told of its turns only in part, as JSON: its later receipts say so, too. */
export const sql = `
ALTER TABLE sessions ADD COLUMN omitted TEXT;   -- null: nothing
`;
