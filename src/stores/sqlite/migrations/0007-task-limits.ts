/**
 * How many tasks of one plan may run at once, kept with each of them: whoever continues with the plan keeps to it. And tasks that
 * are to be cancelled are found among all those that wait.
 */
export const sql = `
ALTER TABLE tasks ADD COLUMN parallel INTEGER;   -- null: the plan says nothing
CREATE INDEX tasks_parallel ON tasks (place, parallel) WHERE parallel IS NOT NULL AND state IN ('queued', 'running');
CREATE INDEX tasks_cancel ON tasks (no) WHERE cancel_by IS NOT NULL AND state = 'queued';
`;
