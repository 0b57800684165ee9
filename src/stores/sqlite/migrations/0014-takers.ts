/** Workers that take up what others have submitted are listed while they live, also when they hold nothing. */
export const sql = `
ALTER TABLE workers ADD COLUMN takes TEXT;   -- its place and agents; null: it is listed only while it holds a lease
`;
