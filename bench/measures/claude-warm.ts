import { setTimeout as delay } from 'node:timers/promises';
import type { Engine } from '../../src/ports/engine.ts';
import { runClaude } from '../../test/agents/support/claude.ts';
import type { Measure } from '../finding.ts';
import { ClaudeBench, type Seen } from '../support/claude-bench.ts';
import { median } from '../support/statistics.ts';
import { TurnWatch } from '../support/turn-watch.ts';

const PROMPT = 'model: say Hello.';
const SLOWLY = 'model: stream 20 25ms';
/** Claude still works for a while after its answer. The next turn, of another Claude process, must not share the processor with it. */
const REST_MS = 100;
const PAIRS = 10;
const ROUNDS = 10;

/**
 * A turn in a warm session of the real Claude, with the stand-in model: through Throughline, through the SDK alone, and with
 * a new process for every prompt. All three alternate. One process of Claude can be constantly slower than another by more than
 * the measured difference, so several of each are used.
 */
const measure: Measure = async ({ quick }) => {
  await using bench = await ClaudeBench.start('claude-warm');
  if (bench === null) return [];
  const again = { cwd: bench.directory('again'), env: bench.env };
  const { session_id = '' } = (await runClaude(bench.claude, [PROMPT], again)).result;
  const each = async () => {
    const start = performance.now();
    const { result } = await runClaude(bench.claude, [PROMPT, '--resume', session_id], again);
    if (result.is_error !== false) throw new Error(`claude -p failed: ${JSON.stringify(result)}`);
    return performance.now() - start;
  };

  const times: { ours: Seen[]; theirs: Seen[]; each: number[] } = { ours: [], theirs: [], each: [] };
  const slow: { ours: number[]; theirs: number[] } = { ours: [], theirs: [] };
  let commits = 0;
  for (let pair = 0; pair < (quick ? 1 : PAIRS); pair += 1) {
    const { engine, queue } = await bench.home.open({ agent: bench.agent() });
    const warm = await warmConversation(engine);
    const direct = await bench.query(bench.directory(`direct ${pair}`));
    const ours = async () => {
      await delay(REST_MS);
      const before = queue.commits;
      times.ours.push(await warm.ask(PROMPT));
      commits += queue.commits - before;
    };
    const theirs = async () => {
      await delay(REST_MS);
      times.theirs.push(await direct.ask(PROMPT));
    };
    for (let i = 0; i < 5; i += 1) [await warm.ask(PROMPT), await direct.ask(PROMPT)];
    for (let i = 0; i < ROUNDS / 2; i += 1) for (const turn of [theirs, ours, ours, theirs]) await turn();
    times.each.push(await each());
    for (let i = 0; i < 2; i += 1) {
      await delay(REST_MS);
      slow.theirs.push((await direct.ask(SLOWLY)).ended);
      await delay(REST_MS);
      slow.ours.push((await warm.ask(SLOWLY)).ended);
    }
    await direct.close();
    await warm.stop();
    await engine.close({ graceMs: 0 });
  }
  const perTurn = commits / times.ours.length;

  const [ours, theirs] = [median(times.ours.map((one) => one.ended)), median(times.theirs.map((one) => one.ended))];
  const first = [median(times.ours.map((one) => one.first)), median(times.theirs.map((one) => one.first))] as const;
  const one = median(times.each);
  return [
    {
      name: 'added to the end of a warm turn of Claude that is answered at once, p50',
      value: ours - theirs,
      unit: 'ms',
      target: { kind: 'must', most: 10 },
      note:
        `${ours.toFixed(1)} ms through Throughline, ${theirs.toFixed(1)} through the SDK alone; ours also waits until Claude’s transcript holds the turn, ` +
        `and for ${perTurn.toFixed(1)} commits`,
    },
    {
      name: 'the same to the first of the answer ÷ the SDK alone, p50',
      value: first[0] / first[1],
      unit: '×',
      target: null,
      note: `${first[0].toFixed(1)} and ${first[1].toFixed(1)} ms; the model stands in for one and answers at once`,
    },
    {
      name: 'a warm turn of Claude whose answer takes half a second ÷ the same through the SDK alone, p50',
      value: median(slow.ours) / median(slow.theirs),
      unit: '×',
      target: { kind: 'must', most: 1.05 },
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

/** A new conversation that is prompted as a face would do it. */
async function warmConversation(engine: Engine) {
  const { id } = await engine.ensure({});
  const watch = new TurnWatch(engine, id, 0);
  return {
    async ask(prompt: string): Promise<Seen> {
      const start = performance.now();
      const { turn } = await engine.submit(id, prompt);
      const first = (await watch.first(turn.id)) - start;
      return { first, ended: (await watch.ended(turn.id)) - start };
    },
    stop: () => watch.stop(),
  };
}

export default measure;
