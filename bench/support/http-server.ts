// A program with a server like `throughline serve`, and a test double of an agent that streams an answer.
// Prints its port. Answers every line on stdin with its memory usage. Ends when stdin is closed.
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import { startServer } from '../../src/faces/http/server.ts';
import { createLog } from '../../src/faces/http/telemetry/log.ts';
import { Metrics } from '../../src/faces/http/telemetry/metrics.ts';
import { BenchHome } from './bench-home.ts';
import { inProcessAgent, said } from './in-process-agent.ts';

/** The agent streams `chunks` pieces, `everyMs` apart. `running`: how many turns may run at once; 0: turns are only accepted. */
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
const print = (value: object) => process.stdout.write(`${JSON.stringify(value)}\n`);
print({ port: server.port });
for await (const _ of createInterface({ input: process.stdin })) print(process.memoryUsage());
await server.close({ graceMs: 0 });
