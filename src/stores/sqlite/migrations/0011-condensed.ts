/** The last turn that a session has only as its agent's own summary; 0: none. */
export const sql = `
ALTER TABLE sessions ADD COLUMN condensed_to INTEGER NOT NULL DEFAULT 0;
`;
