// The thread of `aside.ts`: a connection that only reads, and the verbs that are asked for.
import { parentPort, workerData } from 'node:worker_threads';
import { failureOf, ThroughlineError } from '../../../core/errors.ts';
import { listConversations } from '../conversations/conversations.ts';
import { Database } from '../file/database.ts';
import { storageFault, whileBusy } from '../file/faults.ts';
import { listSandboxes } from '../sandboxes/sandboxes.ts';
import { taskUsage } from '../tasks/task-changes.ts';
import { listTasks } from '../tasks/task-plans.ts';
import { restores } from '../turns/receipts.ts';
import { usageDays } from '../turns/totals.ts';
import type { Answer, AsideVerb, Question, ThreadData } from './aside.ts';
import { eventsBefore, outline, pending, permissions, queued, recordsAfter, recordsBefore } from './reads.ts';
import { search } from './search.ts';

/** Each takes the database, the owner, and its arguments. All but the search are pages, and come here when they are long. */
const VERBS = {
  ...{ search, listConversations, listSandboxes, listTasks, taskUsage, usageDays },
  ...{ eventsBefore, outline, pending, permissions, queued, recordsAfter, recordsBefore, restores },
} satisfies Record<AsideVerb, (db: Database, owner: string, ...args: never) => unknown>;

if (parentPort !== null) serve(parentPort, workerData as ThreadData);

function serve(port: NonNullable<typeof parentPort>, { file, busyMs }: ThreadData): void {
  const db = new Database(file);
  const leftOut: string[] = [];
  db.onDamage = (error) => void leftOut.push(`${error}`);
  db.script('PRAGMA query_only = ON; PRAGMA temp_store = MEMORY');
  port.on('message', async ({ verb, args }: Question) => port.postMessage(await answer(verb, args)));

  async function answer(verb: AsideVerb, args: readonly unknown[]): Promise<Answer> {
    try {
      const look = VERBS[verb] as unknown as (db: Database, ...args: readonly unknown[]) => unknown;
      const value = await whileBusy(() => look(db, ...args), busyMs);
      return { value, leftOut: leftOut.splice(0) };
    } catch (error) {
      const fault = error instanceof ThroughlineError ? error : storageFault(error);
      if (fault === null) throw error;
      return { failure: failureOf(fault) };
    }
  }
}
