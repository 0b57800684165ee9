import type { Measure } from '../finding.ts';
import { BenchHome, type Opened } from '../support/bench-home.ts';
import { bytesWritten } from '../support/bytes-written.ts';
import { history } from '../support/history.ts';
import { median } from '../support/statistics.ts';
import { TurnWatch } from '../support/turn-watch.ts';

const PROMPT = '/say A word or two.';
const EARLY = 10;

interface Cost {
  readonly ms: number;
  readonly bytes: number;
  readonly commits: number;
}

/**
 * The same turn early and late in a conversation. The long conversation was imported. The measured turns run as all turns do, with the
 * scripted agent, whose own cost does not grow. The two alternate, so that the machine is the same for both.
 */
const measure: Measure = async ({ quick }) => {
  const [late, window] = quick ? [500, 20] : [10_000, 200];
  await using home = new BenchHome();
  const opened = await home.open();
  const short = await conversation(opened, 0);
  const long = await conversation(opened, late - window - EARLY + 1);
  for (let n = 1; n < EARLY; n += 1) {
    await short.turn();
    await long.turn();
  }
  const costs: { short: Cost[]; long: Cost[] } = { short: [], long: [] };
  for (let i = 0; i < window; i += 1) {
    costs.short.push(await short.turn());
    costs.long.push(await long.turn());
  }
  const { head } = await opened.engine.conversation(long.id);
  await Promise.all([short.stop(), long.stop()]);

  const of = (which: 'short' | 'long', what: keyof Cost) => median(costs[which].map((cost) => cost[what]));
  const ratio = (what: keyof Cost) => of('long', what) / of('short', what);
  const windows = `medians of turns ${EARLY}–${EARLY + window} and ${head - window}–${head}`;
  return [
    {
      name: `time of turn ${head} ÷ turn ${EARLY}`,
      value: ratio('ms'),
      unit: '×',
      target: { kind: 'must', most: 1.1 },
      note: `${windows}: ${of('short', 'ms').toFixed(2)} and ${of('long', 'ms').toFixed(2)} ms from submit to end, agent included`,
    },
    {
      name: `bytes written in turn ${head} ÷ turn ${EARLY}`,
      value: ratio('bytes'),
      unit: '×',
      target: { kind: 'must', most: 1.1 },
      note: `${windows}: ${of('short', 'bytes')} and ${of('long', 'bytes')} bytes`,
    },
    {
      name: `fsyncs in turn ${head} ÷ turn ${EARLY}`,
      value: ratio('commits'),
      unit: '×',
      target: { kind: 'must', most: 1.1 },
      note: `${of('short', 'commits')} and ${of('long', 'commits')} commits a turn`,
    },
  ];
};

async function conversation({ engine, queue }: Opened, turns: number) {
  const { id, lastSeq } =
    turns === 0 ? await engine.ensure({ key: 'short' }) : await engine.import(history(turns, 'scripted'));
  const watch = new TurnWatch(engine, id, lastSeq);
  return {
    id,
    stop: () => watch.stop(),
    async turn(): Promise<Cost> {
      const [commits, bytes, start] = [queue.commits, bytesWritten(), performance.now()];
      const { turn } = await engine.submit(id, PROMPT);
      const ms = (await watch.ended(turn.id)) - start;
      return { ms, commits: queue.commits - commits, bytes: (bytesWritten() ?? 1) - (bytes ?? 0) };
    },
  };
}

export default measure;
