import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { PublicTurn } from '../../../src/core/public/turn.ts';
import { OWNER_HEADER } from '../../../src/wire/operations/operation.ts';
import { until } from '../../faults/harness/until.ts';
import { NO_POSTGRES, postgresServer } from '../../postgres/server.ts';
import { Servers } from '../../postgres/servers.ts';
import type { ServedProcess } from '../http/support/served-process.ts';

// Two servers on one PostgreSQL. Each has two slots, and gives one owner at most one of them.

const postgres = postgresServer();
let database: string;
let all: Servers;
let a: ServedProcess;
let b: ServedProcess;

beforeEach(async () => {
  if (NO_POSTGRES !== null) return;
  database = await postgres().database();
  all = new Servers(postgres().url(database));
  const homes = [0, 1].map(() => all.newHome({ turns: { parallel: 2, perOwner: 1 } }));
  [a, b] = (await Promise.all(homes.map((home) => all.serve(home)))) as [ServedProcess, ServedProcess];
});
afterEach(async () => {
  if (NO_POSTGRES === null) await all[Symbol.asyncDispose]();
});

if (NO_POSTGRES === null) describe('the slots of two servers on one PostgreSQL', slots);
else test('the slots of two servers on one PostgreSQL', (context) => context.skip(NO_POSTGRES ?? ''));

/** A caller of this server that acts for the owner. */
const callerFor = ({ caller }: ServedProcess, owner: string) => caller.with({ [OWNER_HEADER]: owner });

async function submit(server: ServedProcess, owner: string, key: string, prompt = '/await go') {
  const { turn } = await callerFor(server, owner).ok('POST', `/conversations/${key}/turns`, { prompt });
  return turn as PublicTurn;
}

const turnAt = async (server: ServedProcess, owner: string, { id }: PublicTurn): Promise<PublicTurn> =>
  callerFor(server, owner).ok('GET', `/turns/${id}`);

/** Makes the file that the turn waits for, so that it ends. */
function letEnd({ conversationId }: PublicTurn): void {
  const work = join(all.folder, 'sandboxes', conversationId, 'work');
  mkdirSync(work, { recursive: true });
  writeFileSync(join(work, 'go'), '');
}

async function runningTurns(owner: string): Promise<number> {
  const sql = "SELECT count(*) AS n FROM turns t WHERE t.owner = $1 AND t.state = 'running'";
  const [row] = (await postgres().query(sql, [owner], database)) as { n: number | string }[];
  return Number(row?.n);
}

const reasonAt = async (server: ServedProcess, owner: string, turn: PublicTurn) =>
  (await turnAt(server, owner, turn)).delayed?.reason ?? null;

function slots(): void {
  test('are shared by the owners, and both servers say why a turn waits, also a turn that the other one holds', async () => {
    const anns = await Promise.all(['a0', 'a1', 'a2', 'a3'].map((key) => submit(a, 'ann', key)));
    await until('each server runs one turn of Ann', async () => (await runningTurns('ann')) === 2);
    const [bob, cid] = [await submit(a, 'bob', 'b'), await submit(b, 'cid', 'c')];
    await until(
      'the turns of the others are running',
      async () => (await runningTurns('bob')) + (await runningTurns('cid')) === 2,
    );
    const [first, second] = [await submit(a, 'dan', 'd0'), await submit(b, 'dan', 'd1')];
    const waiting = await asyncFilter(anns, async (turn) => (await turnAt(a, 'ann', turn)).state === 'queued');
    expect(waiting).toHaveLength(2);
    for (const server of [a, b]) {
      expect(await reasonAt(server, 'dan', first)).toBe('all_slots');
      for (const turn of waiting) expect(await reasonAt(server, 'ann', turn)).toBe('owner_slots');
    }
    await callerFor(b, 'dan').ok('POST', `/turns/${second.id}/cancel`);
    expect((await turnAt(a, 'dan', second)).state).toBe('cancelled');

    // Another turn of a conversation that one server holds. Its slot goes to Dan first, who has none.
    const begun = anns.find((turn) => !waiting.includes(turn)) as PublicTurn;
    const next = await submit(a, 'ann', begun.conversationId, '/say Hello.');
    letEnd(begun);
    await until('the turn of Dan is running', async () => (await turnAt(a, 'dan', first)).state === 'running');
    await until('the other server says that another process holds the conversation', async () => {
      const reasons = await Promise.all([a, b].map((server) => reasonAt(server, 'ann', next)));
      return reasons.includes('other_process') && reasons.includes('all_slots');
    });
    expect(await runningTurns('ann')).toBe(1);

    b.running.kill('SIGKILL');
    await b.running.ended;
    const owners = [...anns.map((turn) => ['ann', turn] as const), ['bob', bob], ['cid', cid], ['dan', first]] as const;
    for (const [, turn] of owners) letEnd(turn);
    for (const [owner, turn] of [...owners, ['ann', next] as const]) {
      await until(`the turn of ${owner} has ended`, async () =>
        ['completed', 'interrupted'].includes((await turnAt(a, owner, turn)).state),
      );
    }
    expect((await turnAt(a, 'ann', next)).state).toBe('completed');
  });
}

async function asyncFilter<T>(all: readonly T[], matches: (one: T) => Promise<boolean>): Promise<T[]> {
  const isMatch = await Promise.all(all.map(matches));
  return all.filter((_, i) => isMatch[i]);
}
