import { hasCode, isTransientFault, ThroughlineError } from '../../core/errors.ts';
import { inSeconds } from '../../core/limits/time-limits.ts';
import type { Sandbox } from '../../core/sandbox/sandbox.ts';
import type { EngineParts } from '../parts.ts';
import type { Worker } from '../worker/worker.ts';
import { removeSandbox, restSandbox } from './leave.ts';

/** Which idle sandboxes are meant, and what is done with them. */
interface Policy {
  readonly afterMs: number;
  /** Only those that do not rest. */
  readonly awake: boolean;
  readonly leave: (sandbox: Sandbox, unusedSince: number, reason: string) => Promise<void>;
}

const PAGE = 100;
const SHORTEST_MS = 1_000;
const LONGEST_MS = 600_000;
/** Looking for unsaved work opens a sandbox, which starts a rented machine. So one with unsaved work is checked again only after a day. */
const KEPT_MS = 86_400_000;

/**
 * Puts to rest, and removes, sandboxes that nobody has used for as long as the settings say. Sandboxes that are used or have unsaved work
 * stay. Only processes that take up turns of others do this. Several may, because each takes a sandbox alone before it changes it.
 */
export class IdleSandboxes {
  readonly #parts: EngineParts;
  readonly #policies: readonly Policy[];
  readonly #timer: NodeJS.Timeout | undefined;
  /** By id: until when a sandbox with unsaved work is not checked again. */
  readonly #kept = new Map<string, number>();
  #looking: Promise<void> | null = null;
  #closed = false;

  constructor(parts: EngineParts, worker: Worker) {
    this.#parts = parts;
    const { restAfterMs, removeAfterMs } = parts.settings.sandbox;
    const requestFor = (sandbox: Sandbox, unusedSince: number, reason: string) => {
      return { parts, worker, sandbox, by: 'policy', reason, unusedSince };
    };
    const remove: Policy['leave'] = (...one) => removeSandbox(requestFor(...one), false);
    const rest: Policy['leave'] = (...one) => restSandbox(requestFor(...one));
    this.#policies = [
      ...(removeAfterMs === null ? [] : [{ afterMs: removeAfterMs, awake: false, leave: remove }]),
      ...(restAfterMs === null ? [] : [{ afterMs: restAfterMs, awake: true, leave: rest }]),
    ];
    if (this.#policies.length === 0 || !worker.takesUp) return;
    const everyMs = Math.min(...this.#policies.map(({ afterMs }) => afterMs / 4), LONGEST_MS);
    this.#timer = setInterval(() => this.#look(), Math.max(SHORTEST_MS, everyMs)).unref();
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearInterval(this.#timer);
    await this.#looking;
  }

  #look(): void {
    this.#looking ??= this.#apply()
      .catch((error) => {
        if (isTransientFault(error)) this.#parts.onTrouble(error);
        else this.#parts.onBug(error, 'looking for sandboxes that nobody uses');
      })
      .finally(() => {
        this.#looking = null;
      });
  }

  async #apply(): Promise<void> {
    for (const policy of this.#policies) {
      let after: number | null = 0;
      while (after !== null && !this.#closed) after = await this.#applyToPage(policy, after);
    }
  }

  /** Returns the number after which the next page begins; null: there is none. */
  async #applyToPage({ afterMs, awake, leave }: Policy, after: number): Promise<number | null> {
    const { store, clock, sandboxes } = this.#parts;
    const before = clock.now() - afterMs;
    const request = { place: sandboxes.place, before, awake, limit: PAGE, after };
    const { sandboxes: idle, next } = await store.idleSandboxes(request);
    for (const sandbox of idle) {
      if (this.#closed) return null;
      if (!awake && clock.monotonic() < (this.#kept.get(sandbox.id) ?? 0)) continue;
      try {
        await leave(sandbox, before, `nobody has used it for ${inSeconds(Math.round(afterMs / 1_000))}`);
      } catch (error) {
        this.#keep(sandbox, error);
      }
    }
    return next;
  }

  #keep({ id }: Sandbox, error: unknown): void {
    // Somebody uses it again, another process has removed it, or this process closes.
    if (hasCode(error, 'conflict', 'not_found', 'closed')) return;
    // A bug, or a file error that may be gone at the next look.
    if (!(error instanceof ThroughlineError)) throw error;
    this.#kept.set(id, this.#parts.clock.monotonic() + KEPT_MS);
    if (!hasCode(error, 'refused')) throw error;
  }
}
