import { acpAgent } from '../../src/agents/acp/adapter.ts';
import { systemClock } from '../../src/host/clock.ts';
import type { Engine } from '../../src/ports/engine.ts';
import type { Finding, Measure } from '../finding.ts';
import { AGENT_COMMAND, BareClient } from '../support/acp-client.ts';
import { BenchHome } from '../support/bench-home.ts';
import { bytesWritten } from '../support/bytes-written.ts';
import { LogWrite } from '../support/log-write.ts';
import { median } from '../support/statistics.ts';
import { toldHistory } from '../support/told-history.ts';
import { idle, TurnWatch } from '../support/turn-watch.ts';

const CHUNKS = 5_000;
/** For systems that do not report the bytes written: two commits, of about sixteen pages and of ten. */
const USUAL_BYTES = 107_000;

/** An agent that speaks ACP, through Throughline and through a bare client of the SDK. The two alternate. */
const measure: Measure = async ({ quick }) => {
  await using home = new BenchHome();
  const options = { window: 2_000_000 };
  const folders = { installed: home.path, memory: home.path };
  const agent = acpAgent({ name: 'acp', command: AGENT_COMMAND, options, ...folders, clock: systemClock });
  const { engine, queue } = await home.open({ agent });
  const bare = await BareClient.start(home.path);
  const { id } = await engine.ensure({ key: 'bench' });
  const watch = new TurnWatch(engine, id, 0);

  const turn = async (prompt: string) => {
    const [commits, bytes] = [queue.commits, bytesWritten() ?? 0];
    const start = performance.now();
    const { turn } = await engine.submit(id, prompt);
    const first = (await watch.first(turn.id)) - start;
    const written = { commits: queue.commits - commits, bytes: (bytesWritten() ?? USUAL_BYTES) - bytes };
    return { first, ended: (await watch.ended(turn.id)) - start, ...written };
  };

  for (let i = 0; i < (quick ? 20 : 300); i += 1) {
    await turn('Hello.');
    await bare.ask('Hello.');
  }
  const findings = [...(await overhead()), ...(await chunks())];
  bare.close();
  await watch.stop();
  return [...findings, await restored(engine, quick)];

  async function overhead(): Promise<Finding[]> {
    const turns: Awaited<ReturnType<typeof turn>>[] = [];
    const alone: number[] = [];
    const writes: number[] = [];
    const warm = await turn('Hello.');
    const log = new LogWrite(home.path, Math.round(warm.bytes / warm.commits));
    for (let i = 0; i < (quick ? 20 : 500); i += 1) {
      turns.push(await turn('Hello.'));
      await idle();
      alone.push((await bare.ask('Hello.')).first);
      await idle();
      writes.push(log.once());
      await idle();
    }
    log.close();
    const [first, direct, write] = [median(turns.map((one) => one.first)), median(alone), median(writes)];
    const commits = median(turns.map((one) => one.commits));
    return [
      {
        name: 'ACP: turn overhead over a bare client beside the fsyncs, p50',
        value: first - direct - commits * write,
        unit: 'ms',
        target: { kind: 'must', most: 1 },
        note: `${first.toFixed(3)} ms from submit to the first update seen by a follower, less ${direct.toFixed(3)} ms with the SDK’s client, less ${commits} fsyncs of ${write.toFixed(3)} ms`,
      },
    ];
  }

  async function chunks(): Promise<Finding[]> {
    const prompt = `chunks ${CHUNKS}`;
    const ours: number[] = [];
    const theirs: number[] = [];
    for (let i = 0; i < (quick ? 2 : 15); i += 1) {
      ours.push(CHUNKS / (await turn(prompt)).ended);
      await idle();
      const { ended, chunks } = await bare.ask(prompt);
      if (chunks !== CHUNKS) throw new Error(`the bare client saw ${chunks} chunks`);
      theirs.push(CHUNKS / ended);
      await idle();
    }
    const [rate, direct] = [median(ours), median(theirs)];
    return [
      {
        name: `ACP: ${CHUNKS.toLocaleString('en')} chunks in a turn, durable, beside a bare client`,
        value: rate / direct,
        unit: '×',
        target: { kind: 'must', least: 0.9 },
        note: `${rate.toFixed(0)} chunks a millisecond from submit to the durable end of the turn; ${direct.toFixed(0)} with the SDK’s client, which keeps nothing`,
      },
    ];
  }
};

async function restored(engine: Engine, quick: boolean): Promise<Finding> {
  const { told, fresh, delivered } = await toldHistory(engine, { agent: 'acp', prompt: 'Hello.', quick });
  return {
    name: `ACP: restore by transcript, ${delivered.toLocaleString('en')} turns, p50`,
    value: told - fresh,
    unit: 'ms',
    target: { kind: 'must', most: 50 },
    note: `${told.toFixed(0)} ms to the first update, less ${fresh.toFixed(0)} ms for a conversation without a history; both start the agent, which reads the block in that time, too`,
  };
}

export default measure;
