import { Agent, get } from 'node:http';
import { startServer } from '../../src/faces/http/server.ts';
import { createLog } from '../../src/faces/http/telemetry/log.ts';
import { Metrics } from '../../src/faces/http/telemetry/metrics.ts';
import type { Measure } from '../finding.ts';
import { BenchHome } from '../support/bench-home.ts';
import { post } from '../support/http-process.ts';
import { inProcessAgent, said } from '../support/in-process-agent.ts';
import { median, quantile } from '../support/statistics.ts';
import { TurnWatch } from '../support/turn-watch.ts';

/**
 * A whole turn, from the prompt until its end is seen: through the engine in this process, and through HTTP to the same engine, with client
 * and server in this process as well. The two alternate.
 */
const measure: Measure = async ({ quick }) => {
  await using home = new BenchHome();
  const { engine, parts } = await home.open({ agent: inProcessAgent(() => [said('Hello.')]) });
  const server = await startServer({
    ...{ engine, keys: parts.store, token: 'bench', version: 'bench', socket: null, host: '127.0.0.1', port: 0 },
    ...{ log: createLog('info', [], () => {}), metrics: new Metrics() },
  });
  const [embedded, served] = [await engine.ensure({ key: 'embedded' }), await engine.ensure({ key: 'served' })];
  const watch = new TurnWatch(engine, embedded.id, 0);
  const agent = new Agent({ keepAlive: true });
  const ends = new EndReader(server.port, served.id);
  const once = async () => {
    const start = performance.now();
    const { turn } = await engine.submit(embedded.id, 'Hello?');
    return (await watch.ended(turn.id)) - start;
  };
  const overHttp = async () => {
    const start = performance.now();
    const { text } = await post(server.port, agent, `/conversations/${served.id}/turns`, { prompt: 'Hello?' });
    await ends.of(JSON.parse(text).turn.id);
    return performance.now() - start;
  };
  const times = { embedded: [] as number[], http: [] as number[] };
  const [warmUp, count] = quick ? [10, 50] : [300, 2_000];
  for (let i = 0; i < warmUp + count; i += 1) {
    const [a, b] = [await once(), await overHttp()];
    if (i < warmUp) continue;
    times.embedded.push(a);
    times.http.push(b);
  }
  ends.close();
  agent.destroy();
  await watch.stop();
  await server.close({ graceMs: 0 });
  const ms = (value: number) => `${value.toFixed(2)} ms`;
  return [
    {
      name: 'HTTP beside embedded, a turn, p50',
      value: median(times.http) - median(times.embedded),
      unit: 'ms',
      target: { kind: 'must', most: 1.5 },
      note:
        `${ms(median(times.http))} from the request until the end is read from the stream, ${ms(median(times.embedded))} in the ` +
        `process; p99 ${ms(quantile(times.http, 0.99))} and ${ms(quantile(times.embedded, 0.99))}; client and server share a thread`,
    },
  ];
};

/** Follows a conversation over HTTP, and waits for the ends of its turns. */
class EndReader {
  readonly #ended = new Set<string>();
  readonly #waiting = new Map<string, () => void>();
  readonly #request;

  constructor(port: number, conversation: string) {
    const path = `/v1/conversations/${conversation}/events`;
    this.#request = get({ host: '127.0.0.1', port, path, headers: { authorization: 'Bearer bench' } }, (response) => {
      let rest = '';
      response.setEncoding('utf8').on('data', (chunk: string) => {
        const frames = (rest + chunk).split('\n\n');
        rest = frames.pop() ?? '';
        for (const frame of frames) if (frame.includes('"kind":"turn.ended"')) this.#end(frame);
      });
    }).on('error', () => {});
  }

  of(turn: string): Promise<void> {
    if (this.#ended.has(turn)) return Promise.resolve();
    return new Promise((resolve) => this.#waiting.set(turn, resolve));
  }

  close(): void {
    this.#request.destroy();
  }

  #end(frame: string): void {
    const { turnId } = JSON.parse(frame.slice(frame.indexOf('data: ') + 6));
    this.#ended.add(turnId);
    this.#waiting.get(turnId)?.();
  }
}

export default measure;
