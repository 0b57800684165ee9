import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { ServedProcess } from '../../e2e/http/support/served-process.ts';
import { NO_POSTGRES, PostgresServer } from '../../postgres/server.ts';
import { Servers } from '../../postgres/servers.ts';
import { until } from '../harness/until.ts';
import { type ReadEvent, Reader } from '../server/reader.ts';

const LONG = process.env.THROUGHLINE_LONG === '1';
/** In the long run 100 kills of a server and 20 of PostgreSQL, or as many in total as THROUGHLINE_ROUNDS says. */
const LENGTH = LONG ? Number(process.env.THROUGHLINE_ROUNDS ?? 120) : 4;
/** What is killed in the middle of a turn, one after the other. */
const ROUNDS: readonly ('server' | 'postgres')[] = Array.from({ length: LENGTH }, (_, round) =>
  round % 6 === 1 ? 'postgres' : 'server',
);
/** An acknowledged commit must at least be written to the operating system. */
const DURABLE = ['synchronous_commit=on'];
const HOLDER = 'SELECT w.process FROM leases l JOIN workers w ON w.no = l.worker';
const WORDS = 'word '.repeat(40);

/*
 * Two servers on one PostgreSQL. In the middle of every turn one of them, or PostgreSQL, is killed and started again. Nothing acknowledged is
 * lost, every turn ends once and runs its tool at most once, and a reader that moves between the servers gets every event once.
 */
test(`servers and PostgreSQL are killed ${ROUNDS.length} times`, { timeout: 3_600_000 }, async (context) => {
  if (NO_POSTGRES !== null) return context.skip(NO_POSTGRES);
  const postgres = new PostgresServer();
  await postgres.start(DURABLE);
  const database = await postgres.database();
  try {
    await using all = new Servers(postgres.url(database));
    const homes = [all.newHome(), all.newHome()] as const;
    const servers = await Promise.all(homes.map((home) => all.serve(home)));
    const accepted = new Map<string, string>();
    const effects = join(all.folder, 'effects');
    const events: ReadEvent[] = [];
    let connections = 0;
    const next = () => `${servers[connections++ % 2]?.url}/v1/conversations/notes/events`;
    const { token } = servers[0] as ServedProcess;
    const reader = new Reader(next, { authorization: `Bearer ${token}` }, (event) => void events.push(event));
    const seen = (what: string, kind: string, turn: string) =>
      until(what, () => events.some((event) => event.kind === kind && event.turnId === turn));
    for (const [round, what] of ROUNDS.entries()) {
      const other = round % 2 === 0 ? 1 : 0;
      const requestId = `request-${round}`;
      const asked = { prompt: `/tool ${requestId} ${effects}\n/say ${WORDS}`, agent: 'slow', requestId };
      const turn = await submitted(servers[other] as ServedProcess, asked);
      accepted.set(requestId, turn);
      await seen('the agent answers', 'turn.update', turn);
      if (what === 'server') {
        // The server that runs the turn.
        const [held] = await postgres.query(HOLDER, [], database);
        const hit = servers.findIndex(({ pid }) => pid === JSON.parse(String(held?.process)).pid) as 0 | 1;
        servers[hit]?.running.kill('SIGKILL');
        await servers[hit]?.running.ended;
        servers[hit] = await all.serve(homes[hit]);
      } else {
        await postgres.crash();
        await postgres.start(DURABLE);
      }
      await seen('the turn ends', 'turn.ended', turn);
    }
    await reader.close();
    for (const { caller } of servers)
      expect((await caller.get('//livez')).status, 'it has outlived PostgreSQL').toBe(200);
    const { caller } = servers[0] as ServedProcess;
    const turns = await postgres.query('SELECT id, request_id FROM turns ORDER BY n', [], database);
    expect(turns.map(({ id, request_id }) => [request_id, id])).toEqual([...accepted]);
    expect(reader.seqs).toEqual(reader.seqs.map((_, index) => index + 1));
    const ends = events.filter(({ kind }) => kind === 'turn.ended').map(({ turnId }) => turnId);
    expect(ends).toEqual([...accepted.values()]);
    const ran = readFileSync(effects, 'utf8')
      .split('\n')
      .filter(Boolean)
      .map((line) => line.split(' ')[0]);
    expect(new Set(ran).size, 'no tool has run twice').toBe(ran.length);
    expect(await caller.ok('GET', '/conversations/notes/verify')).toMatchObject({ broken: null });
  } finally {
    await postgres.stop();
    postgres.remove();
  }
});

/** Submits under the same id until it is accepted, because a kill may lose the reply. */
async function submitted({ caller, running }: ServedProcess, body: object): Promise<string> {
  let refused: unknown;
  const accepted = until('the prompt is accepted', async () => {
    const answer = await caller.ask('POST', '/conversations/notes/turns', body).catch((error: unknown) => {
      refused = error;
    });
    if (answer && answer.status < 300) return answer.body;
    refused = answer?.body ?? refused;
  });
  const { turn } = await accepted.catch((error: unknown) => {
    throw new Error(`${JSON.stringify(refused)} ${refused}; the server says: ${running.stderr}`, { cause: error });
  });
  return turn.id;
}
