import { given } from '../../core/input/arguments.ts';
import type { Session } from '../../core/restore/session.ts';
import type { Standing } from '../../core/turn/standing.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Health } from '../../ports/health.ts';
import type { Store } from '../../ports/store.ts';
import { COPY_FACTS, type CopyFact, checkUsable } from '../shared/copy/tables.ts';
import { sharedVerbs } from '../shared/store.ts';
import { census } from '../shared/verbs/census.ts';
import { commit } from '../shared/writing/commit.ts';
import { enqueue, ensureConversation } from '../shared/writing/enqueue.ts';
import { spendingOf } from '../shared/writing/totals.ts';
import { countPutAway, findByKey, findConversation, listConversations } from './conversations/conversations.ts';
import { fork, importConversation } from './conversations/copy.ts';
import { eraseConversation, findToErase } from './conversations/erase.ts';
import { endUnfinished } from './conversations/unfinished.ts';
import { verify } from './conversations/verify.ts';
import { Access, type AccessOptions } from './file/access.ts';
import type { Database } from './file/database.ts';
import { unlessDamaged, whileBusy } from './file/faults.ts';
import { openDatabase } from './file/open.ts';
import type { WriteQueue } from './file/write-queue.ts';
import { acknowledgeLosses, logId, losses } from './loss/losses.ts';
import { inspect } from './reading/inspect.ts';
import { measure } from './reading/measure.ts';
import * as reads from './reading/reads.ts';
import { search } from './reading/search.ts';
import { carryOut } from './steps.ts';
import { taskStore } from './tasks/task-store.ts';
import { changing, ledgerAccess } from './turns/changing.ts';
import { claim, claimable, nextReady } from './turns/claim.ts';
import { holdings, release, renew, standings, workers } from './turns/leases.ts';

/*
 * The Store port on one SQLite file. This file says which function serves which verb; `stores/shared/store.ts` says it for verbs that are the same in
 * all stores. They are in
 *
 *   steps.ts         runs what is written once for all stores: in `stores/shared/writing` what turns write, in `stores/shared/verbs` keys,
 *                    sandboxes, tasks, changes of the queue, most reads
 *   file/            the database itself: opening it, access to it, its faults, the write queue (group commit), the bell
 *   loss/            what notices that stored data is gone: the identity of the files, the high-water mark
 *   conversations/   a conversation's rows, its ledger (numbered events), their hash chain; copying, erasing
 *   turns/           which conversation is claimed next, and leases
 *   reading/         what is read here in a way of its own: pages of events, search, the census for doctor
 *   tasks/           the TaskStore port, in the same file
 *   migrations/      the schema
 */
export interface SqliteOptions {
  /** Created with its directory if it does not exist. The file of the bell is beside it. */
  readonly file: string;
  readonly clock: Clock;
  /** This boot of this machine: `clock.monotonic` counts from it. */
  readonly boot: string;
  /** How long to wait for another process that holds the lock. */
  readonly busyMs?: number;
  /** Told when the file cannot be written, and when it can again. */
  readonly health?: Health;
  /** Given: an older database is not upgraded, but read from a temporary copy, and this is called with what to tell people. */
  readonly looks?: (note: string) => void;
  /** Called with a note for people when the restore that a killed process left was completed. */
  readonly onNote?: (note: string) => void;
}

/** Opens the store in one SQLite file, which any number of processes of this machine may share. */
export async function openSqliteStore(options: SqliteOptions): Promise<Store> {
  const { busyMs = 10_000, looks, onNote, ...access } = options;
  const db = await openDatabase({ ...access, busyMs, ...given({ looks, onNote }) });
  const facts = () => db.all<CopyFact>(COPY_FACTS);
  try {
    checkUsable(await whileBusy(() => unlessDamaged(facts, []), busyMs));
  } catch (error) {
    db.close();
    throw error;
  }
  return storeOn(db, { ...access, busyMs }).store;
}

/** The store on an open database; its queue too, for tests that count commits. */
export function storeOn(db: Database, options: AccessOptions): { store: Store; queue: WriteQueue } {
  const access = new Access(db, options);
  // If it fails, or the store is closed before its end, the next one that opens it continues.
  endUnfinished(access).catch(() => {});
  const store: Store = {
    ...sharedVerbs(ledgerAccess(access)),
    ...conversations(access),
    ...turns(access),
    ...history(access),
    log: access.reading(logId),
    losses: access.reading(losses),
    acknowledgeLosses: access.writing((tx) => acknowledgeLosses(tx.db)),
    census: () => access.read((db) => carryOut(db, census(access.clock.monotonic()))),
    measure: () => access.read((db) => measure(db, options.file, access.queue.commitTimes)),
    inspect: access.reading(inspect),
    tasks: taskStore(access),
    isElsewhere: false,
    address: `sqlite:${options.file}`,
    listen(listener) {
      access.checkOpen();
      return access.bell.listen(listener);
    },
    check: async () => access.checkFile(),
    close: () => access.close(),
  };
  return { store, queue: access.queue };
}

function conversations(access: Access) {
  return {
    async ensureConversation(owner, spec) {
      const { key } = spec;
      const known = key === null ? null : await access.read((db) => findByKey(db, owner, key));
      if (known !== null) return { conversation: known, created: false };
      return access.write((tx) => changing(ensureConversation)(tx, owner, spec));
    },
    findConversation: access.reading(findConversation),
    countPutAway: access.reading(countPutAway),
    listConversations: access.paging('listConversations', listConversations),
    fork: (...args) => fork(access, ...args),
    importConversation: (...args) => importConversation(access, ...args),
    eraseConversation: (...args) => eraseConversation(access, ...args),
    findToErase: (...args) => findToErase(access, ...args),
  } satisfies Partial<Store>;
}

function turns(access: Access) {
  const { clock } = access;
  return {
    enqueue: access.writing(changing(enqueue)),
    async next(request, most) {
      const found = await access.read((db) => nextReady(db, request, clock.monotonic(), most));
      return found.map(({ owner, conversation }) => ({ owner, conversation }));
    },
    async claim(request) {
      // Workers ask often: a transaction starts only if there is something to claim.
      if ((await access.read((db) => claimable(db, request, clock.monotonic()))) === null) return null;
      return access.write((tx) => claim(tx, request));
    },
    renew: access.renewing(renew),
    release: access.writing(release),
    workers: access.reading(workers),
    holdings: (owner, limit) => access.read((db) => holdings(db, owner, limit, clock.monotonic())),
    standings: (owner, ids) => standingsInParts(access, owner, ids),
    commit: (fence, ...args) => access.write((tx) => changing(commit)(tx, fence, ...args), fence.conversation),
  } satisfies Partial<Store>;
}

function history(access: Access) {
  return {
    events: access.reading(reads.events),
    eventsBefore: access.paging('eventsBefore', reads.eventsBefore),
    permissions: access.paging('permissions', reads.permissions),
    sessions: (...args) => sessionsInPages(access, ...args),
    search: access.inThread('search', search),
    verify: (owner, id, head) => verify(access, owner, id, head),
    spending: (owner, id) => access.read((db) => carryOut(db, spendingOf(owner, id, access.clock.now()))),
  } satisfies Partial<Store>;
}

/** A conversation whose agent changes its ids has as many as turns. */
async function sessionsInPages(
  access: Access,
  owner: string,
  id: string,
  { agent, limit = Number.POSITIVE_INFINITY }: { agent?: string; limit?: number } = {},
): Promise<Session[]> {
  const all: Session[] = [];
  for (let last: reads.LastSession | null = null, isOver = false; !isOver; ) {
    const page = { limit: Math.min(AT_ONCE, limit - all.length), before: last, ...given({ agent }) };
    const read: reads.SessionPage = await access.read((db) => reads.sessions(db, owner, id, page));
    all.push(...read.sessions);
    last = read.last;
    isOver = last === null || read.sessions.length < page.limit || all.length >= limit;
  }
  return all;
}

async function standingsInParts(access: Access, owner: string, ids: readonly string[]): Promise<Standing[]> {
  const all: Standing[] = [];
  for (let at = 0; at < ids.length; at += AT_ONCE) {
    const some = ids.slice(at, at + AT_ONCE);
    all.push(...(await access.read((db) => standings(db, owner, some, access.clock.monotonic()))));
  }
  return all;
}

/** How many rows are read in one step, so that others are served in between. */
const AT_ONCE = 500;
