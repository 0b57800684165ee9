import { setImmediate as breathe } from 'node:timers/promises';
import { ThroughlineError } from '../../core/errors.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Store } from '../../ports/store.ts';
import {
  conversationRow,
  ensureConversation,
  findByKey,
  findConversation,
  listConversations,
  setTitle,
} from './conversations/conversations.ts';
import { fork, importConversation } from './conversations/copy.ts';
import { eraseConversation, verifiedOwner } from './conversations/erase.ts';
import { foundIn, START, verifyPage } from './conversations/verify.ts';
import { Bell } from './file/bell.ts';
import type { Database } from './file/database.ts';
import { storageFault, whileBusy } from './file/faults.ts';
import { openDatabase } from './file/open.ts';
import { type Tx, WriteQueue } from './file/write-queue.ts';
import { createKey, findKey, keysOf, revokeKey } from './keys.ts';
import { census } from './reading/census.ts';
import * as reads from './reading/reads.ts';
import { search } from './reading/search.ts';
import { taskStore } from './tasks/task-store.ts';
import { begin, beginnable, claim, claimable } from './turns/claim.ts';
import { commit } from './turns/commit.ts';
import { requestCancel } from './turns/end.ts';
import { enqueue } from './turns/enqueue.ts';
import { forgetWorker, processesOf, release, renew, workers } from './turns/leases.ts';
import { answer } from './turns/permissions.ts';
import { receipts } from './turns/receipts.ts';
import { transcript } from './turns/sessions.ts';
import { summary, usageDays } from './turns/totals.ts';

/*
 * The Store port on one SQLite file. This file says which function serves which verb; the functions are in
 *
 *   file/            the database itself: opening it, its faults, the write queue (group commit), the bell
 *   conversations/   a conversation's rows, its ledger (numbered events), their hash chain; copying, erasing
 *   turns/           from enqueue through claim and commit to the end of a turn; leases, sessions, receipts, permissions
 *   reading/         what is only read: pages, search, the census for doctor
 *   tasks/           the TaskStore port, in the same file
 *   migrations/      the schema
 */
export interface SqliteOptions {
  /** Made with its directory when missing. The doorbell is a file beside it. */
  readonly file: string;
  readonly clock: Clock;
  /** This boot of this machine: what lease times are measured in. */
  readonly boot: string;
  /** How long to wait for another process that holds the lock. */
  readonly busyMs?: number;
}

/** Conversations in one SQLite file, which any number of processes of this machine may share. */
export async function openSqliteStore(options: SqliteOptions): Promise<Store> {
  const { file, clock, boot, busyMs = 10_000 } = options;
  const db = await openDatabase({ file, boot, monotonic: clock.monotonic(), busyMs });
  return storeOn(db, { file, clock, busyMs }).store;
}

interface Parts {
  readonly file: string;
  readonly clock: Clock;
  readonly busyMs: number;
}

/** The store on an open database; its queue too, for tests that count commits. */
export function storeOn(db: Database, { file, clock, busyMs }: Parts): { store: Store; queue: WriteQueue } {
  const bell = new Bell(`${file}.bell`, db, () => clock.monotonic());
  const queue = new WriteQueue(db, {
    busyMs,
    times: () => ({ now: clock.now(), monotonic: clock.monotonic() }),
    committed: (news) => bell.notify(news),
  });
  let closing: Promise<void> | null = null;

  function checkOpen(): void {
    if (closing !== null) throw new ThroughlineError('closed', 'The store is closed.');
  }
  async function write<T>(verb: (tx: Tx) => T): Promise<T> {
    checkOpen();
    return queue.write(verb);
  }
  async function read<T>(look: (db: Database) => T): Promise<T> {
    checkOpen();
    try {
      return await whileBusy(() => {
        checkOpen();
        return look(db);
      }, busyMs);
    } catch (error) {
      throw storageFault(error) ?? error;
    }
  }

  const store: Store = {
    async ensureConversation(owner, spec) {
      const { key } = spec;
      const known = key === null ? null : await read((from) => findByKey(from, owner, key));
      if (known !== null) return { conversation: known, created: false };
      return write((tx) => ensureConversation(tx, owner, spec));
    },
    findConversation: (owner, idOrKey) => read((from) => findConversation(from, owner, idOrKey)),
    listConversations: (owner, page) => read((from) => listConversations(from, owner, page)),
    setTitle: (owner, id, title, source) => write((tx) => setTitle(tx, owner, id, title, source)),
    fork: (owner, source, n, spec) => write((tx) => fork(tx, owner, source, n, spec)),
    importConversation: (owner, spec, history) => write((tx) => importConversation(tx, owner, spec, history)),
    eraseConversation: (owner, id) => write((tx) => eraseConversation(tx, owner, id)),

    enqueue: (owner, turn) => write((tx) => enqueue(tx, owner, turn)),
    requestCancel: (owner, turn, by) => write((tx) => requestCancel(tx, owner, turn, by)),
    answer: (owner, permission, optionId, by) => write((tx) => answer(tx, owner, permission, optionId, by)),

    async claim(request) {
      // Workers ask often: a transaction starts only if there is something to claim.
      if ((await read((from) => claimable(from, request, clock.monotonic()))) === null) return null;
      return write((tx) => claim(tx, request));
    },
    async begin(fence, agents) {
      // The turn may be waiting in the queue: then only the transaction can tell.
      if (queue.isEmpty && (await read((from) => beginnable(from, fence, agents))) === null) return null;
      return write((tx) => begin(tx, fence, agents));
    },
    renew: (fences, leaseMs) => write((tx) => renew(tx, fences, leaseMs)),
    release: (fence) => write((tx) => release(tx, fence)),
    workers: () => read(workers),
    processesOf: (worker) => read((from) => processesOf(from, worker)),
    forgetWorker: (worker) => write((tx) => forgetWorker(tx, worker)),

    commit: (fence, counter, writes) => write((tx) => commit(tx, fence, counter, writes)),

    events: (owner, id, range) => read((from) => reads.events(from, owner, id, range)),
    findTurn: (owner, id) => read((from) => reads.findTurn(from, owner, id)),
    findRequest: (owner, requestId) => read((from) => reads.findRequest(from, owner, requestId)),
    turns: (owner, id, page) => read((from) => reads.turns(from, owner, id, page)),
    turnEvents: (owner, id, range) => read((from) => reads.turnEvents(from, owner, id, range)),
    recordsBefore: (owner, id, page) => read((from) => reads.recordsBefore(from, owner, id, page)),
    recordsAfter: (owner, id, page) => read((from) => reads.recordsAfter(from, owner, id, page)),
    countRecordsAfter: (owner, id, after) => read((from) => reads.countRecordsAfter(from, owner, id, after)),
    sessions: (owner, id, filter) => read((from) => reads.sessions(from, owner, id, filter)),
    sessionIsElsewhere: (owner, id, native) => read((from) => reads.sessionIsElsewhere(from, owner, id, native)),
    findSessions: (owner, id) => read((from) => reads.findSessions(from, owner, id)),
    transcript: (owner, id, ref) => read((from) => transcript(from, owner, id, ref)),
    receipts: (owner, id, page) => read((from) => receipts(from, owner, id, page)),
    permissions: (owner, filter, page) => read((from) => reads.permissions(from, owner, filter, page)),
    findPermission: (owner, id) => read((from) => reads.findPermission(from, owner, id)),
    summary: (owner, id) => read((from) => summary(from, owner, id, clock.monotonic())),
    usage: (owner, page) => read((from) => usageDays(from, owner, page)),
    search: (owner, query, limit) => read((from) => search(from, owner, query, limit)),
    async verify(owner, id, head) {
      const under = await read((from) => verifiedOwner(from, owner, id));
      const end = await read((from) => conversationRow(from, under, id).next_seq - 1);
      for (let walk = START; ; ) {
        const at = walk;
        const step = await read((from) => verifyPage(from, under, id, at, end));
        if ('next' in step) walk = step.next;
        else return read((from) => foundIn(from, under, id, { ...step, end }, head));
        await breathe();
      }
    },

    createKey: (owner, key) => write((tx) => createKey(tx, owner, key)),
    findKey: (id) => read((from) => findKey(from, id)),
    keys: (owner) => read((from) => keysOf(from, owner)),
    revokeKey: (owner, id) => write((tx) => revokeKey(tx, owner, id)),

    census: () => read(census),
    tasks: taskStore({ read, write, clock }),

    listen(listener) {
      checkOpen();
      return bell.listen(listener);
    },
    close() {
      closing ??= queue.drained().then(() => {
        bell.close();
        db.close();
      });
      return closing;
    },
  };
  return { store, queue };
}
