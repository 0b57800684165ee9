import { Plus } from 'lucide-react';
import { useState } from 'react';
import type { Task } from 'throughline/client';
import { Link } from 'wouter';
import { useMay } from '../data/session.ts';
import { useTasks } from '../data/tasks.ts';
import { useActions } from '../shell/actions.ts';
import { Button } from '../ui/button.tsx';
import { CliLine, Empty, ErrorNote, Skeleton } from '../ui/notes.tsx';
import { Ago } from '../ui/time.tsx';
import { AddTask } from './add-task.tsx';
import { columnsOf, milestonesOf } from './board.ts';
import { TaskDetail } from './task-detail.tsx';
import { TaskProgress, TaskStateMark } from './task-marks.tsx';

/** `/tasks` and `/tasks/:id`: the board, and one task. */
export function Tasks({ id }: { id: string | null }) {
  const [adding, setAdding] = useState(false);
  const may = useMay('prompt');
  const add = () => setAdding(true);
  const offer = { id: 'task.add', title: 'Add a task', group: 'Tasks', keys: 'n', run: add };
  useActions(may ? [{ ...offer, cli: 'throughline task run "GOAL"' }] : []);
  return (
    <>
      {id === null ? <Board onAdd={may ? add : null} /> : <TaskDetail key={id} id={id} />}
      <AddTask open={adding} onClose={() => setAdding(false)} />
    </>
  );
}

/** `onAdd`: null if this browser may not add tasks. */
function Board({ onAdd }: { onAdd: (() => void) | null }) {
  const { phase, error, tasks, hasMore } = useTasks();
  const [milestone, setMilestone] = useState<string | null>(null);
  const milestones = milestonesOf(tasks);
  return (
    <div className="flex min-h-0 flex-1 flex-col">
      <header className="flex min-h-13 shrink-0 items-center gap-3 border-b border-line px-6 max-md:px-3.5">
        <h1 className="text-view font-semibold tracking-tight">Tasks</h1>
        {milestones.length > 0 && (
          <select
            aria-label="Milestone"
            className="h-8 min-w-0 rounded-md border border-line bg-raised px-2 text-ui pointer-coarse:h-11"
            value={milestone ?? ''}
            onChange={(event) => setMilestone(event.target.value || null)}
          >
            <option value="">All milestones</option>
            {milestones.map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        )}
        {onAdd !== null && (
          <Button small className="ml-auto" onClick={onAdd}>
            <Plus size={14} aria-hidden /> Add a task
          </Button>
        )}
      </header>
      {error !== null && <ErrorNote error={error} cli="throughline task list" />}
      {phase === 'loading' && <Skeleton lines={6} />}
      {phase === 'ready' && tasks.length === 0 && (
        <Empty title="No tasks yet.">
          <p>
            A task is a goal. An agent works on it, turn by turn, until its gate passes: a command, or another agent.
          </p>
          <CliLine line={'throughline task run "Make the tests pass." --gate "npm test"'} />
        </Empty>
      )}
      {tasks.length > 0 && <Columns tasks={tasks} milestone={milestone} />}
      {hasMore && (
        <p className="border-t border-line px-4 py-2 text-facts text-muted">Only the newest 200 tasks are shown.</p>
      )}
    </div>
  );
}

function Columns({ tasks, milestone }: { tasks: readonly Task[]; milestone: string | null }) {
  return (
    <div className="grid min-h-0 flex-1 auto-rows-min gap-4 overflow-auto p-4 md:auto-cols-[minmax(12.5rem,1fr)] md:grid-flow-col">
      {columnsOf(tasks, milestone).map(({ title, tasks: own }) => (
        <section key={title} aria-label={title} className={own.length === 0 ? 'hidden min-w-0 md:block' : 'min-w-0'}>
          <h2 className="mb-2 flex justify-between text-facts text-muted">
            {title} <span className="tabular-nums">{own.length}</span>
          </h2>
          <ul className="space-y-2">
            {own.map((task) => (
              <li key={task.id}>
                <Card task={task} />
              </li>
            ))}
          </ul>
        </section>
      ))}
    </div>
  );
}

function Card({ task }: { task: Task }) {
  const { id, name, goal, state, progress, milestone, agent, createdAt } = task;
  const { lastGate } = progress;
  return (
    <Link
      href={`/tasks/${id}`}
      className="block space-y-1.5 rounded-lg border border-line bg-raised p-3 hover:border-line-strong"
    >
      <span className="flex items-center justify-between gap-2">
        <TaskStateMark state={state} />
        <Ago at={createdAt} className="text-facts text-faint" />
      </span>
      <span className="line-clamp-2 text-ui font-medium wrap-anywhere">{name ?? goal}</span>
      {name !== null && <span className="line-clamp-2 text-ui wrap-anywhere">{goal}</span>}
      {progress.decision !== null && (
        <span className="line-clamp-2 text-facts text-muted wrap-anywhere">{progress.decision.reason}</span>
      )}
      {lastGate !== null && lastGate.lastLine !== '' && <GateLine {...lastGate} />}
      <TaskProgress task={task} />
      <span className="block truncate text-facts text-faint">
        {agent}
        {milestone !== null && ` · ${milestone}`}
      </span>
    </Link>
  );
}

/** The last line that the gate printed. Often it is enough. */
function GateLine({ verdict, lastLine }: NonNullable<Task['progress']['lastGate']>) {
  const colour = verdict === 'pass' ? 'border-accent' : 'border-look';
  return (
    <span className={`block truncate border-l-2 pl-2 font-mono text-facts text-muted ${colour}`} title={lastLine}>
      <span className="sr-only">The gate printed: </span>
      {lastLine}
    </span>
  );
}
