/** The sandboxes of owners. Those of conversations that have worked are listed; the names of shared ones are known when they are used next. */
export const sql = `
CREATE TABLE sandboxes (
  no INTEGER PRIMARY KEY,
  owner TEXT NOT NULL,
  id TEXT NOT NULL UNIQUE,
  name TEXT,
  place TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  opened_at INTEGER,          -- null: not since it was made or removed
  opened_by TEXT,             -- the id of the worker
  used_at INTEGER NOT NULL,   -- when it was last opened
  rested_at INTEGER,
  setup TEXT NOT NULL DEFAULT '[]',
  disk TEXT,
  disk_bytes INTEGER NOT NULL DEFAULT 0,  -- all of disk together
  holder TEXT,                -- the worker that has it alone; null: nobody
  held_until NUMERIC,
  UNIQUE (owner, name)
);
CREATE INDEX sandboxes_owner ON sandboxes (owner, no);
CREATE INDEX sandboxes_idle ON sandboxes (place, no) WHERE opened_at IS NOT NULL;
CREATE INDEX conversations_sandbox ON conversations (sandbox);

INSERT OR IGNORE INTO sandboxes (owner, id, place, created_at, opened_at, used_at)
SELECT c.owner, c.sandbox, min(c.place), min(c.created_at), min(c.created_at), max(c.updated_at)
FROM conversations c JOIN leases l ON l.conv = c.no
WHERE c.owner <> '' AND c.driver = 'worker' AND l.head > 0 GROUP BY c.owner, c.sandbox;
`;
