/** Deleting a session looks for its children: without an index it would look at every session there is. */
export const sql = `
CREATE INDEX sessions_parent ON sessions (parent);
`;
