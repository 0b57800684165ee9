/** What `MIGRATIONS` make of an empty database, in a third of the time. Written by scripts/sqlite-schema.ts. */
export const CURRENT_SCHEMA = `
CREATE TABLE facts (
  owner TEXT NOT NULL,
  name TEXT NOT NULL,
  value TEXT NOT NULL,
  PRIMARY KEY (owner, name)
) WITHOUT ROWID;
CREATE TABLE conversations (
  no INTEGER PRIMARY KEY,
  owner TEXT NOT NULL,
  id TEXT NOT NULL UNIQUE,
  key TEXT,
  title TEXT NOT NULL,
  title_source TEXT NOT NULL,
  agent TEXT,
  driver TEXT NOT NULL,
  sandbox TEXT NOT NULL,
  cwd TEXT,
  place TEXT NOT NULL,
  restore TEXT NOT NULL,
  parent TEXT,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL, limits TEXT NOT NULL DEFAULT '{}', choices TEXT NOT NULL DEFAULT '{}', state TEXT NOT NULL DEFAULT 'idle', last_agent TEXT, pinned INTEGER NOT NULL DEFAULT 0, put_away INTEGER NOT NULL DEFAULT 0, project TEXT,
  UNIQUE (owner, key)
);
CREATE TABLE workers (
  no INTEGER PRIMARY KEY,
  owner TEXT NOT NULL,
  id TEXT NOT NULL UNIQUE,
  process TEXT NOT NULL
, takes TEXT);
CREATE TABLE leases (
  conv INTEGER PRIMARY KEY REFERENCES conversations (no),
  owner TEXT NOT NULL,
  driver TEXT NOT NULL,
  place TEXT NOT NULL,
  next_n INTEGER NOT NULL,
  next_seq INTEGER NOT NULL,
  chain BLOB NOT NULL,        -- of the last event
  head INTEGER NOT NULL,
  history INTEGER NOT NULL,   -- how many turns the history has
  epoch INTEGER NOT NULL,
  pending INTEGER NOT NULL,   -- open turns
  worker INTEGER REFERENCES workers (no),  -- null: nobody holds it
  ready_at NUMERIC            -- null: idle; past: claimable; future: the lease's end
);
CREATE INDEX leases_held ON leases (worker) WHERE worker IS NOT NULL;
CREATE TABLE turns (
  no INTEGER PRIMARY KEY,
  owner TEXT NOT NULL,
  conv INTEGER NOT NULL REFERENCES conversations (no),
  n INTEGER NOT NULL,
  id TEXT NOT NULL UNIQUE,
  request_id TEXT,
  request_hash BLOB,          -- of what was asked for, to tell a repeat from another request with the same id
  queued_seq INTEGER NOT NULL,
  state TEXT NOT NULL,
  agent TEXT NOT NULL,
  prompt TEXT NOT NULL,
  prompt_refs INTEGER NOT NULL,  -- 1: long strings of it are in contents
  options TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  session_id TEXT,
  retry_of TEXT,
  sent TEXT,
  was_sent INTEGER NOT NULL,  -- by any attempt
  cancel_requested INTEGER NOT NULL,
  failure TEXT,
  usage TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  started_at INTEGER,
  ended_at INTEGER, imported INTEGER NOT NULL DEFAULT 0, recovered INTEGER, delivered INTEGER, replaces TEXT, replaced_by TEXT,
  UNIQUE (conv, n),
  UNIQUE (owner, request_id)
);
CREATE INDEX turns_open ON turns (conv, n) WHERE ended_at IS NULL;
CREATE TABLE records (
  turn INTEGER PRIMARY KEY REFERENCES turns (no),
  owner TEXT NOT NULL,
  conv INTEGER NOT NULL REFERENCES conversations (no),
  n INTEGER NOT NULL,
  place INTEGER NOT NULL,     -- 1, 2, 3… within the history, so that counting is a subtraction
  body TEXT NOT NULL,
  body_refs INTEGER NOT NULL, unknown_before INTEGER NOT NULL DEFAULT 0,
  UNIQUE (conv, n)
);
CREATE TABLE contents (
  no INTEGER PRIMARY KEY,
  owner TEXT NOT NULL,
  hash TEXT NOT NULL,
  body TEXT NOT NULL,
  UNIQUE (owner, hash)
);
CREATE TABLE content_links (
  turn INTEGER NOT NULL REFERENCES turns (no),
  content INTEGER NOT NULL REFERENCES contents (no),
  owner TEXT NOT NULL,
  PRIMARY KEY (turn, content)
) WITHOUT ROWID;
CREATE INDEX content_links_content ON content_links (content);
CREATE TABLE events (
  no INTEGER PRIMARY KEY,
  owner TEXT NOT NULL,
  conv INTEGER NOT NULL REFERENCES conversations (no),
  seq INTEGER NOT NULL,
  turn INTEGER REFERENCES turns (no),
  kind TEXT NOT NULL,
  at INTEGER NOT NULL,
  payload TEXT,               -- null: erased, and then digest has what the chain needs
  salt BLOB,
  digest BLOB,
  chain BLOB NOT NULL,
  epoch INTEGER,              -- null: written from outside the fence
  counter INTEGER,            -- the write within the epoch
  part INTEGER,               -- the event within the write
  UNIQUE (conv, seq)
);
CREATE UNIQUE INDEX events_written ON events (conv, epoch, counter, part) WHERE epoch IS NOT NULL;
CREATE INDEX events_turn ON events (turn, seq) WHERE turn IS NOT NULL;
CREATE TABLE sessions (
  no INTEGER PRIMARY KEY,
  owner TEXT NOT NULL,
  conv INTEGER NOT NULL REFERENCES conversations (no),
  ref TEXT NOT NULL UNIQUE,
  id TEXT NOT NULL,
  agent TEXT NOT NULL,
  origin TEXT NOT NULL,
  parent TEXT REFERENCES sessions (ref),
  watermark INTEGER NOT NULL,
  dropped INTEGER NOT NULL,
  state TEXT NOT NULL,
  position TEXT,
  process TEXT,
  turns INTEGER NOT NULL,
  usage TEXT NOT NULL,
  opened_at INTEGER NOT NULL,
  used_at INTEGER NOT NULL,
  used_seq INTEGER NOT NULL   -- the event of its last use: an order that no clock can upset
, mirrored INTEGER NOT NULL DEFAULT 0, memo TEXT, storage TEXT NOT NULL DEFAULT '', omitted TEXT, condensed_to INTEGER NOT NULL DEFAULT 0, unread INTEGER NOT NULL DEFAULT 0, context TEXT);
CREATE INDEX sessions_used ON sessions (conv, used_seq);
CREATE INDEX sessions_agent ON sessions (conv, agent, used_seq);
CREATE TABLE receipts (
  no INTEGER PRIMARY KEY,
  owner TEXT NOT NULL,
  conv INTEGER NOT NULL REFERENCES conversations (no),
  turn INTEGER NOT NULL,      -- the number of the turn; of a warm-up, the head at that time
  warm INTEGER NOT NULL,      -- 0: for a turn; else the epoch of the warm-up
  attempt INTEGER NOT NULL,
  body TEXT NOT NULL,
  UNIQUE (conv, turn, warm, attempt)
);
CREATE TABLE permissions (
  no INTEGER PRIMARY KEY,
  owner TEXT NOT NULL,
  conv INTEGER NOT NULL REFERENCES conversations (no),
  turn INTEGER NOT NULL REFERENCES turns (no),
  id TEXT NOT NULL UNIQUE,
  attempt INTEGER NOT NULL,
  title TEXT NOT NULL,
  tool_call TEXT NOT NULL,
  options TEXT NOT NULL,
  state TEXT NOT NULL,
  option_id TEXT,
  answered_by TEXT,
  asked_at INTEGER NOT NULL,
  ended_at INTEGER
, reason TEXT, answered_from TEXT);
CREATE INDEX permissions_turn ON permissions (turn, no);
CREATE INDEX permissions_conv ON permissions (conv, no);
CREATE INDEX permissions_owner ON permissions (owner, no);
CREATE INDEX permissions_open ON permissions (owner, no) WHERE state = 'open';
CREATE TABLE totals (
  conv INTEGER PRIMARY KEY REFERENCES conversations (no),
  owner TEXT NOT NULL,
  completed INTEGER NOT NULL,
  first_n INTEGER,
  first_at INTEGER,
  last_n INTEGER,
  last_at INTEGER,
  sessions INTEGER NOT NULL,
  changes INTEGER NOT NULL,
  last_session TEXT,          -- the reference of the session of the last turn that had one
  usage TEXT NOT NULL
, day TEXT, day_spent TEXT);
CREATE TABLE usage_days (
  owner TEXT NOT NULL,
  day TEXT NOT NULL,
  agent TEXT NOT NULL,
  turns INTEGER NOT NULL,
  usage TEXT NOT NULL,
  PRIMARY KEY (owner, day, agent)
) WITHOUT ROWID;
CREATE VIRTUAL TABLE words USING fts5 (prompt, reply, content = '', contentless_delete = 1, tokenize = 'unicode61');
CREATE TABLE mirrors (
  session INTEGER NOT NULL REFERENCES sessions (no),
  start INTEGER NOT NULL,
  owner TEXT NOT NULL,
  bytes BLOB NOT NULL,
  PRIMARY KEY (session, start)
) WITHOUT ROWID;
CREATE TABLE keys (
  no INTEGER PRIMARY KEY,
  owner TEXT NOT NULL,
  id TEXT NOT NULL UNIQUE,
  name TEXT NOT NULL,
  scopes TEXT NOT NULL,
  hash TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER,
  revoked_at INTEGER
, owners TEXT);
CREATE INDEX keys_owner ON keys (owner, no);
CREATE UNIQUE INDEX sessions_usable ON sessions (id, storage) WHERE state IN ('live', 'dormant', 'unsettled');
CREATE INDEX sessions_id ON sessions (id, owner);
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
  ended_at INTEGER, parallel INTEGER,
  UNIQUE (owner, plan, place_in_plan)
);
CREATE INDEX tasks_state ON tasks (state, owner, no);
CREATE INDEX tasks_owner ON tasks (owner, no);
CREATE INDEX tasks_name ON tasks (owner, name, no);
CREATE INDEX tasks_milestone ON tasks (owner, milestone, state);
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
CREATE TABLE erasures (
  owner TEXT NOT NULL,
  conversation TEXT NOT NULL,
  at INTEGER NOT NULL, sandbox INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (owner, conversation)
) WITHOUT ROWID;
CREATE INDEX tasks_parallel ON tasks (place, parallel) WHERE parallel IS NOT NULL AND state IN ('queued', 'running');
CREATE INDEX tasks_cancel ON tasks (no) WHERE cancel_by IS NOT NULL AND state = 'queued';
CREATE INDEX records_unknown ON records (conv, n) WHERE unknown_before = 1;
CREATE INDEX leases_waiting ON leases (driver, owner, ready_at) WHERE pending > 0;
CREATE INDEX sessions_parent ON sessions (parent);
CREATE TABLE told (
  no INTEGER PRIMARY KEY,
  owner TEXT NOT NULL,
  conv INTEGER NOT NULL REFERENCES conversations (no),
  session TEXT,
  turn INTEGER REFERENCES turns (no),
  attempt INTEGER NOT NULL,
  body BLOB NOT NULL,
  body_refs INTEGER NOT NULL
);
CREATE INDEX told_conv ON told (conv, no);
CREATE INDEX told_turn ON told (turn, attempt, no) WHERE turn IS NOT NULL;
CREATE INDEX told_ahead ON told (session) WHERE turn IS NULL;
CREATE INDEX turns_undelivered ON turns (owner, no) WHERE delivered = 0;
CREATE TABLE requeues (
  no INTEGER PRIMARY KEY,
  owner TEXT NOT NULL,
  conv INTEGER NOT NULL REFERENCES conversations (no),
  request_id TEXT NOT NULL,
  request_hash BLOB NOT NULL, -- of what was asked for, to tell a repeat from another request with the same id
  result TEXT NOT NULL,
  UNIQUE (owner, request_id)
);
CREATE INDEX requeues_conv ON requeues (conv, no);
CREATE INDEX permissions_asking ON permissions (conv) WHERE state = 'open';
CREATE VIRTUAL TABLE titles USING fts5 (title, content = 'conversations', content_rowid = 'no', tokenize = 'unicode61');
CREATE TRIGGER titles_added AFTER INSERT ON conversations WHEN new.title <> '' BEGIN
  INSERT INTO titles (rowid, title) VALUES (new.no, new.title);
END;
CREATE TRIGGER titles_changed AFTER UPDATE OF title ON conversations WHEN new.title <> old.title BEGIN
  INSERT INTO titles (titles, rowid, title) SELECT 'delete', old.no, old.title WHERE old.title <> '';
  INSERT INTO titles (rowid, title) SELECT new.no, new.title WHERE new.title <> '';
END;
CREATE TRIGGER titles_removed AFTER DELETE ON conversations WHEN old.title <> '' BEGIN
  INSERT INTO titles (titles, rowid, title) VALUES ('delete', old.no, old.title);
END;
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
CREATE TABLE sign_in_links (
  no INTEGER PRIMARY KEY,
  owner TEXT NOT NULL,
  hash TEXT NOT NULL UNIQUE,
  scopes TEXT NOT NULL,
  grant_ends INTEGER,         -- null: a week after it is used
  expires_at INTEGER NOT NULL
);
CREATE INDEX sign_in_links_owner ON sign_in_links (owner, no);
CREATE INDEX sign_in_links_expiry ON sign_in_links (expires_at);
CREATE INDEX conversations_listed ON conversations (owner, state, updated_at, id, last_agent, put_away, pinned);
CREATE INDEX conversations_put_away ON conversations (owner) WHERE put_away = 1;
INSERT INTO titles (titles, rank) VALUES ('secure-delete', 1);
INSERT INTO facts (owner, name, value) VALUES ('', 'log', lower(hex(randomblob(16)))), ('', 'changes', '0');
`;
