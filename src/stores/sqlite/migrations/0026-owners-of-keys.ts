/** Which other owners a key acts for, as `app:*`; null: all of them, if it has the scope `act-as`. */
export const sql = `
ALTER TABLE keys ADD COLUMN owners TEXT;
`;
