import { setTimeout as delay } from 'node:timers/promises';
import { runClaude } from '../../test/agents/claude.ts';
import type { Measure } from '../finding.ts';
import { ClaudeBench, type Seen } from '../support/claude-bench.ts';
import { median } from '../support/statistics.ts';
import { TurnWatch } from '../support/turn-watch.ts';

const PROMPT = 'model: say Hello.';
const SLOWLY = 'model: stream 20 25ms';
/** Claude still works for a while after its answer; the next turn, of another Claude, must not have to share with it. */
const REST_MS = 100;

/**
 * A turn in a warm session of the real Claude, with the stand-in model: through Throughline, through the SDK alone, and with
 * a process for every prompt. All three alternate.
 */
const measure: Measure = async ({ quick }) => {
  await using bench = await ClaudeBench.start('claude-warm');
  if (bench === null) return [];
  const { engine, queue } = await bench.home.open({ agent: bench.agent() });
  const { id } = await engine.ensure({ key: 'bench' });
  const watch = new TurnWatch(engine, id, 0);
  const through = async (prompt = PROMPT): Promise<Seen> => {
    const start = performance.now();
    const { turn } = await engine.submit(id, prompt);
    const first = (await watch.first(turn.id)) - start;
    return { first, ended: (await watch.ended(turn.id)) - start };
  };
  const direct = await bench.query(bench.directory('direct'));
  const again = { cwd: bench.directory('again'), env: bench.env };
  const { session_id = '' } = (await runClaude(bench.claude, [PROMPT], again)).result;
  const each = async () => {
    const start = performance.now();
    const { result } = await runClaude(bench.claude, [PROMPT, '--resume', session_id], again);
    if (result.is_error !== false) throw new Error(`claude -p failed: ${JSON.stringify(result)}`);
    return performance.now() - start;
  };

  for (let i = 0; i < 5; i += 1) [await through(), await direct.ask(PROMPT)];
  const times: { ours: Seen[]; theirs: Seen[]; each: number[] } = { ours: [], theirs: [], each: [] };
  const commits = queue.commits;
  const rounds = quick ? 10 : 100;
  for (let i = 0; i < rounds; i += 1) {
    await delay(REST_MS);
    times.theirs.push(await direct.ask(PROMPT));
    await delay(REST_MS);
    times.ours.push(await through());
    await delay(REST_MS);
    if (i % (quick ? 5 : 10) === 0) times.each.push(await each());
  }
  const perTurn = (queue.commits - commits) / rounds;
  const slow: { ours: number[]; theirs: number[] } = { ours: [], theirs: [] };
  for (let i = 0; i < rounds / 5; i += 1) {
    slow.theirs.push((await direct.ask(SLOWLY)).ended);
    await delay(REST_MS);
    slow.ours.push((await through(SLOWLY)).ended);
    await delay(REST_MS);
  }

  await direct.close();
  await watch.stop();
  const [ours, theirs] = [median(times.ours.map((one) => one.ended)), median(times.theirs.map((one) => one.ended))];
  const first = [median(times.ours.map((one) => one.first)), median(times.theirs.map((one) => one.first))] as const;
  const one = median(times.each);
  return [
    {
      name: 'a warm turn of Claude ÷ the same through the SDK alone, p50',
      value: ours / theirs,
      unit: '×',
      target: { kind: 'must', most: 1.1 },
      note:
        `${ours.toFixed(1)} and ${theirs.toFixed(1)} ms to the end; ours also waits until Claude’s transcript holds the turn, ` +
        `and for ${perTurn.toFixed(1)} commits`,
    },
    {
      name: 'the same, to the first of the answer, p50',
      value: first[0] / first[1],
      unit: '×',
      target: null,
      note: `${first[0].toFixed(1)} and ${first[1].toFixed(1)} ms; the model stands in for one and answers at once`,
    },
    {
      name: 'the same, with an answer that takes half a second, p50',
      value: median(slow.ours) / median(slow.theirs),
      unit: '×',
      target: null,
      note: `${median(slow.ours).toFixed(0)} and ${median(slow.theirs).toFixed(0)} ms to the end; 20 pieces with 25 ms between them`,
    },
    {
      name: '`claude -p --resume` for every prompt ÷ a warm turn, p50',
      value: one / ours,
      unit: '×',
      target: { kind: 'must', least: 10 },
      note: `${one.toFixed(0)} and ${ours.toFixed(1)} ms`,
    },
  ];
};

export default measure;
