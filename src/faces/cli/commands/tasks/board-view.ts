import type { PublicTask, PublicTaskEvent } from '../../../../core/public/task.ts';
import { type TaskState, taskHasEnded } from '../../../../core/tasks/task.ts';
import { usageLine } from '../../lines.ts';
import { type Output, styled } from '../../output.ts';
import { oneLine } from '../../terminal-text.ts';
import { nameOf } from './tasks.ts';

const BAR = 20;
/** The states of tasks that neither run nor have ended. */
const WAITING = { queued: 'queued', waiting: 'waiting for other tasks', asking: 'asking you' };

/** The state that follows from an event. */
const STATES: Partial<Record<PublicTaskEvent['kind'], TaskState>> = {
  'task.started': 'running',
  'task.queued': 'queued',
  'task.cancelled': 'cancelled',
};

/** Shows running tasks: a line for each thing that happens, and at a terminal a progress bar. */
export class BoardView {
  readonly #output: Output;
  readonly #states = new Map<string, TaskState>();
  readonly #names = new Map<string, string>();
  /** What each running task is doing. */
  readonly #doing = new Map<string, string>();

  constructor(output: Output, tasks: readonly PublicTask[]) {
    this.#output = output;
    for (const task of tasks) {
      this.#states.set(task.id, task.state);
      this.#names.set(task.id, nameOf(task));
    }
    this.#bar();
  }

  /** Ignores events of other tasks. */
  see(event: PublicTaskEvent): void {
    const name = this.#names.get(event.taskId);
    if (name === undefined) return;
    this.#keep(event);
    const line = lineOf(event);
    if (line !== null) this.#output.note(styled('dim', `${name}: `), line);
    this.#bar();
  }

  #keep({ kind, taskId: task, payload }: PublicTaskEvent): void {
    const state = kind === 'task.decided' ? payload.state : STATES[kind];
    if (state !== undefined) this.#states.set(task, state);
    if (kind === 'task.started') this.#doing.set(task, `turn ${payload.iteration}`);
    if (kind !== 'task.decided') return;
    // An interrupted turn is tried again under the same number.
    this.#doing.set(task, `turn ${payload.iteration + (payload.code === 'turn_interrupted' ? 0 : 1)}`);
  }

  #bar(): void {
    const states = [...this.#states.values()];
    const ended = states.filter(taskHasEnded).length;
    const filled = Math.round((BAR * ended) / Math.max(1, states.length));
    const bar = '█'.repeat(filled) + '░'.repeat(BAR - filled);
    const running = [...this.#states].flatMap(([id, state]) =>
      state === 'running' ? [`${this.#names.get(id)} (${this.#doing.get(id) ?? 'turn 1'})`] : [],
    );
    const counts = Object.entries(WAITING).map(([state, words]) => {
      const count = states.filter((one) => one === state).length;
      return count > 0 ? `${count} ${words}` : '';
    });
    const rest = [running.slice(0, 3).join(', '), ...counts].filter((text) => text !== '');
    this.#output.progress([`${bar} ${ended}/${states.length}`, ...rest].join('  '));
  }
}

/** Null: nothing that a person needs to know. */
function lineOf({ kind, payload }: PublicTaskEvent): string | null {
  switch (kind) {
    case 'task.turned': {
      const { purpose, iteration, outcome, usage, lockWaits, denied } = payload;
      const who = purpose === 'gate' ? `judge's turn ${iteration}` : `turn ${iteration}`;
      const waits = lockWaits.count > 0 ? `, waited ${lockWaits.count} times for its session` : '';
      const asked =
        denied.length > 0 ? `, denied: ${denied.map(({ title }) => `"${oneLine(title, 'code')}"`).join(', ')}` : '';
      return `${who} ${outcome} (${usageLine(usage)}${waits})${asked}`;
    }
    case 'task.gated':
      return `gate: ${payload.result.verdict}, ${oneLine(payload.result.summary)}`;
    case 'task.decided':
      return `${payload.decision}: ${oneLine(payload.reason)}`;
    case 'task.queued':
      return `queued: ${oneLine(payload.reason)}`;
    case 'task.cancelled':
      return 'cancelled';
    default:
      return null;
  }
}
