import { ThroughlineError } from '../../core/errors.ts';
import type { SessionChange } from '../../ports/store/sessions.ts';
import { conversationRow } from './conversations.ts';
import type { Database } from './database.ts';
import type { Ledger } from './ledger.ts';
import type { SessionRow } from './rows.ts';

const ADD = 'INSERT INTO mirrors (session, start, owner, bytes) VALUES (?, ?, ?, ?)';
const FORGET = 'DELETE FROM mirrors WHERE session = ?';
const PIECES = `
  SELECT m.bytes FROM mirrors m JOIN sessions s ON s.no = m.session WHERE s.ref = ? AND s.conv = ? ORDER BY m.start`;

/** A file grows at its end: each turn adds one piece, so its cost does not grow with the file. Returns how much there is then. */
export function addToMirror(
  { tx, row }: Ledger,
  session: SessionRow,
  { from, bytes }: NonNullable<SessionChange['mirror']>,
): number {
  if (from !== session.mirrored && from !== 0) {
    throw new ThroughlineError(
      'invalid',
      `The mirror has ${session.mirrored} bytes; more of it cannot begin at ${from}.`,
    );
  }
  if (from === 0 && session.mirrored > 0) tx.db.run(FORGET, session.no);
  if (bytes.byteLength > 0) tx.db.run(ADD, session.no, from, row.owner, bytes);
  return from + bytes.byteLength;
}

export function transcript(db: Database, owner: string, conversation: string, ref: string): Uint8Array | null {
  const { no } = conversationRow(db, owner, conversation);
  const pieces = db.all<{ bytes: Uint8Array }>(PIECES, ref, no);
  return pieces.length === 0 ? null : Buffer.concat(pieces.map((piece) => piece.bytes));
}
