// What is set for a conversation, where it is, and which workers run it there.

import type { Arrangement, Conversation, TitleSource } from '../../../core/conversation.ts';
import type { Budget } from '../../../core/limits/budget.ts';
import { type SandboxProcess, storedProcess } from '../../../core/process.ts';
import type { KeptChoices } from '../../../core/turn/choices.ts';
import type { Sent } from '../../../core/turn/turn.ts';
import type { Move } from '../../../ports/store/conversations.ts';
import type { LeaseStore, Taker } from '../../../ports/store/leases.ts';
import { type LeaseRow, leavePlace } from '../ledger.ts';
import { flag, limitsJson, parsed } from '../rows.ts';
import type { LedgerTx, SharedLedger } from '../writing/ledger.ts';
import { endLiving } from '../writing/sessions.ts';
import { conversationNo } from './reading.ts';
import { act, all, one, run, type StepAccess, type Steps, type StepTx } from './steps.ts';

const ARRANGE = 'UPDATE conversations SET pinned = ?, put_away = ? WHERE no = ?';
const SET_LIMITS = 'UPDATE conversations SET limits = ? WHERE no = ?';
const SET_CHOICES = 'UPDATE conversations SET choices = ? WHERE no = ?';
const MOVE = 'UPDATE conversations SET place = ?, sandbox = id, cwd = NULL, project = NULL WHERE no = ?';
const MOVE_LEASE = 'UPDATE leases SET place = ? WHERE conv = ?';
// The conversation's own sandbox is made again in the new place.
const MOVE_SANDBOX = `
  UPDATE sandboxes SET place = ?, opened_at = NULL, opened_by = NULL, rested_at = NULL, setup = '[]', disk = NULL, disk_bytes = 0,
    holder = NULL, held_until = NULL WHERE id = ? AND owner = ?`;
const FACT = "SELECT value FROM facts WHERE owner = '' AND name = ?";
const SET_FACT = `
  INSERT INTO facts (owner, name, value) VALUES ('', ?, ?) ON CONFLICT (owner, name) DO UPDATE SET value = excluded.value`;
/** The name of a place is the fact with this prefix and the id of the place. */
export const PLACE = 'place:';
/** The last move of a conversation is the fact with this prefix and its id. So its events need not be searched. */
export const MOVED = 'moved:';
/** Conversations with an open turn: the oldest one, and who holds the conversation. Without a condition. */
export const STANDING = `
  SELECT c.owner, c.id AS conversation, c.key, l.driver, l.place, f.value AS home, t.id AS turn, t.n, t.state, t.agent,
    w.id AS holder, w.process, l.ready_at
  FROM leases l JOIN conversations c ON c.no = l.conv
    JOIN turns t ON t.no = (SELECT o.no FROM turns o WHERE o.conv = l.conv AND o.ended_at IS NULL ORDER BY o.n LIMIT 1)
    LEFT JOIN workers w ON w.no = l.worker LEFT JOIN facts f ON f.owner = '' AND f.name = '${PLACE}' || l.place`;
const SENT_SINCE = "SELECT 1 FROM events WHERE conv = ? AND seq > ? AND kind = 'turn.sent' ORDER BY seq LIMIT 1";
const ENLIST = `
  INSERT INTO workers (owner, id, process, takes) VALUES ('', ?, ?, ?)
  ON CONFLICT (id) DO UPDATE SET process = excluded.process, takes = excluded.takes`;
const TAKERS = 'SELECT id, process, takes FROM workers WHERE takes IS NOT NULL ORDER BY no';
const WORKER = 'SELECT no FROM workers WHERE id = ?';
const HELD_BY = 'SELECT conv FROM leases WHERE worker = ? ORDER BY conv';
const DELETE_WORKER = 'DELETE FROM workers WHERE no = ?';
const PROCESSES = `
  WITH held AS (SELECT l.conv FROM leases l JOIN workers w ON w.no = l.worker WHERE w.id = ?)
  SELECT s.process, NULL AS sent FROM held JOIN sessions s ON s.conv = held.conv WHERE s.process IS NOT NULL
  UNION ALL
  SELECT NULL, t.sent FROM held JOIN turns t ON t.conv = held.conv WHERE t.ended_at IS NULL AND t.sent IS NOT NULL`;
const COUNT_HOLDINGS = 'SELECT count(*) AS count FROM leases WHERE worker IS NOT NULL AND owner = ?';

export function* setTitle(
  tx: LedgerTx,
  owner: string,
  id: string,
  title: string,
  source: TitleSource,
): Steps<Conversation> {
  const ledger = yield* act(() => tx.ledgerOf(owner, id));
  if (ledger.giveTitle(title, source)) {
    ledger.touch();
    yield* act(() => ledger.save());
  }
  return yield* act(() => tx.conversation(owner, id));
}

export function* arrange(tx: LedgerTx, owner: string, id: string, change: Arrangement): Steps<Conversation> {
  const ledger = yield* act(() => tx.ledgerOf(owner, id));
  if (yield* putInPlace(ledger, change)) yield* act(() => ledger.save());
  return yield* act(() => tx.conversation(owner, id));
}

/** False: it is arranged like this already. */
export function* putInPlace(ledger: SharedLedger, { pinned, putAway }: Arrangement): Steps<boolean> {
  const { row } = ledger;
  const next = { pinned: flag(pinned) ?? row.pinned, put_away: flag(putAway) ?? row.put_away };
  if (next.pinned === row.pinned && next.put_away === row.put_away) return false;
  Object.assign(row, next);
  yield* run(ARRANGE, row.pinned, row.put_away, row.conv);
  ledger.append('conversation.arranged', null, { pinned: row.pinned === 1, putAway: row.put_away === 1 });
  return true;
}

export function* setLimitPerDay(tx: LedgerTx, owner: string, id: string, limit: Budget | null): Steps<Conversation> {
  yield* run(SET_LIMITS, limitsJson(limit), yield* conversationNo(owner, id));
  return yield* act(() => tx.conversation(owner, id));
}

export function* setChoices(tx: LedgerTx, owner: string, id: string, choices: KeptChoices): Steps<Conversation> {
  yield* run(SET_CHOICES, JSON.stringify(choices), yield* conversationNo(owner, id));
  return yield* act(() => tx.conversation(owner, id));
}

export function* moveConversation(tx: LedgerTx, owner: string, id: string, move: Move): Steps<Conversation> {
  const { place, name, by } = move;
  const ledger = yield* act(() => tx.ledgerOf(owner, id));
  const { row } = ledger;
  if (row.place === place) return yield* act(() => tx.conversation(owner, id));
  const { worker } = row;
  leavePlace(row, tx.monotonic);
  yield* run(MOVE, place, row.conv);
  yield* run(MOVE_LEASE, place, row.conv);
  yield* run(MOVE_SANDBOX, place, id, owner);
  const from = (yield* placeName(row.place)) ?? row.place;
  const seq = ledger.append('conversation.moved', null, { from, to: name, by });
  yield* run(SET_FACT, `${MOVED}${id}`, JSON.stringify({ seq, from }));
  yield* act(() => ledger.save());
  if (worker !== null) tx.dropIdleWorker(worker);
  return yield* act(() => tx.conversation(owner, id));
}

/** Where the conversation was moved from since its last turn was sent; null: it was not. */
export function* lastMovedFrom({ id, conv }: Pick<LeaseRow, 'id' | 'conv'>): Steps<string | null> {
  const noted = yield* one<{ value: string }>(FACT, `${MOVED}${id}`);
  if (noted === undefined) return null;
  const { seq, from } = JSON.parse(noted.value);
  return (yield* one(SENT_SINCE, conv, seq)) === undefined ? from : null;
}

type PlaceStore = Pick<LeaseStore, 'enlist' | 'takers' | 'namePlace' | 'placeName' | 'countHoldings' | 'processesOf'>;

export function placeStore({ reading, looking, lookingAt, writing }: StepAccess): PlaceStore {
  const [known, setName] = [reading(placeName), writing(namePlace)];
  return {
    enlist: writing(enlist),
    takers: lookingAt(takers),
    async namePlace(place, name) {
      if ((await known(place)) !== name) await setName(place, name);
    },
    placeName: looking(placeName),
    countHoldings: reading(countHoldings),
    processesOf: reading(processesOf),
  };
}

function* enlist(tx: StepTx, { id, process, place, agents }: Taker): Steps<void> {
  yield* run(ENLIST, id, JSON.stringify(process), JSON.stringify({ place, agents, at: tx.monotonic }));
}

function* takers(monotonic: number): Steps<(Taker & { quietMs: number })[]> {
  const rows = yield* all<{ id: string; process: string; takes: string }>(TAKERS);
  return rows.map(({ id, process, takes }) => {
    const { place, agents, at } = JSON.parse(takes);
    return { id, process: JSON.parse(process), place, agents, quietMs: monotonic - at };
  });
}

function* placeName(place: string): Steps<string | null> {
  return (yield* one<{ value: string }>(FACT, `${PLACE}${place}`))?.value ?? null;
}

function namePlace(_: StepTx, place: string, name: string): Steps<void> {
  return run(SET_FACT, `${PLACE}${place}`, name);
}

function* countHoldings(owner: string): Steps<number> {
  return (yield* one<{ count: number }>(COUNT_HOLDINGS, owner))?.count ?? 0;
}

function* processesOf(worker: string): Steps<SandboxProcess[]> {
  const rows = yield* all<{ process: string | null; sent: string | null }>(PROCESSES, worker);
  const found = rows.flatMap(
    ({ process, sent }) => storedProcess(parsed(process) ?? parsed<Sent>(sent)?.process ?? null) ?? [],
  );
  // A session and the turn that runs in it mostly have the same.
  return [...new Map(found.map((one) => [JSON.stringify(one), one])).values()];
}

export function* forgetWorker(tx: LedgerTx, worker: string): Steps<void> {
  const known = yield* one<{ no: number }>(WORKER, worker);
  if (known === undefined) return;
  for (const { conv } of yield* all<{ conv: number }>(HELD_BY, known.no)) {
    const ledger = yield* act(() => tx.ledgerByNo(conv));
    const { row } = ledger;
    if (row.worker !== known.no) continue;
    yield* endLiving(ledger);
    row.worker = null;
    row.ready_at = row.pending > 0 ? tx.monotonic : null;
    yield* act(() => ledger.save());
    tx.moved(row.id);
  }
  yield* run(DELETE_WORKER, known.no);
}
