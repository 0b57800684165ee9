import { setTimeout as delay } from 'node:timers/promises';
import type { Task } from '../../../core/tasks/task.ts';
import type { Cli, TaskDesk } from '../cli.ts';
import { DONE, EXIT } from '../exit-codes.ts';
import type { Output } from '../output.ts';
import { styled } from '../output.ts';
import { onStopSignals } from '../stop-signals.ts';
import { BoardView } from './board-view.ts';
import { nameOf, taskLine } from './names.ts';

const KILL_MS = 3_000;

/**
 * Shows tasks until each is at rest, whoever works on them, and resolves with the exit code that they amount to. `after`: the
 * last event before they were added, or taken up.
 */
export async function watchTasks(
  desk: TaskDesk,
  tasks: readonly Task[],
  after: number,
  { output }: Cli,
): Promise<number> {
  const ids = tasks.map(({ id }) => id);
  const view = new BoardView(output, tasks);
  const leaving = new AbortController();
  const stopListening = stopOnSignals(desk, ids, output, leaving);
  const over = new AbortController();
  const signal = AbortSignal.any([over.signal, leaving.signal]);
  const showing = show(desk, { ids: new Set(ids), after, view, output, signal });
  try {
    const last = await desk.tasks.waitFor(ids, { signal: leaving.signal });
    await showing.upTo(await desk.tasks.lastSeq());
    if (output.json) output.value({ kind: 'result', tasks: last });
    else for (const task of last) output.line(styled('bold', nameOf(task)), `  ${taskLine(task)}`);
    return leaving.signal.aborted ? EXIT.interrupted : exitOf(last);
  } finally {
    over.abort();
    stopListening();
    await showing.done;
  }
}

/** The first Ctrl-C cancels the tasks, the second leaves at once; SIGTERM leaves them to be gone on with. */
function stopOnSignals(
  { tasks, engine, served }: TaskDesk,
  ids: readonly string[],
  output: Output,
  leaving: AbortController,
) {
  return onStopSignals({
    cancel() {
      output.note('Cancelling; once more to kill.');
      const told = (error: unknown) => output.note(`Not cancelled: ${String((error as Error).message)}`);
      // Those that wait come last in the list, and are not to begin when a place is free.
      for (const id of ids.toReversed()) tasks.cancel(id).catch(told);
    },
    kill() {
      const closed = tasks.close().then(() => engine.close({ graceMs: 0 }));
      void Promise.race([closed, delay(KILL_MS)]).finally(() => process.exit(EXIT.cancelled));
    },
    terminate() {
      output.note(
        served
          ? 'Leaving; the server goes on with them.'
          : 'Coming to an end; "throughline task run" goes on with them.',
      );
      leaving.abort();
    },
  });
}

interface Showing {
  readonly ids: ReadonlySet<string>;
  readonly after: number;
  readonly view: BoardView;
  readonly output: Output;
  readonly signal: AbortSignal;
}

/** Events are shown as they come; at the end, up to the last there was. */
function show({ tasks }: TaskDesk, { ids, after, view, output, signal }: Showing) {
  let shown = after;
  let wake = () => {};
  const done = (async () => {
    for await (const event of tasks.follow({ after, signal })) {
      shown = event.seq;
      wake();
      if (!ids.has(event.task)) continue;
      if (output.json) output.value(event);
      else view.see(event);
    }
  })();
  const upTo = async (seq: number) => {
    while (shown < seq && !signal.aborted) {
      const seen = new Promise<void>((resolve) => {
        wake = resolve;
      });
      await Promise.race([done, seen]);
    }
  };
  return { done, upTo };
}

const RANK: Record<Task['state'], number> = {
  done: DONE,
  cancelled: EXIT.cancelled,
  failed: 1,
  asking: 1,
  waiting: 1,
  queued: EXIT.interrupted,
  running: EXIT.interrupted,
};

/** The first of them that is not done says how it went. */
function exitOf(tasks: readonly Task[]): number {
  const [undone] = tasks.filter(({ state }) => state !== 'done' && state !== 'waiting');
  const task = undone ?? tasks.find(({ state }) => state !== 'done');
  if (task === undefined) return DONE;
  const interrupted = task.state === 'asking' && task.progress.decision?.code === 'turn_interrupted';
  return interrupted ? EXIT.interrupted : RANK[task.state];
}
