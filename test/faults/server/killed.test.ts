import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { CliHome } from '../../e2e/cli-process.ts';
import { type ServedProcess, serveProcess } from '../../e2e/http/support/served-process.ts';
import { MARK, marked } from '../harness/marked.ts';
import { until } from '../harness/until.ts';
import { lastingPort } from './lasting-port.ts';
import { Reader } from './reader.ts';

const ROUNDS = 50;
const CONVERSATIONS = 20;

/** From the start of the next server until every turn of the killed one has ended. */
const RECOVERED_MS = 2_000;

/*
 * A server that streams twenty answers is killed, fifty times. After every kill the next server ends what was running, each
 * turn once, and goes on; readers come back by themselves and miss nothing.
 *
 * The bound is held to by the median, and the longest is printed: a single start may meet whatever else the machine does. Where
 * a server with nothing to recover, before the kills or after them, takes longer than a quarter of it to start, the machine is
 * busy, and the bound is four such starts.
 */
test(`a server with ${CONVERSATIONS} streaming turns is killed ${ROUNDS} times`, { timeout: 600_000 }, async () => {
  const mark = randomUUID();
  const home = new CliHome({ scripted: { adapter: 'scripted', env: { [MARK]: mark } } });
  const port = String(await lastingPort());
  const start = () => serveProcess(home, '--log-level', 'warn', '--port', port);
  const [first, firstMs] = await timed(start);
  let server = first;
  const keys = Array.from({ length: CONVERSATIONS }, (_, index) => `c${index}`);
  const streaming = new Set<string>();
  const ended = new Map<string, number>();
  for (const key of keys) await server.caller.ok('POST', '/conversations', { key });
  const readers = keys.map(
    (key) =>
      new Reader(
        `${server.url}/v1/conversations/${key}/events`,
        { authorization: `Bearer ${server.token}` },
        (event) => {
          if (event.turn === null) return;
          if (event.kind === 'turn.update') streaming.add(event.turn);
          if (event.kind === 'turn.ended') ended.set(event.turn, (ended.get(event.turn) ?? 0) + 1);
        },
      ),
  );
  const recoveries: number[] = [];
  const accepted: string[] = [];
  try {
    for (let round = 0; round < ROUNDS; round += 1) {
      const turns = await Promise.all(keys.map((key) => submit(server, key)));
      accepted.push(...turns);
      await until('every turn streams', () => turns.every((turn) => streaming.has(turn)), { ms: 60_000 });
      server.running.kill('SIGKILL');
      await server.running.ended;
      const [next, recoveryMs] = await timed(async () => {
        const started = await start();
        await until('every turn has ended', () => turns.every((turn) => ended.has(turn)), { ms: 60_000 });
        return started;
      });
      server = next;
      recoveries.push(recoveryMs);
    }
    for (const [index, key] of keys.entries()) {
      const { lastSeq } = await server.caller.ok('GET', `/conversations/${key}`);
      const reader = readers[index] as Reader;
      await until('the reader has everything', () => (reader.seqs.at(-1) ?? 0) >= lastSeq);
      expect(reader.seqs).toEqual(reader.seqs.map((_, at) => at + 1));
      expect(reader.connections).toBeGreaterThan(ROUNDS);
      expect(await server.caller.ok('GET', `/conversations/${key}/verify`)).toEqual({ broken: null });
    }
    expect(accepted.map((turn) => ended.get(turn))).toEqual(accepted.map(() => 1));
    await end(server);
    expect(marked(mark)).toEqual([]);
    expect(endsPerTurn(join(home.path, 'home', 'throughline.db'))).toEqual([{ turns: accepted.length, ends: 1 }]);
    const [last, lastMs] = await timed(start);
    await end(last);
    expectRecovered(recoveries, Math.max(firstMs, lastMs));
  } finally {
    await Promise.all(readers.map((reader) => reader.close()));
    await home.remove();
  }
});

function expectRecovered(recoveries: readonly number[], startMs: number): void {
  const sorted = recoveries.toSorted((a, b) => a - b);
  const [median = Number.NaN, longest = Number.NaN] = [sorted[Math.floor(sorted.length / 2)], sorted.at(-1)];
  console.info(
    `recovered after ${sorted.length} kills: median ${median.toFixed(0)} ms, longest ${longest.toFixed(0)} ms; ` +
      `a start with nothing to recover: ${startMs.toFixed(0)} ms`,
  );
  expect(median).toBeLessThan(Math.max(RECOVERED_MS, 4 * startMs));
}

async function end({ running }: ServedProcess): Promise<void> {
  running.kill('SIGTERM');
  expect(await running.ended).toMatchObject({ code: 0 });
}

async function timed<T>(work: () => Promise<T>): Promise<[T, number]> {
  const start = performance.now();
  return [await work(), performance.now() - start];
}

async function submit({ caller }: ServedProcess, key: string): Promise<string> {
  const { turn } = await caller.ok('POST', `/conversations/${key}/turns`, { prompt: '/stream 1000 20' });
  return turn.id;
}

/** How many turns have how many ends, read past all our code. */
function endsPerTurn(file: string): unknown[] {
  const db = new DatabaseSync(file, { readOnly: true });
  try {
    const ends =
      "SELECT t.no, count(e.no) AS ends FROM turns t LEFT JOIN events e ON e.turn = t.no AND e.kind = 'turn.ended'";
    return db
      .prepare(`SELECT count(*) AS turns, ends FROM (${ends} GROUP BY t.no) GROUP BY ends`)
      .all()
      .map((row) => ({ ...row }));
  } finally {
    db.close();
  }
}
