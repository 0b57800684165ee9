// The thread of `long-reads.ts`: a connection that only reads, and the verbs that are asked for.
import { parentPort, workerData } from 'node:worker_threads';
import { failureOf, ThroughlineError } from '../../../core/errors.ts';
import { restores, usageDays } from '../../shared/verbs/accounts.ts';
import { outline, pending, queued, recordsAfter, recordsBefore } from '../../shared/verbs/reading.ts';
import { listSandboxes } from '../../shared/verbs/sandboxes.ts';
import { taskUsage } from '../../shared/verbs/task-board.ts';
import { listConversations } from '../conversations/conversations.ts';
import { Database } from '../file/database.ts';
import { storageFault, whileBusy } from '../file/faults.ts';
import { reader } from '../steps.ts';
import { listTasks } from '../tasks/task-store.ts';
import type { Answer, LongRead, Question, ThreadData } from './long-reads.ts';
import { eventsBefore, permissions } from './reads.ts';
import { search } from './search.ts';

/** Each takes the database, the owner, and its arguments. All but the search are pages, and come here when they are long. */
const VERBS = {
  ...{ search, listConversations, listTasks, eventsBefore, permissions },
  ...{ listSandboxes: reader(listSandboxes), taskUsage: reader(taskUsage), usageDays: reader(usageDays) },
  ...{ outline: reader(outline), pending: reader(pending), queued: reader(queued), restores: reader(restores) },
  ...{ recordsAfter: reader(recordsAfter), recordsBefore: reader(recordsBefore) },
} satisfies Record<LongRead, (db: Database, owner: string, ...args: never) => unknown>;

if (parentPort !== null) serve(parentPort, workerData as ThreadData);

function serve(port: NonNullable<typeof parentPort>, { file, busyMs }: ThreadData): void {
  const db = new Database(file);
  const leftOut: string[] = [];
  db.onDamage = (error) => void leftOut.push(`${error}`);
  db.script('PRAGMA query_only = ON; PRAGMA temp_store = MEMORY');
  port.on('message', async ({ verb, args }: Question) => port.postMessage(await answer(verb, args)));

  async function answer(verb: LongRead, args: readonly unknown[]): Promise<Answer> {
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
