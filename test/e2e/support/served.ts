import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { connect } from '../../../src/clients/http/connect.ts';
import { socketTransport } from '../../../src/clients/http/connection/node-transport.ts';
import { fetchTransport } from '../../../src/clients/http/connection/transport.ts';
import type { HttpEngine } from '../../../src/clients/http/engine.ts';
import { HttpTasks } from '../../../src/clients/http/tasks.ts';
import { startServer } from '../../../src/faces/http/server.ts';
import { createLog } from '../../../src/faces/http/telemetry/log.ts';
import { Metrics } from '../../../src/faces/http/telemetry/metrics.ts';
import { Throughline } from '../../../src/library/throughline.ts';
import type { Engine } from '../../../src/ports/engine.ts';
import type { Tasks } from '../../../src/ports/tasks.ts';

/** How tests reach the engine of a home: in this process, or through a real server of it. */
export type Way = 'embedded' | 'socket' | 'tcp';

let way: Way = 'embedded';

/** For every home that is opened from now on in this test file. */
export function reachBy(chosen: Way): void {
  way = chosen;
}

/** The same engine the way that was chosen. `onBug` is told what the server logs as its own fault. */
export async function reached(home: string, engine: Engine, onBug: (line: unknown) => void): Promise<Engine> {
  return way === 'embedded' ? engine : served(home, { engine }, onBug);
}

async function served(
  home: string,
  behind: { engine: Engine; tasks?: Tasks },
  onBug: (line: unknown) => void,
): Promise<HttpEngine> {
  const socket = join(home, `${randomUUID().slice(0, 8)}.socket`);
  const token = randomUUID();
  const server = await startServer({
    engine: behind.engine,
    ...(behind.tasks && { tasks: behind.tasks }),
    ...{ token, socket, host: '127.0.0.1', port: 0, version: 'test', metrics: new Metrics() },
    keys: { findKey: async () => null },
    log: createLog('error', [token], onBug),
  });
  const transport = way === 'socket' ? socketTransport(socket) : fetchTransport(server.url);
  const client = await connect({ transport, token });
  // To a test, the server is a part of what it has opened: they end together.
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

export async function reachedThroughline(
  home: string,
  tl: Throughline,
  onBug: (line: unknown) => void,
): Promise<Throughline> {
  if (way === 'embedded') return tl;
  const engine = await served(home, tl, onBug);
  return new Throughline(engine, new HttpTasks(engine.caller, () => process.cwd()), null);
}
