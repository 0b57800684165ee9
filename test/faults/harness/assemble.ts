import { join } from 'node:path';
import { scriptedAgent } from '../../../src/agents/scripted/adapter.ts';
import { DEFAULT_RESTORE } from '../../../src/core/restore/restore-settings.ts';
import { createEngine } from '../../../src/engine/engine.ts';
import {
  type ConfiguredAgent,
  DEFAULT_ENGINE_SETTINGS,
  type EngineParts,
  type EngineSettings,
} from '../../../src/engine/parts.ts';
import { systemClock } from '../../../src/host/clock.ts';
import { ProcessHealth } from '../../../src/host/health.ts';
import { placeOf } from '../../../src/host/place.ts';
import { procfs } from '../../../src/host/process-table.ts';
import { processesAt, processesOf } from '../../../src/host/processes.ts';
import type { Clock } from '../../../src/ports/clock.ts';
import type { Engine } from '../../../src/ports/engine.ts';
import type { Store } from '../../../src/ports/store.ts';
import type { Tasks } from '../../../src/ports/tasks.ts';
import { directorySandboxes } from '../../../src/sandboxes/directory/directory-sandboxes.ts';
import { openSqliteStore } from '../../../src/stores/sqlite/store.ts';
import { createTasks } from '../../../src/tasks/tasks.ts';
import { settingsFor } from './agents.ts';

/** A machine that a process pretends to be: another boot of this machine, or another machine. */
export interface Machine {
  readonly boot: string;
  /** Whether that boot is known to be over. */
  readonly isOver: (boot: string) => boolean;
}

export interface Assembly {
  readonly home: string;
  readonly mark: string;
  readonly engine?: Partial<EngineSettings>;
  readonly clock?: Clock;
  /** Left out: this machine, in this boot. */
  readonly machine?: Machine;
  /** Wraps the store, so that a test can act at a certain step. */
  readonly around?: (store: Store) => Store;
}

/** The same parts as in `compose.ts`, but a test can replace some of them. */
export async function assemble(assembly: Assembly): Promise<Engine> {
  return createEngine(await assembleParts(assembly), 'local');
}

/** The same, with tasks. */
export async function assembleTasks(assembly: Assembly): Promise<{ engine: Engine; tasks: Tasks }> {
  const parts = await assembleParts(assembly);
  const engine = createEngine(parts, 'local');
  return { engine, tasks: createTasks({ ...parts, engine, settings: { ...parts.settings, parallel: 4 } }) };
}

async function assembleParts(assembly: Assembly): Promise<EngineParts> {
  const { home, mark, engine, clock = systemClock, machine, around } = assembly;
  const { agents: settings, defaultAgent } = settingsFor(mark);
  const agents = new Map<string, ConfiguredAgent>();
  for (const [name, { options, env }] of Object.entries(settings)) {
    agents.set(name, { agent: scriptedAgent({ name, options, env }), adapter: 'scripted' });
  }
  const place = placeOf(home);
  const processes =
    machine === undefined
      ? processesAt(place)
      : processesOf({ ...procfs, boot: () => machine.boot }, { place, isOver: machine.isOver });
  const store = await openSqliteStore({ file: join(home, 'throughline.db'), clock, boot: processes.self().boot });
  return {
    store: around ? around(store) : store,
    agents,
    sandboxes: directorySandboxes({ root: join(home, 'sandboxes'), place, processes }),
    processes,
    clock,
    settings: { ...DEFAULT_ENGINE_SETTINGS, restore: DEFAULT_RESTORE, defaultAgent, ...engine },
    health: new ProcessHealth(),
    onTrouble: () => {},
    onBug: (error: unknown, where: string) => {
      process.stderr.write(`a fault while ${where}: ${error instanceof Error ? error.stack : error}\n`);
    },
  };
}
