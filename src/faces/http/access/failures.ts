import { setTimeout as delay } from 'node:timers/promises';
import { Refusal } from '../refusal.ts';
import type { Log } from '../telemetry/log.ts';

/*
 * Requests whose credentials were refused: logged, and answered later and later. Credentials are checked before this is called, so a
 * caller with the right secret never waits, however often somebody else has guessed wrong for the same key.
 */

/** What is known of a refused request. */
export interface Attempt {
  /** Which credentials it gave: `key ID`, `token`, `page` or `link`; null: none. */
  readonly by: string | null;
  /** The address of the client, from a trusted proxy; null: unknown. */
  readonly address: string | null;
}

/** Failures without a delay: people make mistakes. */
const FREE = 3;
const FIRST_DELAY_MS = 100;
const LONGEST_DELAY_MS = 5_000;

/** How long the answer to the nth failure in a row is held back. */
export function delayOf(failures: number): number {
  return failures <= FREE ? 0 : Math.min(FIRST_DELAY_MS * 2 ** (failures - FREE - 1), LONGEST_DELAY_MS);
}

/** After so long without a failure they are forgotten. */
const FORGET_MS = 5 * 60_000;
/** The most keys and addresses that are counted; beyond, those that failed least recently are forgotten. */
const MOST_COUNTED = 1_000;
/** The most answers that are held back at a time; beyond, a request is told to come back later. */
const MOST_HELD = 100;
/** The most lines in the log within a minute. */
const MOST_LINES = 20;
const MINUTE_MS = 60_000;

export class Failures {
  readonly #log: Pick<Log, 'warn'>;
  readonly #now: () => number;
  /** By key and by address, least recently failed first. */
  readonly #counts = new Map<string, { failures: number; at: number }>();
  readonly #lines = { since: Number.NEGATIVE_INFINITY, written: 0, left: 0 };
  #held = 0;

  constructor(log: Pick<Log, 'warn'>, now: () => number) {
    this.#log = log;
    this.#now = now;
  }

  /** Resolves when the refusal may be answered. The signal ends the wait. Throws `too_many`. */
  async add({ by, address }: Attempt, signal: AbortSignal): Promise<void> {
    const byName = this.#count(by ?? 'none');
    const byAddress = address === null ? 0 : this.#count(`address ${address}`);
    const failures = Math.max(byName, byAddress);
    if (isRound(byName) || isRound(byAddress)) this.#write({ by: by ?? 'none', address, failures });
    // Without credentials nothing is guessed.
    const ms = by === null ? 0 : delayOf(failures);
    if (ms === 0) return;
    if (this.#held >= MOST_HELD) {
      throw new Refusal('too_many', 'Too many requests with invalid credentials.', { hint: 'Try again later.' });
    }
    this.#held += 1;
    await delay(ms, undefined, { signal, ref: false }).catch(() => {});
    this.#held -= 1;
  }

  #count(name: string): number {
    const now = this.#now();
    const known = this.#counts.get(name);
    const failures = known !== undefined && now - known.at < FORGET_MS ? known.failures + 1 : 1;
    this.#counts.delete(name);
    this.#counts.set(name, { failures, at: now });
    const [oldest] = this.#counts.keys();
    if (this.#counts.size > MOST_COUNTED && oldest !== undefined) this.#counts.delete(oldest);
    return failures;
  }

  /** Guesses under many names must not fill the log: lines that are left out are counted in the next line. */
  #write({ by, address, failures }: Attempt & { readonly failures: number }): void {
    const lines = this.#lines;
    const now = this.#now();
    if (now - lines.since >= MINUTE_MS) Object.assign(lines, { since: now, written: 0 });
    if (lines.written >= MOST_LINES) {
      lines.left += 1;
      return;
    }
    const { left } = lines;
    Object.assign(lines, { written: lines.written + 1, left: 0 });
    const facts = { by, failures, ...(address !== null && { address }), ...(left > 0 && { linesLeftOut: left }) };
    this.#log.warn(facts, 'authentication failed');
  }
}

/** 1, 10, 100, …: a series of failures is a few lines. */
function isRound(failures: number): boolean {
  return failures > 0 && Number.isInteger(Math.log10(failures));
}
