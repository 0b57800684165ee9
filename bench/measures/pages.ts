import type { Write } from '../../src/ports/store/writes.ts';
import type { Store } from '../../src/ports/store.ts';
import type { Measure } from '../finding.ts';
import { BenchHome, type Opened } from '../support/bench-home.ts';
import { inProcessAgent, said } from '../support/in-process-agent.ts';
import { median, quantile } from '../support/statistics.ts';

const PAGE = 200;
const BATCH = 256;

/** Reads pages of events of a very long conversation, as a follower or a face does. */
const measure: Measure = async ({ quick }) => {
  const events = quick ? 5_000 : 100_000;
  await using home = new BenchHome();
  const opened = await home.open({ agent: inProcessAgent(() => [said('Hello.')]) });
  const id = await fill(opened, events);
  const { store } = opened.parts;
  const { lastSeq } = await opened.engine.conversation(id);
  const places = { first: 0, middle: Math.floor(lastSeq / 2), last: lastSeq - PAGE };
  const found = new Map<string, number[]>(Object.keys(places).map((place) => [place, []]));
  for (let i = 0; i < 100; i += 1) {
    for (const [place, after] of Object.entries(places)) found.get(place)?.push(await readPage(store, id, after));
  }
  const medians = [...found].map(([place, times]) => `${place} ${median(times).toFixed(2)}`).join(', ');
  return [
    {
      name: `a page of a conversation of ${lastSeq.toLocaleString('en')} events, p50 of the slowest place`,
      value: Math.max(...[...found.values()].map(median)),
      unit: 'ms',
      target: { kind: 'aim', most: 20 },
      note: `${PAGE} events; ${medians} ms; p99 of all ${quantile([...found.values()].flat(), 0.99).toFixed(2)} ms`,
    },
  ];
};

/** Written directly under the lease, without the engine, because an agent would take too long for so many events. */
async function fill({ engine, parts }: Opened, events: number): Promise<string> {
  const { id } = await engine.ensure({ key: 'long' });
  const turn = { id: 'turn', conversation: id, requestId: null, agent: 'double', defaultAgent: null, retryOf: null };
  await parts.store.enqueue('local', { ...turn, prompt: [{ type: 'text', text: 'Go.' }], options: {} });
  const claim = await parts.store.claim({
    worker: { id: 'bench', process: parts.processes.self() },
    place: parts.sandboxes.place,
    agents: ['double'],
    driver: 'worker',
    leaseMs: 600_000,
    conversation: id,
  });
  if (claim === null) throw new Error('the conversation cannot be claimed');
  const payload = { acp: 1, update: said('A few words of an answer that is told in very many pieces. '.repeat(3)) };
  const write: Write = { write: 'event', event: { kind: 'turn.update', turn: 'turn', payload } };
  for (let done = 0; done < events; done += BATCH) {
    await parts.store.commit(
      claim.fence,
      1 + done,
      Array.from({ length: Math.min(BATCH, events - done) }, () => write),
    );
  }
  await parts.store.release(claim.fence);
  await parts.store.requestCancel('local', 'turn', 'bench');
  return id;
}

async function readPage(store: Store, id: string, after: number): Promise<number> {
  const start = performance.now();
  const page = await store.events('local', id, { after, limit: PAGE });
  if (page.length !== PAGE) throw new Error(`a page of ${page.length}`);
  return performance.now() - start;
}

export default measure;
