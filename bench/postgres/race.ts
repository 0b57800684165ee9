// Runs one contender with several processes, from the first prompt until the last reply is stored, or until the time limit.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { PostgresServer } from '../../test/postgres/server.ts';
import type { Contender } from './contender.ts';
import type { Part } from './worker.ts';

const WORKER = fileURLToPath(new URL('worker.ts', import.meta.url));
/** How often to check whether everything is done. */
const POLL_MS = 50;
/** The time limit. If a contender is not finished by then, only the replies stored so far count. */
const LONGEST_MS = 60_000;

export interface Race {
  readonly processes: number;
  readonly conversations: number;
  readonly turns: number;
  readonly atOnce: number;
  readonly waitMs: number;
}

/** Turns per second. Throws if a finished turn's reply is missing, stored twice or out of order. */
export async function race(server: PostgresServer, name: string, wanted: Race): Promise<number> {
  const { default: contender } = (await import(`./${name}.ts`)) as { default: Contender };
  const database = await server.database();
  await contender.prepare(server.url(database));
  const folder = mkdtempSync(join(tmpdir(), 'throughline-bench-'));
  const client = await server.connect(database);
  const workers = Array.from({ length: wanted.processes }, (_, part) =>
    start(name, partOf(wanted, part, { url: server.url(database), folder })),
  );
  try {
    await Promise.all(workers.map((worker) => worker.expectLine('ready')));
    const start = performance.now();
    const submitted = Promise.all(workers.map((worker) => worker.command('go', 'submitted')));
    await Promise.race([submitted, delay(LONGEST_MS, null, { ref: false })]);
    const all = wanted.conversations * wanted.turns;
    for (;;) {
      const ms = performance.now() - start;
      const { left } = (await client.query(contender.left)).rows[0];
      const { kept } = left === 0 || ms > LONGEST_MS ? (await client.query(contender.kept)).rows[0] : { kept: null };
      if (left === 0 && kept !== all)
        throw new Error(`${name} stored only ${kept} of ${all} replies once and in order.`);
      if (kept !== null) return kept / ((performance.now() - start) / 1_000);
      await delay(POLL_MS);
    }
  } finally {
    await client.end();
    await Promise.all(workers.map((worker) => worker.stop()));
    rmSync(folder, { recursive: true, force: true, maxRetries: 20 });
    await server.query(`DROP DATABASE ${database} WITH (FORCE)`);
  }
}

function partOf(wanted: Race, part: number, where: Pick<Part, 'url' | 'folder'>): Part {
  const { processes, conversations, turns, atOnce, waitMs } = wanted;
  const all = Array.from({ length: conversations }, (_, i) => `c${i}`);
  return { ...where, turns, atOnce, waitMs, conversations: all.filter((_, i) => i % processes === part) };
}

function start(name: string, part: Part) {
  const child = spawn(process.execPath, [WORKER, name, JSON.stringify(part)], { stdio: ['pipe', 'pipe', 'inherit'] });
  const lines = createInterface({ input: child.stdout });
  const expectLine = async (expected: string) => {
    const [line] = await Promise.race([once(lines, 'line'), ended(child)]);
    if (line !== expected)
      throw new Error(`A process of ${name} printed ${JSON.stringify(line)} and not "${expected}".`);
  };
  return {
    expectLine,
    command(word: string, answer: string): Promise<void> {
      child.stdin.write(`${word}\n`);
      return expectLine(answer);
    },
    async stop(): Promise<void> {
      if (child.exitCode !== null) return;
      child.stdin.write('stop\n');
      await once(child, 'exit');
    },
  };
}

async function ended(child: ChildProcess): Promise<string[]> {
  const [code] = await once(child, 'exit');
  return [`(ended with ${code})`];
}
