import { setTimeout as delay } from 'node:timers/promises';
import { hasCode, ThroughlineError } from '../../../../core/errors.ts';
import type { PublicPlanTask, PublicTask } from '../../../../core/public/task.ts';
import type { Cli, TaskDesk } from '../../cli.ts';
import { DONE, EXIT } from '../../exit-codes.ts';
import type { Output } from '../../output.ts';
import { styled } from '../../output.ts';
import { onStopSignals } from '../../stop-signals.ts';
import { BoardView } from './board-view.ts';
import { nameOf, taskLine } from './tasks.ts';

const KILL_MS = 3_000;

/**
 * Shows tasks until none of them runs any more, whichever process works on them, and resolves with the exit code. `after`: the
 * last event before they were added or continued.
 */
export async function watchTasks(
  desk: TaskDesk,
  tasks: readonly PublicTask[],
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
  // `waitFor` fails for the same reasons. Without a handler, the earlier failure would end the process.
  showing.done.catch(() => {});
  try {
    const last = await desk.tasks.waitFor(ids, { signal: leaving.signal });
    await showing.upTo(await desk.tasks.lastSeq());
    if (output.json) output.value({ kind: 'result', tasks: last });
    else for (const task of last) output.line(styled('bold', nameOf(task)), `  ${output.runnable(taskLine(task))}`);
    over.abort();
    await showing.done;
    return leaving.signal.aborted
      ? EXIT.interrupted
      : exitOf(last.map((task) => ({ ...task, decision: task.progress.decision })));
  } catch (error) {
    throw hasCode(error, 'unreachable') ? serverLost(error) : error;
  } finally {
    over.abort();
    stopListening();
  }
}

function serverLost({ message, cause }: ThroughlineError): ThroughlineError {
  return new ThroughlineError('unreachable', `${message} The tasks were accepted and are stored.`, {
    hint: '"throughline serve" or "throughline task run" continues them; "throughline task list" shows them.',
    cause,
  });
}

/** The first Ctrl-C cancels the tasks, the second leaves at once. SIGTERM leaves the tasks to be continued. */
function stopOnSignals(
  { tasks, engine, served }: TaskDesk,
  ids: readonly string[],
  output: Output,
  leaving: AbortController,
) {
  return onStopSignals({
    cancel() {
      output.note('Cancelling. Press Ctrl-C again to kill.');
      const failed = ({ message }: Error) => output.note(`Not cancelled: ${message}`);
      // In reverse order: tasks that wait must not start when one before them ends.
      for (const id of ids.toReversed()) tasks.cancel(id).catch(failed);
    },
    kill() {
      const closed = tasks.close().then(() => engine.close({ graceMs: 0 }));
      void Promise.race([closed, delay(KILL_MS)]).finally(() => process.exit(EXIT.cancelled));
    },
    terminate() {
      output.note(
        served
          ? 'Leaving. The server continues the tasks.'
          : 'Stopping. To continue the tasks, run "throughline task run".',
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

/** Shows events as they come; `upTo` waits until an event was shown. */
function show({ tasks }: TaskDesk, { ids, after, view, output, signal }: Showing) {
  let shown = after;
  let wake = () => {};
  const done = (async () => {
    for await (const event of tasks.follow({ after, signal })) {
      shown = event.seq;
      wake();
      if (!ids.has(event.taskId)) continue;
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

const EXIT_OF_STATE: Record<PublicTask['state'], number> = {
  done: DONE,
  cancelled: EXIT.cancelled,
  failed: 1,
  asking: 1,
  waiting: 1,
  queued: EXIT.interrupted,
  running: EXIT.interrupted,
};

/** The first task that is not done decides. */
export function exitOf(tasks: readonly PublicPlanTask[]): number {
  const [undone] = tasks.filter(({ state }) => state !== 'done' && state !== 'waiting');
  const task = undone ?? tasks.find(({ state }) => state !== 'done');
  if (task === undefined) return DONE;
  const interrupted = task.state === 'asking' && task.decision?.code === 'turn_interrupted';
  return interrupted ? EXIT.interrupted : EXIT_OF_STATE[task.state];
}
