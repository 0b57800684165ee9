/**
 * What sessions were told beside the prompt of a turn: JSON, compressed. `session` names, by our reference, the session of a warm-up,
 * and `turn` is null until a turn is sent in it.
 */
export const sql = `
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
`;
