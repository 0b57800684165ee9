import { useEffect } from 'react';
import type { Task, ThroughlineClient } from 'throughline/client';
import { create } from 'zustand';
import { Newest } from './newest.ts';
import { useClient, useLive } from './session.ts';

/** The newest tasks of this owner, and all that ask. */
interface TasksState {
  readonly phase: 'loading' | 'ready' | 'failed';
  readonly error: unknown;
  readonly tasks: readonly Task[];
  /** There may be older ones, which are not read. */
  readonly hasMore: boolean;
}

export const useTasks = create<TasksState>(() => ({ phase: 'loading', error: null, tasks: [], hasMore: false }));

const newest = new Newest();

const PAGE = 200;
const GATHER_MS = 200;

/** Keeps the tasks current for as long as the component is shown. */
export function useKeepTasks(): void {
  const [tl, live] = [useClient(), useLive()];
  useEffect(() => {
    let timer = 0;
    void readTasks(tl);
    const stop = live.onBoard(() => {
      if (timer !== 0) return;
      timer = window.setTimeout(() => {
        timer = 0;
        void readTasks(tl);
      }, GATHER_MS);
    });
    return () => {
      window.clearTimeout(timer);
      stop();
    };
  }, [tl, live]);
}

/** Also called right after an action on a task. */
export async function readTasks(tl: ThroughlineClient): Promise<void> {
  try {
    const read = await newest.of(
      'tasks',
      Promise.all([tl.tasks.list({ limit: PAGE }), tl.tasks.list({ states: ['asking'] })]),
    );
    if (read === null) return;
    const [recent, asking] = read;
    const listed = new Set(recent.map(({ id }) => id));
    const tasks = [...recent, ...asking.filter(({ id }) => !listed.has(id))];
    useTasks.setState({ phase: 'ready', error: null, tasks, hasMore: recent.length === PAGE });
  } catch (error) {
    useTasks.setState(({ tasks }) => ({ phase: tasks.length > 0 ? 'ready' : 'failed', error }));
  }
}
