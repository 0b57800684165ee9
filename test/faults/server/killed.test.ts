import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { CliHome } from '../../e2e/cli/process.ts';
import { type ServedProcess, serveProcess } from '../../e2e/http/support/served-process.ts';
import { MARK, marked } from '../harness/marked.ts';
import { until } from '../harness/until.ts';
import { lastingPort } from './lasting-port.ts';
import { Reader } from './reader.ts';

const LONG = process.env.THROUGHLINE_LONG === '1';
const ROUNDS = LONG ? 50 : 4;
const CONVERSATIONS = 20;

/** The limit for the median recovery: from the start of the next server until its readers have seen every turn of the killed one end. */
const RECOVERED_MS = 2_000;
/** On a busy machine the limit is this multiple of the start time. */
const STARTS = 3;
/** A single recovery may take this multiple of the limit. A longer one has waited for a lease to expire, which takes at least ten seconds. */
const SINGLE = 5;
/** In the long mode, a start with nothing to recover is measured every this many rounds. */
const PLAIN_EVERY = 10;

/*
 * A server that streams twenty answers is killed, again and again. After every kill the next server ends each running turn once, and
 * continues. Readers reconnect by themselves and miss nothing.
 *
 * No recovery may wait for a lease to expire. In the long mode, where nothing else runs, the median recovery must take less than two
 * seconds, or less than three times the start on a machine where the start alone takes longer than a third of that. The start must not wait
 * for the recovery, so it is compared with starts that have nothing to recover. Beside other tests these ratios would be random, so they
 * are checked only in the long mode.
 */
test(`a server with ${CONVERSATIONS} streaming turns is killed ${ROUNDS} times`, { timeout: 1_800_000 }, async () => {
  const mark = randomUUID();
  const home = new CliHome({ scripted: { adapter: 'scripted', env: { [MARK]: mark } } });
  const port = String(await lastingPort());
  const start = () => serveProcess(home, '--log-level', 'warn', '--port', port);
  const empty = new CliHome();
  let server = await start();
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
          if (event.turnId === null) return;
          if (event.kind === 'turn.update') streaming.add(event.turnId);
          if (event.kind === 'turn.ended') ended.set(event.turnId, (ended.get(event.turnId) ?? 0) + 1);
        },
      ),
  );
  const recoveries: Recovery[] = [];
  const plainMs: number[] = [];
  const accepted: string[] = [];
  try {
    for (let round = 0; round < ROUNDS; round += 1) {
      const turns = await Promise.all(keys.map((key) => submit(server, key)));
      accepted.push(...turns);
      await until('every turn streams', async () => {
        for (const turn of turns) if (ended.has(turn)) await expectRunning(server, turn);
        return turns.every((turn) => streaming.has(turn));
      });
      server.running.kill('SIGKILL');
      await server.running.ended;
      const [next, startMs] = await timed(start);
      const haveEnded = () => turns.every((turn) => ended.has(turn));
      const [, restMs] = await timed(() => until('every turn has ended', haveEnded));
      server = next;
      recoveries.push({ startMs, ms: startMs + restMs });
      if (!LONG || round % PLAIN_EVERY !== 0) continue;
      const [plain, ms] = await timed(() => serveProcess(empty, '--log-level', 'warn'));
      plainMs.push(ms);
      await end(plain);
    }
    for (const [index, key] of keys.entries()) {
      const { lastSeq } = await server.caller.ok('GET', `/conversations/${key}`);
      const reader = readers[index] as Reader;
      await until('the reader has everything', () => (reader.seqs.at(-1) ?? 0) >= lastSeq);
      expect(reader.seqs).toEqual(reader.seqs.map((_, at) => at + 1));
      expect(reader.connections).toBeGreaterThan(ROUNDS);
      expect(await server.caller.ok('GET', `/conversations/${key}/verify`)).toMatchObject({ broken: null });
    }
    expect(accepted.map((turn) => ended.get(turn))).toEqual(accepted.map(() => 1));
    await end(server);
    expect(marked(mark)).toEqual([]);
    expect(endsPerTurn(join(home.path, 'home', 'throughline.db'))).toEqual([{ turns: accepted.length, ends: 1 }]);
    expectRecovered(recoveries, plainMs);
  } finally {
    await Promise.all(readers.map((reader) => reader.close()));
    await Promise.all([home.remove(), empty.remove()]);
  }
});

interface Recovery {
  /** Until the server served, and until everything was recovered. */
  readonly startMs: number;
  readonly ms: number;
}

function expectRecovered(recoveries: readonly Recovery[], plainMs: readonly number[]): void {
  const all = recoveries.map(({ ms }) => ms);
  const starts = recoveries.map(({ startMs }) => startMs);
  console.info(
    `recovered after ${all.length} kills: median ${median(all)} ms, longest ${Math.round(Math.max(...all))} ms, ` +
      `${all.filter((ms) => ms > RECOVERED_MS).length} of them beyond ${RECOVERED_MS} ms; until it served: median ${median(starts)} ms`,
  );
  const late = recoveries.filter(({ startMs, ms }) => ms > SINGLE * Math.max(RECOVERED_MS, STARTS * startMs));
  expect(late).toEqual([]);
  if (!LONG) return;
  console.info(`until it served with nothing to recover: median ${median(plainMs)} ms`);
  expect(median(all)).toBeLessThan(Math.max(RECOVERED_MS, STARTS * median(starts)));
  expect(median(starts)).toBeLessThan(Math.max(RECOVERED_MS / STARTS, STARTS * median(plainMs)));
}

function median(values: readonly number[]): number {
  return Math.round(values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN);
}

async function end({ running }: ServedProcess): Promise<void> {
  running.kill('SIGTERM');
  expect(await running.ended).toMatchObject({ code: 0 });
}

async function timed<T>(work: () => Promise<T>): Promise<[T, number]> {
  const start = performance.now();
  return [await work(), performance.now() - start];
}

/** Fails for a turn that has ended, and shows why it ended. */
async function expectRunning({ caller }: ServedProcess, turn: string): Promise<void> {
  expect(await caller.ok('GET', `/turns/${turn}`)).toMatchObject({ state: 'running', failure: null });
}

async function submit({ caller }: ServedProcess, key: string): Promise<string> {
  const { turn } = await caller.ok('POST', `/conversations/${key}/turns`, { prompt: '/stream 100000 20' });
  return turn.id;
}

/** How many turns have how many ends, read by plain SQL, without our code. */
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
