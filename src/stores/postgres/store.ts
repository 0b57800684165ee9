import { ThroughlineError } from '../../core/errors.ts';
import { withoutPassword } from '../../core/input/settings.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Health } from '../../ports/health.ts';
import type { StoreConnections } from '../../ports/store/census.ts';
import type { Store } from '../../ports/store.ts';
import { COPY_FACTS, type CopyFact, checkUsable } from '../shared/copy/tables.ts';
import { LARGEST_PAGE } from '../shared/page.ts';
import { sharedVerbs } from '../shared/store.ts';
import { census } from '../shared/verbs/census.ts';
import { findToErase } from '../shared/verbs/erase.ts';
import { commit } from '../shared/writing/commit.ts';
import { enqueue, ensureConversation } from '../shared/writing/enqueue.ts';
import { spendingOf } from '../shared/writing/totals.ts';
import { countPutAway, findByKey, findConversation, listConversations } from './conversations/conversations.ts';
import { fork, importConversation } from './conversations/copy.ts';
import { eraseConversation } from './conversations/erase.ts';
import { verify } from './conversations/verify.ts';
import { inspect } from './reading/inspect.ts';
import { measure } from './reading/measure.ts';
import * as reads from './reading/reads.ts';
import { search } from './reading/search.ts';
import { Access } from './server/access.ts';
import { Bell } from './server/bell.ts';
import { Server, type Sql } from './server/connect.ts';
import { openFault } from './server/faults.ts';
import { upgrade } from './server/upgrade.ts';
import { carryOut, stepAccess } from './steps.ts';
import { taskStore } from './tasks/task-store.ts';
import { changing, ledgerAccess } from './turns/changing.ts';
import { claim, claimable, claimNamed, nextReady } from './turns/claim.ts';
import * as leases from './turns/leases.ts';

/*
 * The Store port on a PostgreSQL database, which any number of processes of any number of machines may share. This file says which
 * function serves which verb; `stores/shared/store.ts` says it for verbs that are the same in all stores. They are in
 *
 *   steps.ts         runs what is written once for all stores: in `stores/shared/writing` what turns write, in `stores/shared/verbs` keys,
 *                    sandboxes, tasks, changes of the queue, most reads
 *   plans.ts         how the server plans statements, and which plans are kept
 *   server/          the database itself: connections, transactions, reads of many at once, faults, the bell, bringing the schema up to date
 *   conversations/   a conversation's rows, its ledger (numbered events); copying, erasing, checking the chain
 *   turns/           which conversation is claimed next, and leases
 *   reading/         what is read here in a way of its own: pages of events, search, the census for doctor
 *   tasks/           the TaskStore port, in the same database
 *   migrations/      the schema
 *
 * What is decided is in `stores/shared`; here are statements. A verb that writes in a conversation locks its hot row first, and reads
 * after that. So what is written in one conversation has one order, and conversations do not wait for each other.
 */
export interface PostgresOptions {
  /** `postgres://user:password@host:port/database`, with libpq's options and `listen=HOST:PORT`. It is in no message and no log. */
  readonly url: string;
  /** The most connections, beside one that listens for the changes of others. Left out: 10. */
  readonly connections?: number;
  /** How often to look for changes that were not announced. Left out: every 5 seconds. */
  readonly pollMs?: number;
  /** How long a search may take. Left out: 10 seconds. */
  readonly searchMs?: number;
  /** How long a verb waits for a lock of another one. Left out: 5 seconds. */
  readonly lockMs?: number;
  /** Called with a function that says how the connections are used now. */
  readonly onConnections?: (read: () => StoreConnections) => void;
  /** Whether the process only looks: then an older schema is `refused`, and not brought up to date. */
  readonly looks?: boolean;
  /** Told when nothing can be written, and when it can again. */
  readonly health?: Health;
  /** The clock of tests. Left out: the database's, which all servers share. */
  readonly clock?: Clock;
}

/** Opens the store, and brings its schema up to date, unless the process only looks. */
export async function openPostgresStore(options: PostgresOptions): Promise<Store> {
  const { url, connections = 10, pollMs = 5_000, looks = false, onConnections, ...rest } = options;
  const server = await Server.at(url, connections);
  onConnections?.(() => server.connections);
  try {
    await upgrade(server, { looks });
    checkUsable(await server.sql.all<CopyFact>(COPY_FACTS));
    if (server.hearsElsewhere) await checkHearing(server);
    const bell = await Bell.open(server, pollMs).catch((error: unknown) => {
      throw openFault(error);
    });
    return storeOn(new Access(server, bell, { pollMs, ...rest }), withoutPassword(url));
  } catch (error) {
    await server.pool.end();
    throw error;
  }
}

/** A notification reaches only those who listen in the same database. */
async function checkHearing(server: Server): Promise<void> {
  const client = await server.connect().catch((error: unknown) => {
    throw openFault(error);
  });
  try {
    const { rows } = await client.query(LOG);
    const here = await server.sql.one<{ value: string }>(LOG);
    if (rows[0]?.value === here?.value) return;
  } finally {
    await client.end();
  }
  throw new ThroughlineError(
    'refused',
    'The option "listen" in the address of the store leads to another database than the address itself.',
    {
      hint: 'Name the host and port of the server that the pooler connects to.',
    },
  );
}

/** In bytes. */
const SMALL_PAGE = 256 * 1024;
const LOG = "SELECT value FROM facts WHERE owner = '' AND name = 'log'";

function storeOn(access: Access, address: string): Store {
  return {
    ...sharedVerbs(ledgerAccess(access)),
    ...conversations(access),
    ...turns(access),
    ...history(access),
    log: () => access.read(async (sql) => (await sql.one<{ value: string }>(LOG))?.value ?? ''),
    // We cannot notice data that the database server loses after a commit. Its own `fsync` and backups prevent that.
    losses: async () => [],
    acknowledgeLosses: async () => {},
    census: () =>
      access.readLong('check', '', async (sql) => carryOut(sql, census((await access.times(sql)).monotonic))),
    measure: () => access.read((sql) => measure(sql, access)),
    inspect: () => inspect((look) => access.readRaw(look)),
    tasks: taskStore(access),
    isElsewhere: true,
    address,
    listen(listener) {
      access.checkOpen();
      return access.bell.listen(listener);
    },
    check: () => access.read(async (sql) => void (await sql.one('SELECT 1'))),
    close: () => access.close(),
  };
}

function conversations(access: Access) {
  return {
    async ensureConversation(owner, spec) {
      const { key } = spec;
      const known = key === null ? null : await access.look((sql) => findByKey(sql, owner, key));
      if (known !== null) return { conversation: known, created: false };
      return access.write((tx) => changing(ensureConversation)(tx, owner, spec));
    },
    findConversation: access.looking(findConversation),
    listConversations: access.reading(listConversations),
    countPutAway: access.reading(countPutAway),
    fork: access.heavyWriting(fork),
    importConversation: access.heavyWriting(importConversation),
    eraseConversation: access.heavyWriting(eraseConversation),
    findToErase: stepAccess(access).reading(findToErase),
  } satisfies Partial<Store>;
}

function turns(access: Access) {
  const monotonic = async (sql: Sql) => (await access.times(sql)).monotonic;
  return {
    enqueue: (owner, turn) => access.writeIn(turn.conversation, (tx) => changing(enqueue)(tx, owner, turn)),
    async next(request, most) {
      const found = await access.look((sql) => nextReady(sql, request, access.fixedTime?.monotonic ?? null, most));
      return found.map(({ owner, conversation }) => ({ owner, conversation }));
    },
    async claim(request) {
      const { conversation } = request;
      if (conversation !== undefined)
        return access.writeIn(conversation, (tx) => claimNamed(tx, conversation, request));
      // Workers ask often: a transaction starts only if there is something to claim.
      const found = await access.look(async (sql) => claimable(sql, request, await monotonic(sql)));
      return found === null ? null : access.write((tx) => claim(tx, request));
    },
    renew: (fences, leaseMs) => leases.renew(access, fences, leaseMs),
    release: (fence) => access.writeIn(fence.conversation, (tx) => leases.release(tx, fence)),
    workers: access.looking(leases.workers),
    holdings: (owner, limit) => access.read(async (sql) => leases.holdings(sql, owner, limit, await monotonic(sql))),
    standings: (owner, ids) => access.look(async (sql) => leases.standings(sql, owner, ids, await monotonic(sql))),
    commit: (fence, ...args) => access.writeIn(fence.conversation, (tx) => changing(commit)(tx, fence, ...args)),
  } satisfies Partial<Store>;
}

function history(access: Access) {
  return {
    // Followers read small pages, because many of those are in memory at once.
    events: (owner, id, page) =>
      (page.bytes ?? LARGEST_PAGE) > SMALL_PAGE
        ? access.read((sql) => reads.events(sql, owner, id, page))
        : access.look((sql) => reads.events(sql, owner, id, page)),
    eventsBefore: access.reading(reads.eventsBefore),
    permissions: access.reading(reads.permissions),
    sessions: access.looking(reads.sessions),
    search: access.heavyReading('search', search),
    verify: access.heavyReading('check', verify),
    spending: (owner, id) =>
      access.look(async (sql) => carryOut(sql, spendingOf(owner, id, (await access.times(sql)).now))),
  } satisfies Partial<Store>;
}
