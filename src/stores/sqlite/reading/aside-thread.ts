// The thread of `aside.ts`: a connection that only reads, and the verbs that are asked for.
import { parentPort, workerData } from 'node:worker_threads';
import { type Failure, failureOf, ThroughlineError } from '../../../core/errors.ts';
import { Database } from '../file/database.ts';
import { storageFault, whileBusy } from '../file/faults.ts';
import { search } from './search.ts';

/** Each takes the database, the owner, and its arguments. */
const VERBS = { search };

export type AsideVerb = keyof typeof VERBS;

export interface ThreadData {
  readonly file: string;
  readonly busyMs: number;
}

export interface Question {
  readonly verb: AsideVerb;
  readonly args: readonly unknown[];
}

/** One answer to each question, in the same order. `leftOut`: what was wrong with what is damaged and was left out. Anything else that is thrown ends the thread. */
export type Answer = { readonly value: unknown; readonly leftOut: readonly string[] } | { readonly failure: Failure };

if (parentPort !== null) serve(parentPort, workerData as ThreadData);

function serve(port: NonNullable<typeof parentPort>, { file, busyMs }: ThreadData): void {
  const db = new Database(file);
  const leftOut: string[] = [];
  db.onDamage = (error) => void leftOut.push(`${error}`);
  db.script('PRAGMA query_only = ON; PRAGMA temp_store = MEMORY');
  port.on('message', async ({ verb, args }: Question) => port.postMessage(await answer(verb, args)));

  async function answer(verb: AsideVerb, args: readonly unknown[]): Promise<Answer> {
    try {
      const look = VERBS[verb] as (db: Database, ...args: readonly unknown[]) => unknown;
      const value = await whileBusy(() => look(db, ...args), busyMs);
      return { value, leftOut: leftOut.splice(0) };
    } catch (error) {
      const fault = error instanceof ThroughlineError ? error : storageFault(error);
      if (fault === null) throw error;
      return { failure: failureOf(fault) };
    }
  }
}
