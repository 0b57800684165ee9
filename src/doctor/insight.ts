import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { ThroughlineError } from '../core/errors.ts';
import { holderAtServer, holderLabel, type ProcessIdentity } from '../core/process.ts';
import type { Clock } from '../ports/clock.ts';
import type { PublicFinding } from '../ports/doctor.ts';
import type { Processes } from '../ports/processes.ts';
import type { Sandboxes } from '../ports/sandbox.ts';
import type { Insight, PublicLease } from '../ports/server.ts';
import type { Holding } from '../ports/store/leases.ts';
import type { Store } from '../ports/store.ts';

const run = promisify(execFile);

const MOST_LEASES = 500;
const EXAMINE_MS = 5 * 60_000;
const MOST_FOUND = 16 * 1_048_576;

interface Parts {
  readonly store: Pick<Store, 'holdings' | 'countHoldings' | 'measure' | 'diskUse'>;
  readonly sandboxes: Pick<Sandboxes, 'list'>;
  readonly clock: Clock;
  readonly processes: Pick<Processes, 'self'>;
}

/** `examine`: what the doctor finds. */
export function insightOf(
  { store, sandboxes, clock, processes }: Parts,
  version: string,
  examine: () => Promise<readonly PublicFinding[]>,
): Insight {
  let examining: Promise<readonly PublicFinding[]> | null = null;
  return {
    version,
    async look(owner) {
      const held = store.holdings(owner, MOST_LEASES);
      const [size, places, diskUse, leases] = await Promise.all([
        unlessBroken(store.measure()),
        unlessBroken(sandboxes.list().then(({ root, ids }) => ({ root, count: ids.length }))),
        unlessBroken(store.diskUse(owner)),
        unlessBroken(held.then((all) => all.map((one) => toPublicLease(one, clock.now(), processes.self())))),
      ]);
      const isAll = leases === null || leases.length < MOST_LEASES;
      const count = isAll ? (leases?.length ?? null) : await unlessBroken(store.countHoldings(owner));
      const moreLeases = leases === null || count === null ? null : Math.max(0, count - leases.length);
      return { store: size, sandboxes: places, diskUse, leases, moreLeases };
    },
    examine() {
      examining ??= examine().finally(() => {
        examining = null;
      });
      return examining;
    },
  };
}

function toPublicLease(
  { conversation, key, title, holder, leftMs, open, sessions }: Holding,
  now: number,
  self: ProcessIdentity,
): PublicLease {
  const until = Math.max(0, Math.round(now + leftMs));
  const label = holderAtServer(holderLabel(holder, self));
  return { conversationId: conversation, key, title, holder: label, until, open, sessions };
}

/** Null: it could not be read. The health report has the reason. */
function unlessBroken<T>(reading: Promise<T>): Promise<T | null> {
  return reading.catch((error: unknown) => {
    if (error instanceof ThroughlineError || (error as NodeJS.ErrnoException).code !== undefined) return null;
    throw error;
  });
}

/** Runs the doctor as a process of its own: it reads the whole file, and would block this process meanwhile. `program`: the executable. */
export function doctorProcess(
  program: string,
  { home, config, store }: { home: string; config?: string; store?: string },
  signal: AbortSignal,
) {
  const args = [
    'doctor',
    '--json',
    '--no-agents',
    '--home',
    home,
    ...(config === undefined ? [] : ['--config', config]),
  ];
  // Everybody on the machine can see the arguments of a process, and an address may have a password.
  const env = store === undefined ? process.env : { ...process.env, THROUGHLINE_STORE: store };
  return async (): Promise<PublicFinding[]> => {
    const options = { timeout: EXAMINE_MS, maxBuffer: MOST_FOUND, signal, killSignal: 'SIGKILL' as const, env };
    const { stdout } = await run(process.execPath, [program, ...args], options).catch((error) => {
      const { code, stdout, stderr = '' } = error as { code?: unknown; stdout: string; stderr?: string };
      if (code === 1) return { stdout }; // it found something
      const hint = stderr.trim().split('\n').at(-1) || 'Run "throughline doctor" on the machine of the server.';
      throw new ThroughlineError('refused', 'The doctor failed.', { hint, cause: error });
    });
    return stdout.split('\n').filter(Boolean).map(findingIn);
  };
}

function findingIn(line: string): PublicFinding {
  const { check, subject, problem, remedy, repairedBy, isNote = false } = JSON.parse(line);
  return { check, subject, problem, remedy, repairedBy, isNote };
}
