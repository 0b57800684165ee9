import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { Load } from '../../../core/limits/slots.ts';
import type { PublicReceipt } from '../../../core/public/session.ts';
import type { PublicTurn } from '../../../core/public/turn.ts';
import type { StoreConnections } from '../../../ports/store/census.ts';
import type { Telemetry } from '../../../ports/telemetry.ts';

const DELAY = 'How late timers fired since the last reading of these metrics: how long the event loop was blocked.';

/** Counters in the text format of Prometheus. The engine and the app report what they did. */
export class Metrics implements Telemetry {
  readonly #all: Counter[] = [];
  // They are shown in this order.
  readonly #slots = this.#counter('throughline_slots', 'Turns that may run at once.', 'gauge');
  readonly #open = this.#counter('throughline_turns', 'Turns that run, and that wait for an answer.', 'gauge');
  readonly #connections = this.#counter(
    'throughline_store_connections',
    'Connections to the database server.',
    'gauge',
  );
  readonly #waiting = this.#counter(
    'throughline_store_waiting',
    'Reads and writes that wait for a connection.',
    'gauge',
  );
  readonly #begun = this.#counter('throughline_turns_begun_total', 'Started turns.');
  readonly #queued = this.#counter('throughline_turn_queue_seconds_total', 'Seconds that started turns were queued.');
  readonly #turns = this.#counter('throughline_turns_total', 'Ended turns, by outcome.');
  readonly #restores = this.#counter('throughline_restores_total', 'Restores by rung and proof.');
  readonly #waits = this.#counter('throughline_lock_waits_total', 'Waits for a session that another process used.');
  readonly #waited = this.#counter('throughline_lock_wait_seconds_total', 'Seconds of such waits.');
  readonly #readers = this.#counter('throughline_readers', 'Open event streams.', 'gauge');
  readonly #cut = this.#counter('throughline_readers_ended_total', 'Ended event streams, by reason.');
  readonly #requests = this.#counter('throughline_http_requests_total', 'Requests by operation and status.');
  readonly #seconds = this.#counter('throughline_http_request_seconds_total', 'Seconds until the answer began.');
  readonly #delay = this.#counter('throughline_event_loop_delay_seconds', DELAY, 'gauge');
  readonly #loop = loopDelay();
  #look = () => {};

  turnBegun({ attempt, createdAt, startedAt }: PublicTurn): void {
    this.#begun.add(1);
    if (attempt === 1 && startedAt !== null) this.#queued.add(Math.max(0, startedAt - createdAt) / 1_000);
  }

  slots({ parallel, running, asking }: Load & { readonly parallel: number }): void {
    this.#slots.set(parallel);
    this.#open.set(running, { state: 'running' });
    this.#open.set(asking, { state: 'waiting' });
  }

  connections(read: () => StoreConnections): void {
    this.#look = () => {
      const { used, idle, waiting } = read();
      this.#connections.set(used, { state: 'used' });
      this.#connections.set(idle, { state: 'idle' });
      this.#waiting.set(waiting);
    };
  }

  turnEnded({ outcome }: { outcome: string }): void {
    this.#turns.add(1, { outcome });
  }

  restored({ rung, proof, lockWaits }: PublicReceipt): void {
    this.#restores.add(1, { rung, proof });
    this.#waits.add(lockWaits.count);
    this.#waited.add(lockWaits.ms / 1_000);
  }

  requested(operation: string, status: number, ms: number): void {
    this.#requests.add(1, { operation, status: String(status) });
    this.#seconds.add(ms / 1_000, { operation });
  }

  readerCame(): void {
    this.#readers.add(1);
  }

  readerLeft(why: string): void {
    this.#readers.add(-1);
    this.#cut.add(1, { why });
  }

  get readers(): number {
    return this.#readers.total();
  }

  text(): string {
    this.#readDelay();
    this.#look();
    return this.#all.map((one) => one.text()).join('');
  }

  #counter(...about: Parameters<typeof counter>): Counter {
    const made = counter(...about);
    this.#all.push(made);
    return made;
  }

  #readDelay(): void {
    for (const [quantile, percent] of QUANTILES) {
      const ns = this.#loop.count === 0 ? 0 : this.#loop.percentile(percent);
      this.#delay.set(Math.max(0, ns / 1e6 - RESOLUTION_MS) / 1_000, { quantile });
    }
    this.#loop.reset();
  }
}

const QUANTILES = [
  ['0.5', 50],
  ['0.99', 99],
  ['1', 100],
] as const;
const RESOLUTION_MS = 20;
type Histogram = ReturnType<typeof monitorEventLoopDelay>;
let monitor: Histogram | null = null;

/** A process has one event loop. */
function loopDelay(): Histogram {
  if (monitor === null) {
    monitor = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
    monitor.enable();
  }
  return monitor;
}

type Counter = ReturnType<typeof counter>;

function counter(name: string, help: string, type: 'counter' | 'gauge' = 'counter') {
  const values = new Map<string, number>();
  const keyOf = (labels: Readonly<Record<string, string>>) => {
    const pairs = Object.entries(labels).map(([label, value]) => `${label}=${JSON.stringify(value)}`);
    return pairs.length === 0 ? '' : `{${pairs.join(',')}}`;
  };
  return {
    add(amount: number, labels: Readonly<Record<string, string>> = {}): void {
      const key = keyOf(labels);
      values.set(key, (values.get(key) ?? 0) + amount);
    },
    set(value: number, labels: Readonly<Record<string, string>> = {}): void {
      values.set(keyOf(labels), value);
    },
    total: () => values.values().reduce((sum, value) => sum + value, 0),
    text(): string {
      const lines = [...(values.size === 0 ? [['', 0]] : values)].map(
        ([labels, value]) => `${name}${labels} ${value}\n`,
      );
      return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${lines.join('')}`;
    },
  };
}
