// The program in a rented machine through which we use its files and programs. It is bundled into one file (scripts/bundle.js).
import { randomBytes } from 'node:crypto';
import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { processesAt } from './host/processes.ts';
import { directorySandboxes } from './sandboxes/directory/directory-sandboxes.ts';
import { localSandbox } from './sandboxes/shared/local-sandbox.ts';
import { operationsOf } from './sandboxes/vendors/inside/operations.ts';
import { Programs } from './sandboxes/vendors/inside/programs.ts';
import { BRIDGE_SETTINGS, type BridgeFile, type BridgeSettings } from './sandboxes/vendors/inside/protocol.ts';
import { bridgeServer } from './sandboxes/vendors/inside/serve.ts';

const { version, port, folder, place } = JSON.parse(process.env[BRIDGE_SETTINGS] ?? '{}') as BridgeSettings;
const processes = processesAt(place);
const sandboxes = directorySandboxes({ root: join(folder, 'sandboxes'), place, processes });
const sandbox = localSandbox({ id: 'bridge', work: folder, state: folder, processes });
const programs = new Programs(sandbox.spawn, (process) => sandboxes.end(process));
const token = randomBytes(32).toString('hex');
const leave = () => process.exit(0);
const server = bridgeServer(operationsOf({ sandboxes, sandbox, programs, self: processes.self(), leave }), token);
// Another bridge has the port already, and is used: several may be started at once.
server.once('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EADDRINUSE') process.exit(0);
  throw error;
});
server.listen(port, '0.0.0.0', async () => {
  // Programs that an earlier bridge has started: nobody reads their output any more.
  for (const left of await sandboxes.orphans()) await sandboxes.end(left);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const file = join(folder, 'bridge.json');
  const content: BridgeFile = { version, port, token };
  writeFileSync(`${file}.new`, JSON.stringify(content), { mode: 0o600 });
  renameSync(`${file}.new`, file);
});
