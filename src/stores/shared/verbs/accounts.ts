// Reads about turns that ran: what their sessions were told, how these were restored, what was used.

import { hash } from 'node:crypto';
import { RESTORE_HINT, ThroughlineError } from '../../../core/errors.ts';
import type { CheckedRange } from '../../../core/input/arguments.ts';
import type { UsagePage } from '../../../core/input/usage-page.ts';
import type { Receipt } from '../../../core/restore/receipt.ts';
import type { ToldPart } from '../../../core/restore/told.ts';
import type { Summary } from '../../../core/summary.ts';
import type { Prompt } from '../../../core/turn/content.ts';
import type { Sent } from '../../../core/turn/turn.ts';
import { gathered, inPages } from '../../../flow/pages.ts';
import type { PlacedReceipt, SessionStore } from '../../../ports/store/sessions.ts';
import type { StoredTold } from '../../../ports/store/turns.ts';
import type { LastUsage, UsageRow } from '../../../ports/store/usage.ts';
import { type ContentSource, readValue, unpackValue, unzipped } from '../content.ts';
import { noConversation } from '../ledger.ts';
import { LAST_DAY, pageOf } from '../page.ts';
import type { TurnRow } from '../rows.ts';
import { type HolderRow, summaryOf, type TotalsRow } from '../totals.ts';
import { conversationNo, findTurnRow } from './reading.ts';
import { all, contents, each, one, type StepAccess, type Steps, unindexedNo } from './steps.ts';

const OF_ATTEMPT = 'SELECT session, body FROM told WHERE turn = ? AND attempt = ? ORDER BY no';
const SENDINGS = "SELECT payload FROM events WHERE turn = ? AND kind = 'turn.sent' ORDER BY seq DESC";
const SESSION_ID = `SELECT id FROM sessions WHERE ref = ? AND ${unindexedNo('conv')} = ?`;
const RECEIPTS = `
  SELECT turn, warm, attempt, body FROM receipts WHERE conv = ? AND (turn, warm, attempt) > (?, ?, ?)
  ORDER BY turn, warm, attempt LIMIT 500`;
const OF_TURN = 'SELECT body FROM receipts WHERE conv = ? AND turn = ? AND warm = 0 ORDER BY attempt';
/** The receipts of so many turns, after a turn or before it. A turn may have several. */
const RESTORED_AFTER = `
  SELECT turn, body FROM receipts WHERE conv = ?1 AND turn > ?2 AND turn <= (
    SELECT max(turn) FROM (SELECT DISTINCT turn FROM receipts WHERE conv = ?1 AND turn > ?2 ORDER BY turn LIMIT CAST(?3 AS bigint)) AS found
  ) ORDER BY turn, warm, attempt`;
const RESTORED_BEFORE = `
  SELECT turn, body FROM receipts WHERE conv = ?1 AND turn < ?2 AND turn >= (
    SELECT min(turn) FROM (SELECT DISTINCT turn FROM receipts WHERE conv = ?1 AND turn < ?2 ORDER BY turn DESC LIMIT CAST(?3 AS bigint)) AS found
  ) ORDER BY turn, warm, attempt`;
const DAYS = `
  SELECT day, agent, turns, usage FROM usage_days
  WHERE owner = ?1 AND day BETWEEN ?2 AND ?3 AND (day < ?3 OR agent > ?4) ORDER BY day DESC, agent LIMIT CAST(?5 AS bigint)`;
const NAMED = 'SELECT no, owner, key, title FROM conversations WHERE id = ?';
const TOTALS = `
  SELECT completed, first_n, first_at, last_n, last_at, sessions, changes, last_session, usage FROM totals WHERE conv = ?`;
const HOLDER = `
  SELECT l.pending, l.epoch, l.ready_at, w.id AS holder, w.process
  FROM leases l LEFT JOIN workers w ON w.no = l.worker WHERE l.conv = ?`;

interface ToldRow {
  /** The session of a warm-up; null: it was told together with the prompt, which is its last part. */
  readonly session: string | null;
  readonly body: Uint8Array;
}

export function* told(owner: string, id: string, attempt?: number): Steps<StoredTold | null> {
  const turn = yield* findTurnRow(owner, id);
  if (turn === undefined) return null;
  const payloads = yield* all<{ payload: string }>(SENDINGS, turn.no);
  const sendings = payloads.map(({ payload }) => (JSON.parse(payload) as { sent: Sent }).sent);
  const sent = attempt === undefined ? sendings[0] : sendings.find((one) => one.attempt === attempt);
  if (sent === undefined) return null;
  const known = sent.session === null ? undefined : yield* one<{ id: string }>(SESSION_ID, sent.session, turn.conv);
  const sessionId = known?.id ?? turn.sessionId;
  if (sent.told === undefined) return { sent, sessionId, parts: null };
  const rows = yield* all<ToldRow>(OF_ATTEMPT, turn.no, sent.attempt);
  const values = rows.map(({ body }) => ({ json: unzipped(body), refs: 1 }));
  const source = yield* contents(owner, [...values, { json: turn.prompt, refs: turn.prompt_refs }]);
  const kept = rows.flatMap(({ body }) => unpackValue<ToldPart[]>(source, owner, body));
  const withPrompt = rows.some(({ session }) => session === null);
  const parts = withPrompt ? kept : [...kept, ownPrompt(source, turn, sent.told)];
  checkTold(parts, sent.told, turn.n);
  return { sent, sessionId, parts };
}

/** The prompt of a turn, when it was sent without anything before it. */
function ownPrompt(source: ContentSource, { owner, n, prompt, prompt_refs }: TurnRow, sha256: string): ToldPart {
  return { as: 'prompt', turn: n, content: readValue<Prompt>(source, owner, prompt, prompt_refs), sha256 };
}

/** Throws `storage_damaged` when a part does not match its hash. `sha256`: of the last part, as it was sent. */
function checkTold(parts: readonly ToldPart[], sha256: string, n: number): void {
  if (parts.every(isWhole) && parts.at(-1)?.sha256 === sha256) return;
  throw new ThroughlineError(
    'storage_damaged',
    `The stored text of what the session of turn ${n} was told does not match its hash.`,
    { hint: RESTORE_HINT },
  );
}

function isWhole(part: ToldPart): boolean {
  return hash('sha256', part.as === 'transcript' ? part.text : JSON.stringify(part.content), 'hex') === part.sha256;
}

/** All receipts of a conversation are read in pages, because a long one has very many. */
export function receiptStore({ reading }: StepAccess): Pick<SessionStore, 'receipts'> {
  const [ofTurn, page] = [reading(receiptsOfTurn), reading(receiptPage)];
  return {
    async receipts(owner, id, { turn } = {}) {
      if (turn !== undefined) return ofTurn(owner, id, turn);
      const found = await gathered(inPages<NumberedReceipt>((last) => page(owner, id, last)));
      return found.map(({ receipt }) => receipt);
    },
  };
}

/** `warm`: the epoch of a warm-up; 0: it is for a turn. */
interface NumberedReceipt {
  readonly turn: number;
  readonly warm: number;
  readonly attempt: number;
  readonly receipt: Receipt;
}

function* receiptsOfTurn(owner: string, id: string, turn: number): Steps<Receipt[]> {
  const rows = yield* all<{ body: string }>(OF_TURN, yield* conversationNo(owner, id), turn);
  return rows.map(({ body }) => JSON.parse(body));
}

function* receiptPage(owner: string, id: string, last: NumberedReceipt | undefined): Steps<NumberedReceipt[]> {
  const { turn, warm, attempt } = last ?? { turn: -1, warm: 0, attempt: 0 };
  type Row = Omit<NumberedReceipt, 'receipt'> & { readonly body: string };
  const rows = yield* all<Row>(RECEIPTS, yield* conversationNo(owner, id), turn, warm, attempt);
  return rows.map(({ body, ...place }) => ({ ...place, receipt: JSON.parse(body) }));
}

/** A page. Receipts are small, so it is not cut by its size. */
export function* restores(owner: string, id: string, range: CheckedRange): Steps<PlacedReceipt[]> {
  // The start includes warm-ups before the first turn.
  const [text, from] = 'after' in range ? [RESTORED_AFTER, range.after || -1] : [RESTORED_BEFORE, range.before];
  const no = yield* conversationNo(owner, id);
  const rows = yield* all<{ turn: number; body: string }>(text, no, from, Math.max(0, range.limit));
  return rows.map(({ turn, body }) => ({ n: turn, receipt: JSON.parse(body) as Receipt }));
}

export function* usageDays(owner: string, page: UsagePage<LastUsage> = {}): Steps<UsageRow[]> {
  const { since = '', limit, before = { day: LAST_DAY, agent: '' } } = page;
  const most = limit ?? Number.MAX_SAFE_INTEGER;
  type Row = Omit<UsageRow, 'usage'> & { usage: string };
  const rows = yield* each<Row>(DAYS, owner, since, before.day, before.agent, most);
  return pageOf(rows, (row) => ({ ...row, usage: JSON.parse(row.usage) }), { limit });
}

export function* summary(monotonic: number, owner: string, id: string): Steps<Summary> {
  type Named = Pick<Summary, 'key' | 'title'> & { readonly no: number; readonly owner: string };
  const named = yield* one<Named>(NAMED, id);
  if (named === undefined || named.owner !== owner) throw noConversation();
  const { no, key, title } = named;
  const totals = (yield* one<TotalsRow>(TOTALS, no)) as TotalsRow;
  const lease = (yield* one<HolderRow>(HOLDER, no)) as HolderRow;
  return summaryOf({ conversation: id, key, title }, totals, lease, monotonic);
}
