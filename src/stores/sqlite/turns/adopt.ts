import { ThroughlineError } from '../../../core/errors.ts';
import type { TurnRecord } from '../../../core/turn/record.ts';
import { NO_USAGE } from '../../../core/turn/usage.ts';
import type { AdoptedSession } from '../../../ports/store/turns.ts';
import { addImported } from '../conversations/copy.ts';
import type { Ledger } from '../conversations/ledger.ts';
import { sessionIsElsewhere } from '../reading/reads.ts';
import { openSession } from './sessions.ts';
import { countTurns, type EndedTurn } from './totals.ts';

const OWN =
  "SELECT 1 FROM sessions WHERE conv = ? AND id = ? AND agent = ? AND state IN ('live', 'dormant', 'unsettled')";
const NEWEST = 'SELECT ref FROM sessions WHERE conv = ? ORDER BY used_seq DESC LIMIT 1';

/**
 * Takes a native session into the conversation: its own turns go to the end of the history, and it has all of them. What the
 * conversation had before, it lacks; it is told that with its first prompt.
 */
export function adopt(ledger: Ledger, agent: string, adopted: AdoptedSession): void {
  const { tx, row } = ledger;
  const { ref, id, storage, history } = adopted;
  // Another request has adopted it meanwhile.
  if (tx.db.one(OWN, row.conv, id, adopted.agent) !== undefined) return;
  checkPlace(ledger, agent, adopted);
  const lacks = row.history;
  const ended: EndedTurn[] = [];
  for (const [index, turn] of history.turns.entries()) {
    const unknown = index === 0 && history.unknownBefore ? ({ unknownBefore: true } as const) : {};
    const known = { version: 1, n: row.next_n, agent, sessionId: id, usage: NO_USAGE } as const;
    const record: TurnRecord = { ...known, ...turn, ...unknown };
    addImported(ledger, record);
    ended.push({ n: record.n, at: record.endedAt, outcome: record.outcome, session: ref, usage: NO_USAGE });
    row.next_n += 1;
  }
  countTurns(ledger, ended);
  const parent = tx.db.one<{ ref: string }>(NEWEST, row.conv)?.ref ?? null;
  const condensedTo = ended[history.condensed - 1]?.n ?? 0;
  const place = { watermark: row.head, dropped: lacks, condensedTo, position: history.position } as const;
  const session = { ref, id, agent, storage, origin: 'adopted', parent, state: 'dormant', process: null } as const;
  openSession(ledger, { ...session, ...place }, null);
  if (ended.length > 0) ledger.append('conversation.imported', null, { turns: ended.length });
}

function checkPlace({ tx, row }: Ledger, agent: string, { id, storage, agent: read }: AdoptedSession): void {
  if (sessionIsElsewhere(tx.db, row.owner, row.id, { storage, id })) {
    throw new ThroughlineError('refused', `The session "${id}" is in use elsewhere and cannot be used here.`);
  }
  // A turn that is open would end after turns that come after it.
  if (row.pending > 0) {
    throw new ThroughlineError(
      'conflict',
      `The session "${id}" cannot be adopted while the conversation has an open turn.`,
      {
        hint: 'Its earlier turns become part of the history. Wait for the end of the open turn, or cancel it.',
      },
    );
  }
  if (agent === read) return;
  throw new ThroughlineError('conflict', `The conversation went on with the agent "${agent}" meanwhile.`, {
    hint: 'Name the agent together with the session.',
  });
}
