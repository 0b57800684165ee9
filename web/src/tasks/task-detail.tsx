import { Folder } from 'lucide-react';
import { useEffect, useState } from 'react';
import type { Task, TaskReport } from 'throughline/client';
import { Link, useLocation } from 'wouter';
import type { ReceiptRung } from '../../../src/core/restore/restore-settings.ts';
import { lastLineOf } from '../../../src/core/tasks/task-gate.ts';
import { useClient, useMay } from '../data/session.ts';
import { readTasks, useTasks } from '../data/tasks.ts';
import { HOW } from '../seams/seam.ts';
import { type Action, useActions } from '../shell/actions.ts';
import { Button } from '../ui/button.tsx';
import { CliLine, ErrorNote, Skeleton, Verbatim } from '../ui/notes.tsx';
import { say, sayError } from '../ui/say.ts';
import { shellWord } from '../ui/shell-word.ts';
import { Ago, duration } from '../ui/time.tsx';
import { canBe } from './board.ts';
import { TaskProgress, TaskStateMark } from './task-marks.tsx';

/** One task: its goal, its actions, and every iteration with its turns, gates and decisions. */
export function TaskDetail({ id }: { id: string }) {
  const { report, error } = useReport(id);
  if (report === null) {
    return error === null ? (
      <Skeleton lines={6} />
    ) : (
      <ErrorNote error={error} cli={`throughline task report ${shellWord(id)}`} />
    );
  }
  const { task } = report;
  return (
    <div className="min-h-0 flex-1 overflow-y-auto">
      <div className="mx-auto max-w-3xl space-y-5 p-4">
        <header className="space-y-2">
          <Link
            href="/tasks"
            className="touch text-ui text-ink underline decoration-control underline-offset-3 underline-offset-2"
          >
            ← All tasks
          </Link>
          <h1 className="font-semibold whitespace-pre-wrap wrap-anywhere">{task.name ?? task.goal}</h1>
          {task.name !== null && <p className="text-ui whitespace-pre-wrap wrap-anywhere">{task.goal}</p>}
          <div className="flex flex-wrap items-center gap-x-4 gap-y-1 text-ui text-muted">
            <TaskStateMark state={task.state} />
            <span>{task.agent}</span>
            {task.milestone !== null && <span>{task.milestone}</span>}
            {task.cwd !== null && (
              <span className="inline-flex min-w-0 items-center gap-1.5">
                <Folder size={13} aria-hidden className="shrink-0" />
                <code className="font-mono text-facts wrap-anywhere">{task.cwd}</code>
              </span>
            )}
            <Ago at={task.createdAt} />
            {task.progress.conversationId !== null && (
              <Link
                href={`/c/${task.progress.conversationId}`}
                className="touch text-ink underline decoration-control underline-offset-3 underline-offset-2"
              >
                Open conversation
              </Link>
            )}
          </div>
          <TaskProgress task={task} />
          {task.stranded !== null && <p className="text-ui text-look">{task.stranded.message}</p>}
        </header>
        {error !== null && <ErrorNote error={error} />}
        <Answering task={task} />
        <Steps steps={stepsOf(report)} />
        <CliLine line={`throughline task report ${shellWord(task.name ?? task.id)}`} />
      </div>
    </div>
  );
}

/** Read again whenever the task on the board has changed. */
function useReport(id: string): { readonly report: TaskReport | null; readonly error: unknown } {
  const tl = useClient();
  const listed = useTasks(({ tasks }) => tasks.find((task) => task.id === id));
  const [state, setState] = useState<{ report: TaskReport | null; error: unknown }>({ report: null, error: null });
  // biome-ignore lint/correctness/useExhaustiveDependencies: `listed` is a new object when the task has changed
  useEffect(() => {
    let isCurrent = true;
    tl.tasks.report(id).then(
      (report) => isCurrent && setState({ report, error: null }),
      (error) => isCurrent && setState(({ report }) => ({ report, error })),
    );
    return () => {
      isCurrent = false;
    };
  }, [tl, id, listed]);
  return state;
}

/** The actions for the palette. An argument that is left out cannot be done now. */
function taskActions(name: string, { cancel, retry }: { cancel?: () => void; retry?: () => void }): Action[] {
  const [cancels, retries] = [
    `throughline task cancel ${shellWord(name)}`,
    `throughline task retry ${shellWord(name)}`,
  ];
  const group = 'Task';
  return [
    ...(cancel ? [{ id: 'task.cancel', title: 'Cancel this task', group, cli: cancels, run: cancel }] : []),
    ...(retry ? [{ id: 'task.retry', title: 'Continue this task', group, cli: retries, run: retry }] : []),
  ];
}

/** Cancels the task, or continues it with a message to the agent. */
function Answering({ task }: { task: Task }) {
  const tl = useClient();
  const [words, setWords] = useState('');
  const may = useMay('prompt');
  const can = may ? canBe(task) : { cancelled: false, retried: false };
  const name = task.name ?? task.id;
  const act = (work: Promise<unknown>, done: string) =>
    work.then(() => {
      setWords('');
      say(done, 'good');
      void readTasks(tl);
    }, sayError);
  const cancel = () => void act(tl.tasks.cancel(task.id), 'The task is being cancelled.');
  const retry = () => void act(tl.tasks.retry(task.id, words.trim() ? { say: words } : {}), 'The task continues.');
  useActions(taskActions(name, { ...(can.cancelled && { cancel }), ...(can.retried && { retry }) }));
  if (!can.cancelled && !can.retried) return null;
  return (
    <section aria-label="Actions" className="space-y-2 rounded-lg border border-line bg-raised p-3">
      {can.retried && (
        <>
          <p className="text-ui">{task.progress.decision?.reason ?? 'The task can continue.'}</p>
          <textarea
            aria-label="Message to the agent"
            rows={2}
            value={words}
            onChange={(event) => setWords(event.target.value)}
            placeholder="Tell the agent what to do differently (optional)"
            className="block w-full rounded-md border border-line bg-canvas p-2 text-ui"
          />
        </>
      )}
      <div className="flex gap-2">
        {can.retried && (
          <Button look="primary" onClick={retry}>
            {task.state === 'asking' ? 'Answer and continue' : 'Try again'}
          </Button>
        )}
        {can.cancelled && (
          <Button look="danger" onClick={cancel}>
            Cancel the task
          </Button>
        )}
      </div>
    </section>
  );
}

/** Opens a turn. The report has only its id, and the address needs its number. */
function OpenTurn({ id }: { id: string }) {
  const { engine } = useClient();
  const [, go] = useLocation();
  const open = () => engine.turn(id).then(({ conversationId, n }) => go(`/c/${conversationId}/turn/${n}`), sayError);
  return (
    <button
      type="button"
      className="touch ml-2 text-ink underline decoration-control underline-offset-3 underline-offset-2"
      onClick={() => void open()}
    >
      Open turn
    </button>
  );
}

function Steps({ steps }: { steps: readonly Step[] }) {
  if (steps.length === 0) return <p className="text-ui text-muted">Nothing has happened yet.</p>;
  return (
    <ol className="space-y-3">
      {steps.map((step) => (
        <li key={`${step.round}.${step.iteration}`} className="space-y-1 border-l-2 border-line pl-3 text-ui">
          <h2 className="font-medium">
            {step.round > 1 && `Round ${step.round} · `}Iteration {step.iteration}
          </h2>
          {step.turns.map((turn) => (
            <p key={turn.turnId ?? turn.endedAt} className="text-muted">
              {turn.purpose === 'gate' ? 'gate: ' : ''}
              {turn.agent} · {turn.outcome}
              {turn.rung !== null && ` · ${HOW[turn.rung as ReceiptRung] ?? turn.rung}`}
              {turn.turnId !== null && <OpenTurn id={turn.turnId} />}
              {turn.failure !== null && <span className="block text-broken">{turn.failure.message}</span>}
            </p>
          ))}
          {step.gates.map(({ result, at }) => (
            <details key={at}>
              <summary className="text-muted pointer-coarse:py-3.5">
                gate:{' '}
                <strong className={result.verdict === 'pass' ? 'text-accent' : 'text-look'}>{result.verdict}</strong>,{' '}
                {result.summary} ({duration(result.ms)}){lastLineOf(result) !== '' && ` · ${lastLineOf(result)}`}
              </summary>
              <Verbatim label="What the gate printed" className="mt-1 max-h-72">
                {result.output || 'It printed nothing.'}
              </Verbatim>
            </details>
          ))}
          {step.decisions.map(({ decision, reason, at }) => (
            <p key={at}>
              <strong className="font-medium">{decision}</strong>: {reason}
            </p>
          ))}
        </li>
      ))}
    </ol>
  );
}

/** What happened in one iteration of a task. */
interface Step {
  readonly round: number;
  readonly iteration: number;
  readonly turns: TaskReport['turns'];
  readonly gates: TaskReport['gates'];
  readonly decisions: TaskReport['decisions'];
}

/** The newest iteration first. */
function stepsOf({ turns, gates, decisions }: TaskReport): Step[] {
  const steps = new Map<string, { -readonly [K in keyof Step]: Step[K] }>();
  const stepOf = ({ round, iteration }: { round: number; iteration: number }) => {
    const key = `${round}.${iteration}`;
    const step = steps.get(key) ?? { round, iteration, turns: [], gates: [], decisions: [] };
    steps.set(key, step);
    return step;
  };
  for (const turn of turns) stepOf(turn).turns = [...stepOf(turn).turns, turn];
  for (const gate of gates) stepOf(gate).gates = [...stepOf(gate).gates, gate];
  for (const decision of decisions) stepOf(decision).decisions = [...stepOf(decision).decisions, decision];
  return [...steps.values()].toSorted((a, b) => b.round - a.round || b.iteration - a.iteration);
}
