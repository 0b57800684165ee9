import { hasEnded } from '../../src/core/turn/turn.ts';
import type { Engine } from '../../src/ports/engine.ts';
import type { OpenSandbox } from '../../src/ports/sandbox.ts';
import { createTasks } from '../../src/tasks/tasks.ts';
import type { Measure } from '../finding.ts';
import { BenchHome } from '../support/bench-home.ts';
import { inProcessAgent, said } from '../support/in-process-agent.ts';
import { median } from '../support/statistics.ts';

const VERDICT = JSON.stringify({ verdict: 'fail', reason: 'Not yet.' });

/**
 * What a task adds to its turns. A task whose gate is an agent has two turns per iteration, one of work and one of judgement. It is
 * compared with the same turns in two conversations without a task. The agent answers at once in this process, so that its time does not
 * count. The two alternate, so that the machine is the same for both.
 */
const measure: Measure = async ({ quick }) => {
  await using home = new BenchHome();
  const double = inProcessAgent(() => [said(VERDICT)]);
  const agent = {
    ...double,
    traits: async (sandbox: OpenSandbox) => ({ ...(await double.traits(sandbox)), resume: true }),
  };
  const { engine, parts, queue } = await home.open({ agent });
  const tasks = createTasks({ ...parts, engine, settings: { ...parts.settings, parallel: 1 } });
  const [rounds, iterations] = quick ? [2, 5] : [30, 20];
  const [inTask, plainly, commits]: number[][] = [[], [], []];
  for (let round = 0; round < rounds; round += 1) {
    const start = performance.now();
    const before = queue.commits;
    const gate = { agent: agent.name, ask: 'Judge.' };
    const [task] = await tasks.run({ goal: 'Work.', gate, maxIterations: iterations });
    inTask?.push((performance.now() - start) / iterations);
    commits?.push((queue.commits - before) / iterations);
    const prompts = (await engine.turns(`task/${task?.id}`)).map(({ prompt }) => prompt);
    const judged = (await engine.turns(`task/${task?.id}/gate`)).map(({ prompt }) => prompt);
    const began = performance.now();
    const pair = [`work ${round}`, `judge ${round}`];
    for (const key of pair) await engine.ensure({ key });
    for (const [i, prompt] of prompts.entries()) {
      await runTurn(engine, pair[0] as string, prompt);
      await runTurn(engine, pair[1] as string, judged[i] as typeof prompt);
    }
    plainly?.push((performance.now() - began) / iterations);
  }
  await tasks.close();
  const [task, plain] = [median(inTask ?? []), median(plainly ?? [])];
  return [
    {
      name: 'overhead of a task turn over a plain turn, p50',
      value: (task - plain) / 2,
      unit: 'ms',
      target: { kind: 'must', most: 1 },
      note:
        `${task.toFixed(2)} ms an iteration of a task, a turn of work and one of judgement, less ${plain.toFixed(2)} ms for the ` +
        `same two turns without one; with the fsync of the decision, ${median(commits ?? []).toFixed(1)} commits an iteration`,
    },
  ];
};

/** Submits a turn, and waits until a follower sees its end. */
async function runTurn(engine: Engine, key: string, prompt: Parameters<Engine['submit']>[1]): Promise<void> {
  const { turn, seq } = await engine.submit(key, prompt);
  if (hasEnded(turn.state)) return;
  for await (const event of engine.follow(turn.conversationId, { after: seq })) {
    if (event.kind === 'turn.ended' && event.turnId === turn.id) return;
  }
}

export default measure;
