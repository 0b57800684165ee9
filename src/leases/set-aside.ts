import { ThroughlineError } from '../core/errors.ts';
import type { Clock } from '../ports/clock.ts';
import type { Health } from '../ports/health.ts';

const FIRST_MS = 1_000;
const LONGEST_MS = 300_000;
const UNTRIED_MS = 60_000;

/** How long something that failed so often in a row is left alone. Bounded, so that a file that was put back is noticed without a restart. */
export function asideMs(failures: number): number {
  return Math.min(FIRST_MS * 2 ** (failures - 1), LONGEST_MS);
}

interface AsideParts {
  readonly clock: Clock;
  readonly health: Health;
  /** Called each time that something is set aside. */
  readonly onTrouble: (error: ThroughlineError) => void;
}

/**
 * Conversations, or tasks, that cannot be worked on because what is stored of them is damaged. Each is tried again, ever more rarely;
 * all others continue. The log names them; `health` only says how many there are.
 */
export class SetAside {
  readonly #of: 'conversation' | 'task';
  readonly #parts: AsideParts;
  readonly #entries = new Map<string, { failures: number; until: number; why: ThroughlineError }>();

  constructor(of: 'conversation' | 'task', parts: AsideParts) {
    this.#of = of;
    this.#parts = parts;
  }

  add(id: string, { code, message, hint, cause }: ThroughlineError): void {
    const failures = (this.#entries.get(id)?.failures ?? 0) + 1;
    const ms = asideMs(failures);
    const told = `The ${this.#of} ${id} is set aside for ${ms / 1_000} ${ms === 1_000 ? 'second' : 'seconds'}. ${message}`;
    const why = new ThroughlineError(code, told, { ...(hint !== undefined && { hint }), cause });
    this.#entries.set(id, { failures, until: this.#parts.clock.monotonic() + ms, why });
    this.#report();
    this.#parts.onTrouble(why);
  }

  /** It works again, or is gone. */
  remove(id: string): void {
    if (this.#entries.delete(id)) this.#report();
  }

  /** Those that are left alone now. One that nobody has tried again for long has nothing to do any more: it was erased, or cancelled. */
  ids(): string[] {
    const now = this.#parts.clock.monotonic();
    for (const [id, { until }] of this.#entries) if (until + UNTRIED_MS < now) this.remove(id);
    return [...this.#entries].flatMap(([id, { until }]) => (until > now ? [id] : []));
  }

  /** Why it is set aside, also while it is being tried again; null: it is not. */
  why(id: string): ThroughlineError | null {
    return this.#entries.get(id)?.why ?? null;
  }

  #report(): void {
    const count = this.#entries.size;
    const [noun, them] = count === 1 ? [`${this.#of} is`, 'it'] : [`${this.#of}s are`, 'them'];
    const message = `${count} ${noun} set aside, because what is stored of ${them} is damaged. The others continue.`;
    const hint = 'The log names what is set aside, and "throughline doctor" says what is damaged.';
    const reason = count === 0 ? null : ({ code: 'storage_damaged', message, hint, unready: false } as const);
    this.#parts.health.report(`${this.#of}s set aside`, reason);
  }
}
