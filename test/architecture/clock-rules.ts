// The time comes from the injected clock (ports/clock.ts), so that tests can set it. Only the files that are named here read it themselves.

import { readsTime } from './names.ts';
import { isTest, outlineOf } from './outline.ts';

/** Folders with clocks of their own: that of this machine, and stand-ins for agents and models. */
const FREE = ['host/', 'testing/', 'agents/scripted/'];

/** Files that read the time of day, and why. Nothing that they read is stored in a conversation. */
export const USES_OF_WALL_TIME: Readonly<Record<string, string>> = {
  'clients/http/live.ts':
    'says since when a stream is open, and how long it was silent, also while the machine was asleep',
  'faces/cli/chat/chat.ts': 'shows a person how long a command runs',
  'faces/cli/chat/screen.ts': 'shows a person how long ago something happened',
  'faces/cli/commands/turns/chat.ts': 'names a new conversation after the time',
  'faces/http/server.ts': 'is the default of an option that tests set',
  'library/live.ts': 'says since when a stream is open',
  'sandboxes/vendors/vercel.ts': 'compares with the time at which the vendor ends a machine',
  'stores/sqlite/file/bell.ts': 'sets the time of a file, so that others see a change',
};

/** Files that measure how long something real takes, and what. A clock of a test would not change it. */
export const USES_OF_ELAPSED_TIME: Readonly<Record<string, string>> = {
  'agents/acp/connection/connection.ts': 'how long a running agent has been silent',
  'agents/acp/open/load.ts': 'how long a loading agent goes on sending',
  'agents/acp/open/open.ts': 'how long a starting agent has been silent',
  'clients/http/connection/backoff.ts': 'how long a server has been away',
  'clients/http/connection/connection.ts': 'how long a server has been away, before it says so',
  'clients/http/tracker.ts': 'how long a server lets a request wait for its lock',
  'engine/intake/portable.ts': 'its own work, which it interrupts so that others can run',
  'faces/cli/chat/leaving.ts': 'the pause between two key presses',
  'faces/cli/chat/screen.ts': 'how long a hint is shown',
  'faces/cli/commands/server/backup.ts': 'when the progress was last shown',
  'faces/cli/output.ts': 'how long a person has seen nothing new',
  'faces/http/app.ts': 'requests, for the log and the metrics',
  'faces/http/streams/event-stream.ts': 'how long a reader has read nothing',
  'faces/http/json/write-json.ts': 'its own work, which it interrupts so that others can run',
  'faces/http/read-request.ts': 'its own work, which it interrupts so that others can run',
  'sandboxes/container/engine.ts': 'how long a container takes to end',
  'sandboxes/container/start.ts': 'how long a started container takes to be seen',
  'sandboxes/shared/files.ts': 'its own search for files, which has a limit of time',
  'sandboxes/shared/remote/remote-programs.ts': 'how long a program on another machine takes to end',
  'sandboxes/vendors/bridged-child.ts': 'how long a connection is lost',
  'sandboxes/vendors/machine-bridge.ts': "the start of a vendor's machine, and how long it stays awake",
  'stores/postgres/copy-side.ts': 'how long the end of another process takes to be seen',
  'stores/postgres/server/access.ts': 'how long the database server takes to answer',
  'stores/postgres/server/connect.ts': 'how long the database server has been silent',
  'stores/sqlite/file/access.ts': 'its own work, which it interrupts so that others can run',
  'stores/sqlite/file/faults.ts': 'how long another process holds the lock of a file',
};

/**
 * `wall`: `Date.now`, `Date()`, `new Date()`; `elapsed`: `performance`, `process.hrtime`, `process.uptime`. Each once, in whatever way the
 * file names them. Not seen: times that other modules give, such as those of files, and of `node:os`.
 */
export function usesOfTime(path: string, source: string): ('wall' | 'elapsed')[] {
  if (isTest(path) || FREE.some((folder) => path.startsWith(folder))) return [];
  const found = outlineOf(path, source).globals.flatMap(({ name, how }) => {
    if (name === 'Date') return readsTime(how) ? (['wall'] as const) : [];
    // A `process` that is passed on may be read anywhere.
    const isElapsed = name === 'performance' || (name === 'process' && OF_PROCESS.has(how));
    return isElapsed ? (['elapsed'] as const) : [];
  });
  return [...new Set(found)];
}

const OF_PROCESS = new Set([null, 'hrtime', 'uptime']);

/** Every file that reads the time and is not named here, and every name without such a file. */
export function faultsOfTime(files: readonly (readonly [path: string, source: string])[]): string[] {
  const uses = files.flatMap(([path, source]) => usesOfTime(path, source).map((kind) => ({ path, kind })));
  const tables = [
    { kind: 'wall', named: Object.keys(USES_OF_WALL_TIME), reads: 'reads the time of day' },
    { kind: 'elapsed', named: Object.keys(USES_OF_ELAPSED_TIME), reads: 'measures time' },
  ];
  return tables.flatMap(({ kind, named, reads }) => {
    const paths = uses.filter((use) => use.kind === kind).map(({ path }) => path);
    return [
      ...paths.filter((path) => !named.includes(path)).map((path) => `${path} ${reads}, and does not use the clock`),
      ...named.filter((name) => !paths.includes(name)).map((name) => `${name} is named, but nothing in it ${reads}`),
    ];
  });
}
