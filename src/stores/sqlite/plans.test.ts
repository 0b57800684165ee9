import { hash } from 'node:crypto';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { CLOCK, temporaryFolder } from '../../../test/contracts/sqlite-folder.ts';
import { claimTask, finish, newTask, taskClaimRequest, taskTurn } from '../../../test/contracts/store/task-world.ts';
import {
  ANN,
  beginNext,
  begun,
  claimRequest,
  ending,
  enqueue,
  fresh,
  opening,
  receipt,
  record,
  sending,
  session,
  spec,
  update,
  usage,
  WORKER,
} from '../../../test/contracts/store/world.ts';
import type { Write } from '../../ports/store/writes.ts';
import { listConversations } from './conversations/conversations.ts';
import type { Database } from './file/database.ts';
import { openDatabase } from './file/open.ts';
import { search } from './reading/search.ts';
import { storeOn } from './store.ts';

/** Statements that look at every row, each with the reason why it may. */
const MAY_SCAN: readonly RegExp[] = [
  /^UPDATE (leases|tasks|workers|sandboxes) SET (ready_at|lease_end|takes|held_until) = .*\?1/, // once a boot
  /^SELECT id, process, takes FROM workers/, // one row for each living process
  /^SELECT count.* put_away = 1$/, // an index of only those that were put away
  /^PRAGMA|^SELECT 1 FROM sqlite_schema|sqlite_version/, // about the file
];
/** As slow as a full scan: most conversations may have the same owner. */
const ALL_OF_OWNER = /^SEARCH (c|conversations) .*\(owner=\?\)$/;
/** There may be thousands of open tasks: waiting for others, or for a person. */
const readsAllOpen = (step: string, sql: string) =>
  /^SEARCH (t|tasks) USING INDEX tasks_state \(state=\?\)$/.test(step) && /waiting.*asking/.test(sql);
/** Steps that do not scan one of our tables. */
const HARMLESS = /^SCAN (CONSTANT ROW|pragma_|json_each VIRTUAL|w VIRTUAL|words VIRTUAL TABLE INDEX 0:=)/;

test('no statement of any verb scans a whole table: the cost of turn n does not grow with n', async () => {
  const file = join(temporaryFolder(), 'store.db');
  const db = await openDatabase({ file, boot: 'boot-1', clock: CLOCK, busyMs: 1000 });
  const { store } = storeOn(db, { file, clock: CLOCK, busyMs: 1000, boot: 'boot-1' });
  onTestFinished(() => store.close());
  await everyVerb(store);
  // A search is one step, however many rows it finds: it must run in the thread, and not on this connection.
  expect(db.statements.filter((sql) => sql.includes('MATCH'))).toEqual([]);
  search(db, ANN, 'say', 9);
  const statements = db.statements.filter((sql) => !MAY_SCAN.some((pattern) => pattern.test(sql)));
  expect(statements.length).toBeGreaterThan(70);
  const walks = statements.flatMap((sql) =>
    steps(db, sql)
      .filter((step) => walksOverTable(step) || readsAllOpen(step, sql))
      .map((step) => `${step}: ${sql.trim()}`),
  );
  expect(walks).toEqual([]);
});

test('a scan of a whole table would be detected', async () => {
  const file = join(temporaryFolder(), 'store.db');
  const db = await openDatabase({ file, boot: 'boot-1', clock: CLOCK, busyMs: 1000 });
  expect(steps(db, 'SELECT * FROM turns WHERE agent = ?').filter(walksOverTable)).toEqual(['SCAN turns']);
  expect(steps(db, 'SELECT count(*) FROM events').filter(walksOverTable)).toHaveLength(1);
  db.close();
});

const FILTERS = [
  { agent: 'a' },
  { states: ['asks'] },
  { states: ['asks', 'failed', 'idle'] },
  { agent: 'a', states: ['failed'], since: 1, until: 9 },
  { putAway: false, pinned: true },
] as const;

test('a page of conversations is read from an index in its order, for every filter, without sorting', async () => {
  const file = join(temporaryFolder(), 'store.db');
  const db = await openDatabase({ file, boot: 'boot-1', clock: CLOCK, busyMs: 1000 });
  onTestFinished(() => db.close());
  for (const filter of [{}, ...FILTERS]) listConversations(db, ANN, { limit: 1, ...filter });
  const lists = db.statements.filter((sql) => sql.includes('conversations_listed'));
  const plans = lists.map((sql) => steps(db, sql));
  const found = plans.map((plan) => plan.filter((step) => step.startsWith('SEARCH c ')));
  expect(found.map((listed) => listed.length)).toEqual([7, 1, 3]); // one search a state; filters by other columns have the same statements
  const search = 'USING INDEX conversations_listed (owner=? AND state=? AND updated_at>? AND (updated_at,id)<(?,?)';
  for (const step of found.flat()) expect(step).toContain(search);
  expect(plans.flat().filter((step) => step.includes('TEMP B-TREE'))).toEqual([]);
});

function steps(db: Database, sql: string): string[] {
  if (/^(BEGIN|COMMIT|ROLLBACK|SAVEPOINT|RELEASE)/.test(sql)) return [];
  return db.all<{ detail: string }>(`EXPLAIN QUERY PLAN ${sql}`).map(({ detail }) => detail);
}

function walksOverTable(step: string): boolean {
  return (step.startsWith('SCAN') && !HARMLESS.test(step)) || ALL_OF_OWNER.test(step);
}

/** Every verb of the port, and every kind of write. */
async function everyVerb(store: ReturnType<typeof storeOn>['store']): Promise<void> {
  const stop = store.listen(() => {});
  await store.createLink(ANN, { hash: 'h', scopes: ['read'], grantEnds: null, validMs: 9, most: 9 });
  await store.takeLink('h');
  const { conversation, turn, holder, fence } = await begun(store, { key: 'k' });
  const other = await begun(store);
  await store.ensureConversation(ANN, spec({ key: 'k' }));
  const opened = session();
  const permission = (id: string) => ({ id, attempt: 1, title: 't', toolCall: {}, options: [yes] });
  const [a, b] = [fresh('permission'), fresh('permission')];
  await holder.write(opening(opened, turn.id), { write: 'receipt', receipt: receipt(), turn: turn.id, session: null });
  await holder.write({ write: 'receipt', receipt: receipt({ usage: usage(1) }), turn: turn.id, session: opened.ref });
  await holder.write(sending(turn.id, { session: opened.ref }), update(turn.id, 'x'));
  await holder.write({ write: 'retry', turn: turn.id, failure: { code: 'agent_failed', message: 'x' } });
  await holder.write({ write: 'ask', turn: turn.id, permission: permission(a) });
  await store.answer(ANN, a, 'yes', 'x');
  await holder.write({ write: 'ask', turn: turn.id, permission: permission(b) });
  await holder.write({ write: 'deny', turn: turn.id, permission: b, reason: 'x' });
  const sha256 = hash('sha256', 'x', 'hex');
  const told = [{ as: 'transcript', text: 'x', sha256 }] as const;
  await holder.write({ write: 'told', session: opened.ref, told }, update(turn.id, 'x'));
  await holder.write({ ...sending(turn.id, { session: opened.ref, told: sha256 }), told } as Write);
  const long = record(turn, { parts: [{ type: 'text', text: 'x'.repeat(9000) }] });
  await holder.write(ending(turn, { session: opened.ref, record: long, usage: usage(1) }), {
    write: 'change-session',
    ref: opened.ref,
    change: { state: 'dormant', watermark: 1 },
    reason: null,
  });
  const next = await enqueue(store, conversation, {
    requestId: 'r',
    options: { session: opened.id },
    retryOf: turn.id,
  });
  await beginNext(store, fence, [next.agent]);
  await store.requestCancel(ANN, next.id, 'x');
  await store.renew([fence], 1);
  await store.release(fence);
  await store.claim(claimRequest());
  await store.claim(claimRequest({ conversation: other.conversation }));
  await store.requestCancel(ANN, (await enqueue(store, other.conversation)).id, 'x');
  await store.claim(claimRequest({ withoutTurn: true }));
  await store.next(claimRequest({ share: { after: 'b', busy: [ANN], full: ['c'] } }), { perOwner: 8, all: 64 });
  await store.enlist({ ...WORKER, place: 'here', agents: [] });
  await store.takers();
  await store.namePlace('here', '/home');
  await store.standings(ANN, [conversation]);
  await store.workers();
  await store.holdings(ANN, 9);
  await store.countHoldings(ANN);
  await store.measure();
  await store.processesOf('worker-1');
  await store.forgetWorker('worker-1');
  await store.fork(ANN, conversation, 1, spec());
  const sessions = [{ id: 's', agent: 'a', origin: 'new', watermark: 1, parent: null }] as const;
  await store.importConversation(ANN, spec(), { records: [long], sessions });
  await store.setTitle(ANN, conversation, 'T', 'caller');
  await store.arrange(ANN, conversation, { putAway: true });
  await store.countPutAway(ANN);
  await store.findConversation(ANN, 'k');
  const [first] = await store.listConversations(ANN, { limit: 1 });
  await store.listConversations(ANN, { limit: 1, before: { updatedAt: first?.updatedAt ?? 0, id: first?.id ?? '' } });
  for (const filter of FILTERS) await store.listConversations(ANN, { limit: 1, ...filter });
  await store.events(ANN, conversation, { after: 0, limit: 9 });
  await store.eventsBefore(ANN, conversation, { before: 9, limit: 9 });
  await store.eventsBefore(ANN, conversation, { before: 9, limit: 9, turn: 1 });
  await store.findTurn(ANN, turn.id);
  await store.findRequest(ANN, 'r');
  const due = await enqueue(store, conversation, { options: { deliverTo: 'x' } });
  await store.requestCancel(ANN, due.id, 'x');
  await store.pending(ANN, { limit: 9 });
  await store.pending(ANN, { after: due.id, limit: 9 });
  await store.setDelivered(ANN, due.id);
  for (const requestId of [null, 'task/t/1.1']) await enqueue(store, conversation, { requestId });
  // All that are queued: on a slow machine a lease has ended, and an earlier turn is queued again.
  const queue = await store.queued(ANN, conversation, { after: 0, limit: 9 });
  const changes = queue.toReversed().map(({ id }) => ({ turn: id, id: fresh('turn') }));
  const swapped = { conversation, changes, by: 'x' };
  for (const _ of [1, 2]) await store.requeue(ANN, { ...swapped, requestId: 'q' });
  for (const { id } of await store.queued(ANN, conversation, { after: 0, limit: 9 })) {
    await store.requestCancel(ANN, id, 'x');
  }
  await store.told(ANN, turn.id);
  await store.turns(ANN, conversation, { after: 0, limit: 9 });
  await store.outline(ANN, conversation, { after: 0, limit: 9 });
  await store.outline(ANN, conversation, { before: 9, limit: 9 });
  await store.turns(ANN, conversation, { before: 9, limit: 9 });
  await store.turnEvents(ANN, turn.id);
  await store.recordsBefore(ANN, conversation, { upTo: 9, limit: 9 });
  await store.recordsAfter(ANN, conversation, { after: 0, limit: 9 });
  await store.countRecordsAfter(ANN, conversation, 0);
  await store.sessions(ANN, conversation);
  await store.sessions(ANN, conversation, { agent: 'a' });
  await store.sessionIsElsewhere(ANN, conversation, { storage: 'any', id: opened.id });
  await store.findSessions(ANN, opened.id);
  await store.receipts(ANN, conversation);
  await store.receipts(ANN, conversation, { turn: 1 });
  for (const filter of [{}, { open: true }, { conversation }]) await store.permissions(ANN, filter);
  await store.findPermission(ANN, a);
  await store.openPermissions(ANN, conversation);
  await store.summary(ANN, conversation);
  await store.usage(ANN, { since: '2026-01-01', limit: 9, before: { day: '2026-01-31', agent: 'a' } });
  await store.search(ANN, 'say', 9);
  await store.verify(ANN, conversation);
  await everyTaskVerb(store);
  await everySandboxVerb(store);
  await store.eraseConversation(ANN, (await store.fork(ANN, conversation, 1, spec())).id);
  stop();
}

async function everySandboxVerb(store: ReturnType<typeof storeOn>['store']): Promise<void> {
  const id = 'shared';
  const conversation = (await store.ensureConversation(ANN, spec({ sandbox: id }))).conversation.id;
  await store.nameSandbox(ANN, { id, place: 'here', name: 'website' });
  await store.findSandbox(ANN, 'website');
  for (const page of [{}, { before: id }]) await store.listSandboxes(ANN, { limit: 9, ...page });
  await store.idleSandboxes({ place: 'here', before: 1, awake: true, limit: 9 });
  await store.sandboxUses(ANN, id, 9);
  await store.openSandbox(ANN, { id, place: 'here' }, WORKER);
  await store.holdSandbox(ANN, id, { worker: WORKER, leaseMs: 1, unused: true });
  await store.releaseSandbox(ANN, id, WORKER.id);
  await store.changeSandbox(ANN, id, { setup: [], disk: { work: 1, state: 1, copies: 1, at: 1 } });
  await store.diskUse(ANN);
  await store.copiedBytes(ANN, id);
  await store.leaveSandbox(ANN, id, 'rested', 'x');
  await store.eraseConversation(ANN, conversation);
  await store.leaveSandbox(ANN, id, 'destroyed', 'x');
}

async function everyTaskVerb({ tasks: verbs, ...store }: ReturnType<typeof storeOn>['store']): Promise<void> {
  const [a, b] = [newTask({ name: 'a', milestone: 'm' }), newTask()];
  await verbs.add(ANN, { plan: 'p', place: 'here', parallel: 1, tasks: [a, { ...b, after: [a.id] }] });
  await verbs.find(ANN, 'a');
  await verbs.list(ANN, { states: ['queued'], milestone: 'm' }, { limit: 9 });
  const claim = await claimTask({ ...store, tasks: verbs });
  const turns = [taskTurn(), taskTurn()];
  await verbs.commit(claim.fence, { progress: claim.task.progress, gate: null, turns, events: [] });
  await verbs.renew([claim.fence], 1);
  await verbs.holders();
  await verbs.release(claim.fence);
  await claimTask({ ...store, tasks: verbs });
  await verbs.requestCancel(ANN, a.id, 'x');
  await verbs.forgetHolder('worker-1');
  const again = await claimTask({ ...store, tasks: verbs });
  await finish({ ...store, tasks: verbs }, again);
  await verbs.requestCancel(ANN, b.id, 'x');
  await verbs.retry(ANN, b.id, { by: 'x', say: null });
  await verbs.claim(taskClaimRequest({ only: [b.id] }));
  await verbs.events(ANN, { after: 0, limit: 9 });
  await verbs.events(ANN, { after: 0, limit: 9, task: a.id });
  await verbs.lastSeq(ANN);
  await verbs.usage(ANN, { since: '2026-01-01', limit: 9, before: { day: '2026-01-31', task: a.id } });
}

const yes = { optionId: 'yes', name: 'Yes', kind: 'allow_once' } as const;
