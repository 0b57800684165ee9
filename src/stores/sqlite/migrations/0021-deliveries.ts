/** Whether the answer of a turn was delivered by its caller: 0 not yet, 1 it was; null: it need not be. */
export const sql = `
ALTER TABLE turns ADD COLUMN delivered INTEGER;
CREATE INDEX turns_undelivered ON turns (owner, no) WHERE delivered = 0;
`;
