/**
 * How many tasks of one plan may run at once. It is stored with each task, so that every runner keeps to it. And an index of queued tasks
 * that are to be cancelled.
 */
export const sql = `
ALTER TABLE tasks ADD COLUMN parallel INTEGER;   -- null: the plan says nothing
CREATE INDEX tasks_parallel ON tasks (place, parallel) WHERE parallel IS NOT NULL AND state IN ('queued', 'running');
CREATE INDEX tasks_cancel ON tasks (no) WHERE cancel_by IS NOT NULL AND state = 'queued';
`;
