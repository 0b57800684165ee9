import { openTasks } from './open-tasks.ts';
import type { Place } from './place.ts';
import type { Program } from './program.ts';
import type { Random } from './random.ts';
import { until } from './until.ts';

const OWNERS = ['ann', 'bob', 'cid', 'dee'];

export interface QueueOptions {
  readonly count: number;
  readonly kills: number;
  /** How many may run at once, in both runners together. */
  readonly parallel: number;
  readonly random: Random;
}

/** What the database says of it afterwards. */
export interface QueueFacts {
  /** Tasks that are done, by exactly one turn that completed. */
  readonly doneOnce: number;
  readonly mostAtOnce: number;
  /** Tasks that began before an older one of their owner. */
  readonly outOfOrder: number;
  /** Events whose number is not the next one of their owner's board. */
  readonly gaps: number;
  /** By how many first starts one owner was ever ahead of another, while all of them had something waiting. */
  readonly mostAhead: number;
  readonly openTurns: number;
  readonly complaints: string;
}

/** Queues tasks for several owners, and has two runners work on them, one of which is killed again and again, or both. */
export async function workThroughQueue(place: Place, options: QueueOptions): Promise<QueueFacts> {
  const { count, kills, parallel, random } = options;
  await queue(place, count, parallel);
  const done = () => place.rows("SELECT no FROM tasks WHERE state = 'done'").length;
  const start = async () => {
    const runner = place.start('task-runner', { parallel });
    await runner.said('ready');
    return runner;
  };
  const runners = await Promise.all([start(), start()]);
  for (let kill = 1; kill <= kills; kill += 1) {
    const enough = done() + random.whole(1, Math.max(1, Math.floor(count / kills)));
    await until('some more are done', () => done() >= Math.min(enough, count), { ms: 60_000, every: 3 });
    const victims = kill % 3 === 0 ? [0, 1] : [random.whole(0, 1)];
    await Promise.all(victims.map((i) => (runners[i] as Program).end()));
    for (const i of victims) runners[i] = await start();
  }
  await until('all are done', () => done() === count, { ms: 300_000 });
  return factsOf(place, count);
}

/** By somebody who does not work on them. */
async function queue(place: Place, count: number, parallel: number): Promise<void> {
  const { tasks, engine } = await openTasks(place.home, { claims: 'own', parallel });
  await tasks.close();
  for (const owner of OWNERS) {
    const plan = Array.from({ length: count / OWNERS.length }, (_, i) => ({ goal: `${i}`, retryInterrupted: 100 }));
    await tasks.as(owner).add(plan);
  }
  await engine.close();
}

interface EventRow {
  readonly task: number;
  readonly owner: string;
  readonly seq: number;
  readonly kind: string;
  readonly payload: string;
}

function factsOf(place: Place, count: number): QueueFacts {
  const events = place.rows<EventRow>('SELECT task, owner, seq, kind, payload FROM task_events ORDER BY no');
  const boards = OWNERS.map((owner) => events.filter((event) => event.owner === owner));
  const once = place.rows("SELECT conv FROM turns WHERE state = 'completed' GROUP BY conv HAVING count(*) = 1");
  const sum = (counts: readonly number[]) => counts.reduce((a, b) => a + b, 0);
  return {
    doneOnce: once.length,
    mostAtOnce: mostAtOnce(events),
    outOfOrder: sum(boards.map(outOfOrder)),
    gaps: sum(boards.map((own) => own.filter(({ seq }, i) => seq !== i + 1).length)),
    mostAhead: mostAhead(events, count / OWNERS.length),
    openTurns: place.rows('SELECT no FROM turns WHERE ended_at IS NULL').length,
    complaints: place.complaints,
  };
}

const firstStarts = (events: readonly EventRow[]) => [
  ...new Set(events.filter(({ kind }) => kind === 'task.started').map(({ task }) => task)),
];

function outOfOrder(events: readonly EventRow[]): number {
  const starts = firstStarts(events);
  return starts.filter((task, i) => i > 0 && task < (starts[i - 1] as number)).length;
}

/** As the events tell it. */
function mostAtOnce(events: readonly EventRow[]): number {
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

function mostAhead(events: readonly EventRow[], ofEach: number): number {
  const started = new Map(OWNERS.map((owner) => [owner, 0]));
  const seen = new Set<number>();
  let most = 0;
  for (const { task, owner, kind } of events) {
    if (kind !== 'task.started' || seen.has(task)) continue;
    seen.add(task);
    started.set(owner, (started.get(owner) ?? 0) + 1);
    const counts = [...started.values()];
    if (Math.max(...counts) < ofEach) most = Math.max(most, Math.max(...counts) - Math.min(...counts));
  }
  return most;
}
