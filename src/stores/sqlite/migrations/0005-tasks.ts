/** Tasks. One stream of events an owner, so that a board is followed like a conversation. */
export const sql = `
CREATE TABLE boards (
  owner TEXT PRIMARY KEY,
  next_seq INTEGER NOT NULL,
  served INTEGER NOT NULL     -- the event with which one of its tasks was last taken up: who waited longest comes first
) WITHOUT ROWID;

CREATE TABLE tasks (
  no INTEGER PRIMARY KEY,     -- the order in which they were added
  owner TEXT NOT NULL,
  id TEXT NOT NULL UNIQUE,
  plan TEXT NOT NULL,
  plan_hash BLOB NOT NULL,    -- of the whole plan, to tell a repeat from another one with the same key
  place_in_plan INTEGER NOT NULL,
  place TEXT NOT NULL,
  name TEXT,
  milestone TEXT,
  session TEXT,
  spec TEXT NOT NULL,
  progress TEXT NOT NULL,
  state TEXT NOT NULL,
  cancel_by TEXT,
  epoch INTEGER NOT NULL,
  worker TEXT,                -- null: nobody runs it
  process TEXT,               -- of the worker
  lease_end NUMERIC,          -- monotonic time of this boot
  gate TEXT,                  -- the process of the gate that is running
  created_at INTEGER NOT NULL,
  started_at INTEGER,
  ended_at INTEGER,
  UNIQUE (owner, plan, place_in_plan)
);
CREATE INDEX tasks_state ON tasks (state, owner, no);
CREATE INDEX tasks_owner ON tasks (owner, no);
CREATE INDEX tasks_name ON tasks (owner, name, no);
CREATE INDEX tasks_milestone ON tasks (owner, milestone, state);
-- A session belongs to one conversation, so two tasks that are still to run cannot both have it.
CREATE UNIQUE INDEX tasks_session ON tasks (owner, session)
  WHERE session IS NOT NULL AND state IN ('waiting', 'queued', 'running', 'asking');

CREATE TABLE task_after (
  task INTEGER NOT NULL REFERENCES tasks (no),
  first INTEGER NOT NULL REFERENCES tasks (no),
  owner TEXT NOT NULL,
  PRIMARY KEY (task, first)
) WITHOUT ROWID;
CREATE INDEX task_after_first ON task_after (first, task);

CREATE TABLE task_events (
  no INTEGER PRIMARY KEY,
  owner TEXT NOT NULL,
  seq INTEGER NOT NULL,
  task INTEGER NOT NULL REFERENCES tasks (no),
  kind TEXT NOT NULL,
  at INTEGER NOT NULL,
  payload TEXT NOT NULL,
  UNIQUE (owner, seq)
);
CREATE INDEX task_events_task ON task_events (task, seq);

CREATE TABLE task_usage (
  owner TEXT NOT NULL,
  day TEXT NOT NULL,
  task INTEGER NOT NULL REFERENCES tasks (no),
  turns INTEGER NOT NULL,
  usage TEXT NOT NULL,
  PRIMARY KEY (owner, day, task)
) WITHOUT ROWID;
`;
