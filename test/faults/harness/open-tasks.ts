import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { inProcessAgent, said } from '../../../bench/support/in-process-agent.ts';
import { DEFAULT_RESTORE } from '../../../src/core/restore/restore-settings.ts';
import { createEngine } from '../../../src/engine/engine.ts';
import { DEFAULT_ENGINE_SETTINGS, type EngineParts } from '../../../src/engine/parts.ts';
import { systemClock } from '../../../src/host/clock.ts';
import { ProcessHealth } from '../../../src/host/health.ts';
import { placeOf } from '../../../src/host/place.ts';
import { bootId, processesAt } from '../../../src/host/processes.ts';
import { reportBug } from '../../../src/host/report.ts';
import type { Tasks } from '../../../src/ports/tasks.ts';
import { directorySandboxes } from '../../../src/sandboxes/directory/directory-sandboxes.ts';
import { openPostgresStore } from '../../../src/stores/postgres/store.ts';
import { openSqliteStore } from '../../../src/stores/sqlite/store.ts';
import { createTasks } from '../../../src/tasks/tasks.ts';

/** Tasks of a data home whose agent answers at once, in this process. */
export async function openTasks(
  { home: folder, store: url }: { home: string; store?: string },
  { claims, parallel }: { claims: 'own' | 'all'; parallel: number },
) {
  mkdirSync(folder, { recursive: true });
  const file = join(folder, 'throughline.db');
  const store =
    url === undefined
      ? await openSqliteStore({ file, clock: systemClock, boot: bootId() })
      : await openPostgresStore({ url });
  const place = placeOf(folder);
  const processes = processesAt(place);
  const agent = inProcessAgent(() => [said('Done.')]);
  const parts: EngineParts = {
    store,
    agents: new Map([[agent.name, { agent, adapter: 'double' }]]),
    sandboxes: directorySandboxes({ root: join(folder, 'sandboxes'), place, processes }),
    processes,
    clock: systemClock,
    settings: { ...DEFAULT_ENGINE_SETTINGS, maxWarm: 0, restore: DEFAULT_RESTORE, defaultAgent: agent.name },
    health: new ProcessHealth(),
    onTrouble: () => {},
    onBug: reportBug,
  };
  const engine = createEngine(parts, 'local');
  const tasks: Tasks = createTasks({ ...parts, engine, settings: { ...parts.settings, claims, parallel } });
  return { engine, tasks };
}
