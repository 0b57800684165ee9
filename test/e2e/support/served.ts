import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { expect } from 'vitest';
import { connect } from '../../../src/clients/http/connect.ts';
import { socketTransport } from '../../../src/clients/http/connection/node-transport.ts';
import { fetchTransport } from '../../../src/clients/http/connection/transport.ts';
import type { HttpEngine } from '../../../src/clients/http/engine.ts';
import { httpLiveStreams } from '../../../src/clients/http/live.ts';
import { HttpTasks } from '../../../src/clients/http/tasks.ts';
import { httpTrackers } from '../../../src/clients/http/tracker.ts';
import { type ComposeOptions, compose } from '../../../src/compose.ts';
import { startServer } from '../../../src/faces/http/server.ts';
import { createLog } from '../../../src/faces/http/telemetry/log.ts';
import { Metrics } from '../../../src/faces/http/telemetry/metrics.ts';
import { type OpenOptions, open, type Throughline } from '../../../src/index.ts';
import { ThroughlineClient } from '../../../src/library/client.ts';
import { storeTrackers } from '../../../src/library/tracker/tracker.ts';
import type { Engine } from '../../../src/ports/engine.ts';
import type { Tasks } from '../../../src/ports/tasks.ts';
import type { ClientTrackers } from '../../../src/ports/tracker.ts';
import { chosenWay } from './way.ts';

/** The engine itself, or a client of a server that has it. `onBug` is called with every error that the server logs. */
export async function reachAsChosen(home: string, engine: Engine, onBug: (line: unknown) => void): Promise<Engine> {
  return chosenWay() === 'embedded' ? engine : serve(home, { engine }, onBug);
}

async function serve(
  home: string,
  behind: { engine: Engine; tasks?: Tasks; trackers?: ClientTrackers },
  onBug: (line: unknown) => void,
): Promise<HttpEngine> {
  const socket = join(home, `${randomUUID().slice(0, 8)}.socket`);
  const token = randomUUID();
  const server = await startServer({
    ...behind,
    ...{ token, socket, host: '127.0.0.1', port: 0, version: 'test', metrics: new Metrics() },
    keys: { findKey: async () => null, createLink: async () => 0, takeLink: async () => null },
    log: createLog('error', [token], onBug),
  });
  const transport = chosenWay() === 'socket' ? socketTransport(socket) : fetchTransport(server.url);
  const client = await connect({ transport, token });
  // The test knows only the client. So closing the client closes the server, too.
  const close = async (options: { graceMs?: number } = {}) => {
    await server.close(options);
    await client.close();
  };
  return new Proxy(client, {
    get(target, name) {
      if (name === 'close') return close;
      const value = Reflect.get(target, name);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

/** The `holder` of a lock that a tracker of this process has taken. */
export function ownHolder(): unknown {
  return chosenWay() === 'embedded' ? 'this process' : expect.stringMatching(/^client [\w-]{36}$/);
}

/** Throughline in this process, or a client of a server that has it. */
export async function openAsChosen(
  options: OpenOptions & { home: string },
  onBug: (line: unknown) => void,
): Promise<Throughline> {
  if (chosenWay() === 'embedded') return open(options);
  const { onPermission, ...rest } = options;
  const { engine, tasks, parts } = await compose({
    ...rest,
    engine: { claims: 'left', ...options.engine },
  } as ComposeOptions);
  const behind = { engine, tasks: await tasks(), trackers: storeTrackers(parts) };
  const client = await serve(options.home, behind, onBug);
  const { caller } = client;
  const [overHttp, trackers] = [new HttpTasks(caller, () => process.cwd()), httpTrackers(caller)];
  return new ThroughlineClient(client, overHttp, trackers, httpLiveStreams(caller), null, onPermission);
}
