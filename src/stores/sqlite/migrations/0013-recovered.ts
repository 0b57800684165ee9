/** Turns that completed unseen: their end was read from the agent's own storage afterwards. */
export const sql = `
ALTER TABLE turns ADD COLUMN recovered INTEGER;   -- null: its end was seen, or it has not ended
`;
