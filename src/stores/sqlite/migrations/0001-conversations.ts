/**
 * The first schema. Every row has its owner. Integer keys (`no`) inside, text ids outside: text keys cost half as much disk
 * again. Times `…_at` are wall time in milliseconds, except `leases.ready_at`, which is monotonic time of this boot.
 */
export const sql = `
-- Facts of the machine, not of a person: the boot whose monotonic time the leases use. Their owner is ''.
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
  updated_at INTEGER NOT NULL,
  UNIQUE (owner, key)
);
CREATE INDEX conversations_changed ON conversations (owner, updated_at, id);

-- A process that holds leases. Its owner is ''.
CREATE TABLE workers (
  no INTEGER PRIMARY KEY,
  owner TEXT NOT NULL,
  id TEXT NOT NULL UNIQUE,
  process TEXT NOT NULL
);

-- The one hot row of a conversation: whoever writes to the conversation writes here, and so takes its turn.
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
CREATE INDEX leases_ready ON leases (driver, ready_at) WHERE pending > 0;
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
  ended_at INTEGER,
  UNIQUE (conv, n),
  UNIQUE (owner, request_id)
);
CREATE INDEX turns_open ON turns (conv, n) WHERE ended_at IS NULL;

-- Records have no prompt of their own: it is the turn's.
CREATE TABLE records (
  turn INTEGER PRIMARY KEY REFERENCES turns (no),
  owner TEXT NOT NULL,
  conv INTEGER NOT NULL REFERENCES conversations (no),
  n INTEGER NOT NULL,
  place INTEGER NOT NULL,     -- 1, 2, 3… within the history, so that counting is a subtraction
  body TEXT NOT NULL,
  body_refs INTEGER NOT NULL,
  UNIQUE (conv, n)
);

-- Long strings, once per owner however often they are said or forked.
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
);
-- A native session that can still be used belongs to one conversation (R1).
CREATE UNIQUE INDEX sessions_usable ON sessions (agent, id) WHERE state IN ('live', 'dormant', 'unsettled');
CREATE INDEX sessions_used ON sessions (conv, used_seq);
CREATE INDEX sessions_agent ON sessions (conv, agent, used_seq);
CREATE INDEX sessions_id ON sessions (owner, id);

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
);
CREATE INDEX permissions_turn ON permissions (turn, no);
CREATE INDEX permissions_conv ON permissions (conv, no);
CREATE INDEX permissions_owner ON permissions (owner, no);
CREATE INDEX permissions_open ON permissions (owner, no) WHERE state = 'open';

-- What a summary says, kept as turns end, so that it costs the same at any length.
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
);

CREATE TABLE usage_days (
  owner TEXT NOT NULL,
  day TEXT NOT NULL,
  agent TEXT NOT NULL,
  turns INTEGER NOT NULL,
  usage TEXT NOT NULL,
  PRIMARY KEY (owner, day, agent)
) WITHOUT ROWID;

-- The words of records; the row is the turn's. It keeps no text of its own, and reaches an owner only through the turn.
CREATE VIRTUAL TABLE words USING fts5 (prompt, reply, content = '', contentless_delete = 1, tokenize = 'unicode61');
`;
