/** The next conversation of an owner is found at once, however many others wait. */
export const sql = `
DROP INDEX leases_ready;
CREATE INDEX leases_waiting ON leases (driver, owner, ready_at) WHERE pending > 0;
`;
