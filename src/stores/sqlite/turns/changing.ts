import { conversationOf } from '../../shared/rows.ts';
import type { QueueTx } from '../../shared/verbs/queue.ts';
import type { Steps } from '../../shared/verbs/steps.ts';
import { conversationRow, titleFromPrompt } from '../conversations/conversations.ts';
import { Ledger } from '../conversations/ledger.ts';
import type { Tx } from '../file/write-queue.ts';
import { carryOut, stepTx } from '../steps.ts';
import { addTurn } from './enqueue.ts';
import { dropIdleWorker } from './leases.ts';

/** A function that writes in conversations, from a verb in steps. */
export function changing<A extends unknown[], T>(verb: (tx: QueueTx<Ledger>, ...args: A) => Steps<T>) {
  return (tx: Tx, ...args: A): T => {
    const shared: QueueTx<Ledger> = {
      ...stepTx(tx),
      ledgerOf: (owner, conversation) => Ledger.of(tx, owner, conversation),
      ledgerByNo: (conv) => Ledger.byNo(tx, conv),
      conversation: (owner, id) => conversationOf(conversationRow(tx.db, owner, id)),
      dropIdleWorker: (worker) => dropIdleWorker(tx.db, worker),
      titleFromPrompt,
      addTurn: (ledger, added, agent) => addTurn(ledger, added, agent, null),
    };
    return carryOut(tx.db, verb(shared, ...args));
  };
}
