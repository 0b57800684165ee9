/**
 * Lease times are now times of the store, which can be compared across boots and machines; before, they were monotonic times of one boot. Nobody
 * else has the file open while it is upgraded, so that no lease is in use: each has expired. The program that a server renews a lock for
 * renews it again. What waits keeps its order: its times are smaller than all new ones.
 */
export const sql = `
DELETE FROM facts WHERE owner = '' AND name = 'boot';
UPDATE leases SET ready_at = 0 WHERE worker IS NOT NULL;
UPDATE tasks SET lease_end = 0 WHERE state = 'running';
UPDATE workers SET takes = json_set(takes, '$.at', 0) WHERE takes IS NOT NULL;
`;
