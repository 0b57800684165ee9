import { join } from 'node:path';
import { connect } from '../../src/clients/http/connect.ts';
import { socketTransport } from '../../src/clients/http/connection/node-transport.ts';
import { connectHome } from '../../src/connect.ts';
import { startServer } from '../../src/faces/http/server.ts';
import { createLog } from '../../src/faces/http/telemetry/log.ts';
import { Metrics } from '../../src/faces/http/telemetry/metrics.ts';
import type { Engine } from '../../src/ports/engine.ts';
import type { Measure } from '../finding.ts';
import { BenchHome } from '../support/bench-home.ts';
import { inProcessAgent, said } from '../support/in-process-agent.ts';
import { median } from '../support/statistics.ts';
import { TurnWatch } from '../support/turn-watch.ts';

/**
 * A whole turn, from `submit` until a follower sees its end: with the engine in this process, and with the same engine through its server
 * and `clients/http`, both in this process as well. The two alternate. `http-overhead` measures HTTP without our client.
 */
const measure: Measure = async ({ quick }) => {
  await using home = new BenchHome();
  const { engine } = await home.open({ agent: inProcessAgent(() => [said('Hello.')]) });
  const socket = join(home.path, 'socket');
  const server = await startServer({
    ...{ engine, token: 'bench', socket, host: '127.0.0.1', port: 0, version: 'bench', metrics: new Metrics() },
    ...{
      keys: { findKey: async () => null, createLink: async () => 0, takeLink: async () => null },
      log: createLog('silent', [], () => {}),
    },
  });
  const client = await connect({ transport: socketTransport(socket), token: 'bench' });
  const [embedded, served] = [await turnsOf(engine, 'embedded'), await turnsOf(client, 'served')];
  const times: { embedded: number[]; served: number[] } = { embedded: [], served: [] };
  for (let i = 0; i < (quick ? 20 : 300); i += 1) await embedded.once().then(served.once);
  for (let i = 0; i < (quick ? 20 : 1_000); i += 1) {
    times.embedded.push(await embedded.once());
    times.served.push(await served.once());
  }
  const nowhere: number[] = [];
  for (let i = 0; i < 200; i += 1) {
    const start = performance.now();
    if ((await connectHome({ home: home.path })) !== null) throw new Error('there is no server of this home');
    nowhere.push(performance.now() - start);
  }
  await embedded.watch.stop();
  await served.watch.stop();
  await client.close();
  await server.close();

  const [alone, over] = [median(times.embedded), median(times.served)];
  return [
    {
      name: 'our client of the server beside embedded, a turn, p50',
      value: over - alone,
      unit: 'ms',
      target: { kind: 'must', most: 1.5 },
      note: `${over.toFixed(3)} and ${alone.toFixed(3)} ms from submit to the end of the turn seen by a follower; unix socket`,
    },
    {
      name: 'finding that no server runs, p50',
      value: median(nowhere),
      unit: 'ms',
      target: { kind: 'must', most: 1 },
      note: 'what every command pays that works embedded',
    },
  ];
};

async function turnsOf(engine: Engine, key: string) {
  const { id } = await engine.ensure({ key });
  const watch = new TurnWatch(engine, id, 0);
  const once = async () => {
    const start = performance.now();
    const { turn } = await engine.submit(id, 'Hello?');
    return (await watch.ended(turn.id)) - start;
  };
  return { watch, once };
}

export default measure;
