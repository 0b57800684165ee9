/** Whether the sandbox of an erased conversation was to be deleted with it: when a crash came between, the doctor deletes it. */
export const sql = `
ALTER TABLE erasures ADD COLUMN sandbox INTEGER NOT NULL DEFAULT 0;   -- 1: it was to be deleted
`;
