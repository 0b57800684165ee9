/** The id of the log, and the number of commits without an event: what shows that events or commits were lost. */
export const sql = `
INSERT INTO facts (owner, name, value) VALUES
  ('', 'log', lower(hex(randomblob(16)))),
  ('', 'changes', '0');
`;
