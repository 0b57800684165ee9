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

/** What the database shows afterwards. */
export interface QueueFacts {
  /** Tasks that are done, by exactly one turn that completed. */
  readonly doneOnce: number;
  readonly mostAtOnce: number;
  /** Tasks that began before an older one of their owner. */
  readonly outOfOrder: number;
  /** Events whose number is not the next one of their owner's board. */
  readonly gaps: number;
  /** How often an owner was passed over who had fewer running tasks, or as many and was served longer ago. */
  readonly outOfTurn: number;
  readonly openTurns: number;
  readonly complaints: string;
}

/** Queues tasks for several owners. Two runners work on them, and one or both are killed again and again. */
export async function workThroughQueue(place: Place, options: QueueOptions): Promise<QueueFacts> {
  const { count, kills, parallel, random } = options;
  await queue(place, count, parallel);
  const done = async () => (await place.rows("SELECT no FROM tasks WHERE state = 'done'")).length;
  const start = async () => {
    const runner = place.start('task-runner', { parallel });
    await runner.said('ready');
    return runner;
  };
  const runners = await Promise.all([start(), start()]);
  for (let kill = 1; kill <= kills; kill += 1) {
    const enough = (await done()) + random.whole(1, Math.max(1, Math.floor(count / kills)));
    await until('some more are done', async () => (await done()) >= Math.min(enough, count));
    const victims = kill % 3 === 0 ? [0, 1] : [random.whole(0, 1)];
    await Promise.all(victims.map((i) => (runners[i] as Program).end()));
    for (const i of victims) runners[i] = await start();
  }
  await until('all are done', async () => (await done()) === count, { ms: 300_000 });
  return factsOf(place);
}

/** Adds the tasks, in a process that does not work on them. */
async function queue(place: Place, count: number, parallel: number): Promise<void> {
  const { tasks, engine } = await openTasks(place.opening, { claims: 'own', parallel });
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

async function factsOf(place: Place): Promise<QueueFacts> {
  const events = await place.rows<EventRow>(
    'SELECT CAST(task AS int) AS task, owner, CAST(seq AS int) AS seq, kind, payload FROM task_events ORDER BY no',
  );
  const boards = OWNERS.map((owner) => events.filter((event) => event.owner === owner));
  const once = await place.rows("SELECT conv FROM turns WHERE state = 'completed' GROUP BY conv HAVING count(*) = 1");
  const sum = (counts: readonly number[]) => counts.reduce((a, b) => a + b, 0);
  return {
    doneOnce: once.length,
    mostAtOnce: mostAtOnce(events),
    outOfOrder: sum(boards.map(outOfOrder)),
    gaps: sum(boards.map((own) => own.filter(({ seq }, i) => seq !== i + 1).length)),
    outOfTurn: outOfTurn(events),
    openTurns: (await place.rows('SELECT no FROM turns WHERE ended_at IS NULL')).length,
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

/** Goes through the events, and tracks which tasks wait and run. Calls `starts` before each start of a task. */
function replay(events: readonly EventRow[], starts: (owner: string, board: Board) => void): void {
  const board: Board = { waits: new Map(), runs: new Map(), served: new Map() };
  for (const owner of OWNERS) {
    board.waits.set(owner, new Set());
    board.runs.set(owner, new Set());
    board.served.set(owner, 0);
  }
  for (const [n, { task, owner, kind, payload }] of events.entries()) {
    const [waits, runs] = [board.waits.get(owner), board.runs.get(owner)];
    if (kind === 'task.started') {
      starts(owner, board);
      board.served.set(owner, n + 1);
      waits?.delete(task);
      runs?.add(task);
    }
    const ended = kind === 'task.decided' && JSON.parse(payload).state !== 'running';
    if (ended || kind === 'task.queued') runs?.delete(task);
    if (kind === 'task.added' || kind === 'task.queued') waits?.add(task);
  }
}

interface Board {
  readonly waits: Map<string, Set<number>>;
  readonly runs: Map<string, Set<number>>;
  /** When a task of the owner was last started. */
  readonly served: Map<string, number>;
}

function mostAtOnce(events: readonly EventRow[]): number {
  let most = 0;
  replay(events, (_, { runs }) => {
    const before = [...runs.values()].reduce((sum, { size }) => sum + size, 0);
    most = Math.max(most, before + 1);
  });
  return most;
}

/** See `QueueFacts.outOfTurn`. */
function outOfTurn(events: readonly EventRow[]): number {
  let count = 0;
  replay(events, (owner, { waits, runs, served }) => {
    const rank = (one: string) => [runs.get(one)?.size ?? 0, served.get(one) ?? 0] as const;
    const [running, since] = rank(owner);
    const passedOver = OWNERS.some((other) => {
      const [theirs, before] = rank(other);
      return (waits.get(other)?.size ?? 0) > 0 && (theirs < running || (theirs === running && before < since));
    });
    if (passedOver) count += 1;
  });
  return count;
}
