import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import type { Task } from '../../../src/index.ts';
import { assembleTasks } from '../harness/assemble.ts';
import { marked } from '../harness/marked.ts';
import { Place } from '../harness/place.ts';
import type { TaskHook } from '../harness/task-hook.ts';
import { until } from '../harness/until.ts';

/*
 * A process is killed at one exact step of a task, before or after the step is durable. A newcomer adds the same task under the same request
 * id, and waits for its end: its gate fails once and then passes. No turn runs at any of these steps, so none is lost or run twice. Only a
 * gate may run once more.
 */
const STEPS: readonly Omit<TaskHook, 'side'>[] = [
  { verb: 'add', call: 1 },
  { verb: 'claim', call: 1 },
  { verb: 'commit', what: 'task.opened', call: 1 },
  { verb: 'commit', what: 'gate', call: 1 },
  { verb: 'commit', what: 'task.decided', call: 1 },
  { verb: 'commit', what: 'gate', call: 2 },
  { verb: 'commit', what: 'task.decided', call: 2 },
];
const CASES = STEPS.flatMap((step) =>
  (['before', 'after'] as const).map((side) => ({ ...step, side, name: `${step.what ?? step.verb} (${step.call})` })),
);

test.concurrent.each(CASES)(
  'a task continues where it was when its process is killed $side $name',
  async ({ name: _, ...hook }) => {
    await using place = new Place();
    const [effects, gates] = [place.effects('work'), place.effects('gate')];
    const work = `/usage 10 1\n/tool work ${effects}`;
    const check = `echo gate >> ${gates}; test $(wc -l < ${effects}) -ge 2 && exit 0; printf '${work.replace('\n', '\\n')}'; exit 1`;
    const plan = { goal: work, gate: check };
    const killed = place.start('task-stepper', { hook, plan });
    await killed.closed;
    expect(killed.stderr).toBe('');

    const { engine, tasks } = await assembleTasks({ ...place, engine: { maxWarm: 0 } });
    const [task] = (await tasks.run(plan, { requestId: 'once' })) as [Task];
    expect(task).toMatchObject({ state: 'done', progress: { turns: 2, iteration: 2 } });
    const { turns, gates: judged, decisions } = await tasks.report(task.id);
    expect(turns.map(({ outcome }) => outcome)).toEqual(['completed', 'completed']);
    expect(judged.map(({ result }) => result.verdict)).toEqual(['fail', 'pass']);
    expect(decisions.map(({ decision }) => decision)).toEqual(['retry', 'done']);
    expect(place.ran('work')).toEqual(['work', 'work']);
    expect(readFileSync(gates, 'utf8').trim().split('\n').length).toBeLessThanOrEqual(3);
    const [[ofTasks], [ofAll]] = [await tasks.usage(), await engine.usage()];
    expect(ofTasks?.usage).toEqual(ofAll?.usage);
    await tasks.close();
    await engine.close({ graceMs: 0 });
    await until('all that it started has ended', () => marked(place.mark).length === 0);
  },
);
