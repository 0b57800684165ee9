// A server in a process of its own, as `throughline serve` is one, with an agent double that streams as it is told.
// Says its address on stdout; answers every line on stdin with what it uses of memory; ends with its stdin.
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import { startServer } from '../../src/faces/http/server.ts';
import { createLog } from '../../src/faces/http/telemetry/log.ts';
import { Metrics } from '../../src/faces/http/telemetry/metrics.ts';
import { BenchHome } from './bench-home.ts';
import { inProcessAgent, said } from './in-process-agent.ts';

/** `chunks` words, `everyMs` apart; `running`: how many turns may run at once, 0 to only accept them. */
const { chunks, everyMs, running } = JSON.parse(process.argv[2] ?? '{}');

await using home = new BenchHome();
const agent = inProcessAgent(async function* () {
  for (let i = 0; i < chunks; i += 1) {
    if (everyMs > 0) await pause(everyMs);
    yield said(`word ${i} of an answer that is neither long nor short `);
  }
});
const { engine, parts } = await home.open({ agent, engine: { maxRunning: running, maxWarm: 1_000 } });
const server = await startServer({
  ...{ engine, keys: parts.store, token: 'bench', version: 'bench', socket: null, host: '127.0.0.1', port: 0 },
  ...{ log: createLog('silent', [], () => {}), metrics: new Metrics() },
});
const say = (value: object) => process.stdout.write(`${JSON.stringify(value)}\n`);
say({ port: server.port });
for await (const _ of createInterface({ input: process.stdin })) say(process.memoryUsage());
await server.close({ graceMs: 0 });
