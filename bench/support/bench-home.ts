import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { scriptedAgent } from '../../src/agents/scripted/adapter.ts';
import type { ScriptedOptions } from '../../src/agents/scripted/options.ts';
import { DEFAULT_RESTORE } from '../../src/core/restore/restore-settings.ts';
import { createEngine } from '../../src/engine/engine.ts';
import { DEFAULT_ENGINE_SETTINGS, type EngineParts, type EngineSettings } from '../../src/engine/parts.ts';
import { systemClock } from '../../src/host/clock.ts';
import { ProcessHealth } from '../../src/host/health.ts';
import { placeOf } from '../../src/host/place.ts';
import { bootId, systemProcesses } from '../../src/host/processes.ts';
import type { Agent } from '../../src/ports/agent.ts';
import type { Engine } from '../../src/ports/engine.ts';
import type { Sandboxes } from '../../src/ports/sandbox.ts';
import type { Store } from '../../src/ports/store.ts';
import { directorySandboxes } from '../../src/sandboxes/directory/directory-sandboxes.ts';
import { openDatabase } from '../../src/stores/sqlite/file/open.ts';
import type { WriteQueue } from '../../src/stores/sqlite/file/write-queue.ts';
import { storeOn } from '../../src/stores/sqlite/store.ts';

export interface Opened {
  readonly engine: Engine;
  readonly parts: EngineParts;
  /** Counts transactions, each of which is one fsync of the log. */
  readonly queue: WriteQueue;
}

export interface OpenOptions {
  /** Left out: the scripted agent. */
  readonly agent?: Agent;
  readonly scripted?: Partial<ScriptedOptions>;
  readonly engine?: Partial<EngineSettings>;
  /** `root`: the folder for them. Left out: directories. */
  readonly sandboxes?: (root: string) => Sandboxes;
}

/** A data home in a temporary directory, with the same parts as in `compose.ts`. */
export class BenchHome {
  readonly path = mkdtempSync(join(process.env.THROUGHLINE_BENCH_DIR ?? tmpdir(), 'throughline-bench-'));
  readonly file = join(this.path, 'throughline.db');
  readonly #opened: Engine[] = [];

  readonly #directories = (root: string) =>
    directorySandboxes({ root, place: placeOf(this.path), processes: systemProcesses });

  async open(options: OpenOptions = {}): Promise<Opened> {
    const db = await openDatabase({
      file: this.file,
      boot: bootId(),
      clock: systemClock,
      busyMs: 10_000,
    });
    const { store, queue } = storeOn(db, { file: this.file, clock: systemClock, busyMs: 10_000, boot: bootId() });
    return { ...this.openOn(store, options), queue };
  }

  /** Opens an engine on another store. */
  openOn(store: Store, options: OpenOptions = {}): Omit<Opened, 'queue'> {
    const agent = options.agent ?? scriptedAgent({ name: 'scripted', options: options.scripted });
    const parts: EngineParts = {
      store,
      agents: new Map([[agent.name, { agent, adapter: 'scripted' }]]),
      sandboxes: (options.sandboxes ?? this.#directories)(join(this.path, 'sandboxes')),
      processes: systemProcesses,
      clock: systemClock,
      health: new ProcessHealth(),
      settings: {
        ...DEFAULT_ENGINE_SETTINGS,
        restore: DEFAULT_RESTORE,
        defaultAgent: agent.name,
        ...options.engine,
      },
      onTrouble: () => {},
      onBug(error, where) {
        throw new Error(`a fault while ${where}`, { cause: error });
      },
    };
    const engine = createEngine(parts, 'local');
    this.#opened.push(engine);
    return { engine, parts };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const engine of this.#opened) await engine.close({ graceMs: 0 });
    rmSync(this.path, { recursive: true, force: true, maxRetries: 20 });
  }
}
