// Statements of a PostgreSQL store are planned once, often while its tables are empty. Their plans must be good for large tables: each row is
// found by a selective index, and not by a scan of all rows of its owner or all turns of its conversation.
import pg from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Store } from '../../src/ports/store.ts';
import { KEEP_PLANS } from '../../src/stores/postgres/plans.ts';
import { openPostgresStore } from '../../src/stores/postgres/store.ts';
import { NO_POSTGRES, postgresServer } from '../postgres/server.ts';
import {
  AGENT,
  ANN,
  asking,
  begun,
  claim,
  claimRequest,
  ending,
  enqueue,
  Holder,
  newConversation,
  opening,
  receipt,
  runTurn,
  sending,
  session,
  update,
  WORKER,
} from './store/world.ts';

const server = postgresServer();

if (NO_POSTGRES === null) describe('plans of a PostgreSQL store', plans);
else test('plans of a PostgreSQL store', (context) => context.skip(NO_POSTGRES ?? ''));

/** Tables that grow without end. */
const LARGE = ['conversations', 'leases', 'turns', 'records', 'words', 'events', 'sessions', 'receipts', 'permissions'];
/** Indexes whose first columns match many rows, with the column that a condition must have to match few. */
const NEEDS: Readonly<Record<string, RegExp>> = {
  conversations_key: /\bkey\b/,
  conversations_recent: /\bupdated_at\b/,
  turns_n: /\bn\b/,
  turns_request: /\brequest_id\b/,
  records_n: /\bn\b/,
  events_pkey: /\bseq\b/,
  events_written: /\bepoch\b/,
  leases_waiting: /\bdriver\b/,
  permissions_owner: /\bno\b/,
};
/** Indexes of what is held or open now: few rows, however large the table is. */
const SMALL = ['leases_held', 'leases_waiting', 'turns_open', 'permissions_open', 'permissions_asking'];

interface Node {
  readonly 'Node Type': string;
  readonly 'Relation Name'?: string;
  readonly 'Index Name'?: string;
  readonly 'Index Cond'?: string;
  readonly Plans?: readonly Node[];
}

function plans() {
  test('every statement of a turn uses a selective index, even when it is planned on empty tables', async () => {
    const url = server().url(await server().database());
    const kept = await keptDuring(async () => {
      const store = await openPostgresStore({ url });
      onTestFinished(() => store.close());
      // Once alone, and several at once: then they share statements.
      await everyVerb(store);
      await Promise.all([everyVerb(store), everyVerb(store), everyVerb(store)]);
    });
    expect(kept.size).toBeGreaterThan(60);
    const empty = new pg.Client({ connectionString: server().url(await emptyDatabase()) });
    await empty.connect();
    onTestFinished(() => empty.end());
    await empty.query(KEEP_PLANS);
    const faults: string[] = [];
    for (const text of kept) {
      const { rows } = await empty.query(`EXPLAIN (GENERIC_PLAN, FORMAT JSON) ${text}`);
      faults.push(...faultsOf(rows[0]['QUERY PLAN'][0].Plan).map((fault) => `${fault} in ${text}`));
    }
    expect(faults).toEqual([]);
  });
}

async function emptyDatabase(): Promise<string> {
  const name = await server().database();
  await (await openPostgresStore({ url: server().url(name) })).close();
  return name;
}

/** The prepared statements that connections of this process send during the work. */
async function keptDuring(work: () => Promise<void>): Promise<Set<string>> {
  const { prototype } = pg.Client as unknown as { prototype: { query: (...args: unknown[]) => unknown } };
  const { query } = prototype;
  const kept = new Set<string>();
  prototype.query = function (...args) {
    const [asked] = args as [{ name?: string; text: string }];
    if (asked.name !== undefined) kept.add(asked.text);
    return query.apply(this, args);
  };
  try {
    await work();
  } finally {
    prototype.query = query;
  }
  return kept;
}

/** Calls every verb that turns of a conversation use. */
async function everyVerb(store: Store): Promise<void> {
  const { conversation, turn, holder } = await begun(store, { key: `key-${crypto.randomUUID()}` });
  const opened = session();
  await holder.write(opening(opened, turn.id), { write: 'receipt', receipt: receipt(), turn: turn.id, session: null });
  await holder.write(sending(turn.id, { session: opened.ref }), update(turn.id, 'word'), asking(turn.id));
  const [asked] = await store.permissions(ANN, { conversation, open: true });
  await store.answer(ANN, asked?.id ?? '', 'yes', ANN);
  const change = { state: 'live', watermark: 1 } as const;
  await holder.write(
    { write: 'change-session', ref: opened.ref, change, reason: null },
    ending(turn, { session: opened.ref }),
  );
  await runTurn(store, holder, { requestId: crypto.randomUUID() }, { session: opened.ref });
  await enqueue(store, conversation);
  await Promise.all([
    store.findConversation(ANN, conversation),
    store.findConversation(ANN, 'no-such-key'),
    store.findTurn(ANN, turn.id),
    store.findRequest(ANN, 'no-such-request'),
    store.summary(ANN, conversation),
    store.openPermissions(ANN, conversation),
    store.spending(ANN, conversation),
    store.standings(ANN, [conversation]),
    store.sessions(ANN, conversation, { agent: AGENT, limit: 5 }),
    store.events(ANN, conversation, { after: 0, limit: 10, bytes: 1_000 }),
    store.turnEvents(ANN, turn.id, { after: 0, limit: 10 }),
    store.recordsAfter(ANN, conversation, { after: 0, limit: 10 }),
    store.recordsBefore(ANN, conversation, { upTo: 5, limit: 10 }),
    store.unknownParts(ANN, conversation),
    store.receipts(ANN, conversation, { turn: 1 }),
    store.turns(ANN, conversation, { after: 0, limit: 10 }),
    store.next(claimRequest(), { perOwner: 8, all: 64 }),
    store.renew([holder.fence], 60_000),
    store.workers(),
  ]);
  await store.requestCancel(ANN, (await enqueue(store, conversation)).id, ANN);
  await store.release(holder.fence);
  const again = await claim(store, { conversation, worker: WORKER });
  await store.release(new Holder(store, again.fence).fence);
  await newConversation(store);
}

function faultsOf(node: Node): string[] {
  const below = (node.Plans ?? []).flatMap(faultsOf);
  const { 'Node Type': type, 'Relation Name': table, 'Index Name': index = '', 'Index Cond': condition } = node;
  if (table === undefined || !LARGE.includes(table) || /Modify|Bitmap Heap|LockRows/.test(type)) return below;
  if (!/Index/.test(type)) return [...below, `${type} of ${table}`];
  if (condition === undefined) return SMALL.includes(index) ? below : [...below, `all of ${index}`];
  const needed = NEEDS[index];
  return needed === undefined || needed.test(condition) ? below : [...below, `${index} by ${condition}`];
}
