// What is set for a conversation, where it is, and who takes it up there.

import type { Conversation } from '../../../core/conversation.ts';
import type { Budget } from '../../../core/limits/budget.ts';
import type { KeptChoices } from '../../../core/turn/choices.ts';
import type { Move } from '../../../ports/store/conversations.ts';
import type { LeaseStore, Taker } from '../../../ports/store/leases.ts';
import { type LeaseRow, leavePlace } from '../ledger.ts';
import { limitsJson } from '../rows.ts';
import type { LedgerTx } from './queue.ts';
import { conversationNo } from './reading.ts';
import { act, all, one, run, type StepAccess, type Steps, type StepTx } from './steps.ts';

const SET_LIMITS = 'UPDATE conversations SET limits = ? WHERE no = ?';
const SET_CHOICES = 'UPDATE conversations SET choices = ? WHERE no = ?';
const MOVE = 'UPDATE conversations SET place = ?, sandbox = id, cwd = NULL WHERE no = ?';
const MOVE_LEASE = 'UPDATE leases SET place = ? WHERE conv = ?';
// Its own one is made again where it is now.
const MOVE_SANDBOX = `
  UPDATE sandboxes SET place = ?, opened_at = NULL, opened_by = NULL, rested_at = NULL, setup = '[]', disk = NULL, disk_bytes = 0,
    holder = NULL, held_until = NULL WHERE id = ? AND owner = ?`;
const FACT = "SELECT value FROM facts WHERE owner = '' AND name = ?";
const SET_FACT = `
  INSERT INTO facts (owner, name, value) VALUES ('', ?, ?) ON CONFLICT (owner, name) DO UPDATE SET value = excluded.value`;
/** The name of a place is a fact called by this and its id. */
export const PLACE = 'place:';
/** A fact of each conversation that was ever moved, so that nobody has to look through events. */
const MOVED = 'moved:';
const SENT_SINCE = "SELECT 1 FROM events WHERE conv = ? AND seq > ? AND kind = 'turn.sent' ORDER BY seq LIMIT 1";
const ENLIST = `
  INSERT INTO workers (owner, id, process, takes) VALUES ('', ?, ?, ?)
  ON CONFLICT (id) DO UPDATE SET process = excluded.process, takes = excluded.takes`;
const TAKERS = 'SELECT id, process, takes FROM workers WHERE takes IS NOT NULL ORDER BY no';
const COUNT_HOLDINGS = 'SELECT count(*) AS count FROM leases WHERE worker IS NOT NULL AND owner = ?';

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

type PlaceStore = Pick<LeaseStore, 'enlist' | 'takers' | 'namePlace' | 'placeName' | 'countHoldings'>;

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
