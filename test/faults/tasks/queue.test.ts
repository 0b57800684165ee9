import { expect, test } from 'vitest';
import { openTasks } from '../harness/open-tasks.ts';
import { Place } from '../harness/place.ts';
import { Random, seedOfRun } from '../harness/random.ts';
import { until } from '../harness/until.ts';

const LONG = process.env.THROUGHLINE_LONG !== undefined;
const [COUNT, KILLS] = LONG ? [1_000, 20] : [120, 5];
const PARALLEL = 5;
const OWNERS = ['ann', 'bob', 'cid', 'dee'];

interface EventRow {
  readonly task: number;
  readonly owner: string;
  readonly seq: number;
  readonly kind: string;
  readonly payload: string;
}

test(`${COUNT} queued tasks and ${KILLS} kills: each is done once, in order, never more at once than may be, in turn for their owners`, {
  timeout: LONG ? 600_000 : 120_000,
}, async () => {
  const seed = seedOfRun();
  const random = new Random(seed);
  await using place = new Place();
  const { tasks, engine } = await openTasks(place.home, { claims: 'own', parallel: PARALLEL });
  await tasks.close(); // whoever adds them does not work on them
  for (const owner of OWNERS) {
    const plan = Array.from({ length: COUNT / OWNERS.length }, (_, i) => ({ goal: `${i}`, retryInterrupted: 100 }));
    await tasks.as(owner).add(plan);
  }
  await engine.close();
  const done = () => place.rows("SELECT no FROM tasks WHERE state = 'done'").length;
  for (let kill = 1; kill <= KILLS; kill += 1) {
    const runner = place.start('task-runner', { parallel: PARALLEL });
    await runner.said('ready');
    const enough = done() + random.whole(1, Math.max(1, Math.floor(COUNT / KILLS)));
    await until('some more are done', () => done() >= Math.min(enough, COUNT), { ms: 60_000, every: 3 });
    await runner.end();
  }
  place.start('task-runner', { parallel: PARALLEL });
  await until('all are at rest', () => done() === Math.floor(COUNT / OWNERS.length) * OWNERS.length, { ms: 300_000 });

  const events = place.rows<EventRow>('SELECT task, owner, seq, kind, payload FROM task_events ORDER BY no');
  expect(limitKept(events), `seed ${seed}`).toBeLessThanOrEqual(PARALLEL);
  for (const owner of OWNERS) {
    const own = events.filter((event) => event.owner === owner);
    expect(own.map(({ seq }) => seq)).toEqual(own.map((_, i) => i + 1));
    expect(firstStarts(own), `seed ${seed}`).toEqual(firstStarts(own).toSorted((a, b) => a - b));
  }
  // Whoever has fewer running is served first: nobody gets further ahead than can run at once.
  expect(mostAhead(events), `seed ${seed}`).toBeLessThanOrEqual(PARALLEL);
  const completed = place.rows("SELECT conv FROM turns WHERE state = 'completed' GROUP BY conv HAVING count(*) <> 1");
  expect(completed).toEqual([]);
  expect(place.rows('SELECT no FROM turns WHERE ended_at IS NULL')).toEqual([]);
  expect(place.complaints).toBe('');
});

const firstStarts = (events: readonly EventRow[]) => [
  ...new Set(events.filter(({ kind }) => kind === 'task.started').map(({ task }) => task)),
];

/** The most tasks that ran at any time, as the events tell it. */
function limitKept(events: readonly EventRow[]): number {
  const running = new Set<number>();
  let most = 0;
  for (const { task, kind, payload } of events) {
    if (kind === 'task.started') running.add(task);
    if (kind === 'task.queued' || (kind === 'task.decided' && JSON.parse(payload).state !== 'running'))
      running.delete(task);
    most = Math.max(most, running.size);
  }
  return most;
}

/** By how many first starts one owner was ever ahead of another, while all of them had something waiting. */
function mostAhead(events: readonly EventRow[]): number {
  const started = new Map(OWNERS.map((owner) => [owner, 0]));
  const seen = new Set<number>();
  let most = 0;
  for (const { task, owner, kind } of events) {
    if (kind !== 'task.started' || seen.has(task)) continue;
    seen.add(task);
    started.set(owner, (started.get(owner) ?? 0) + 1);
    const counts = [...started.values()];
    if (Math.max(...counts) < COUNT / OWNERS.length) most = Math.max(most, Math.max(...counts) - Math.min(...counts));
  }
  return most;
}
