import { conversationOf } from '../../shared/rows.ts';
import type { LedgerTx } from '../../shared/verbs/queue.ts';
import type { Steps } from '../../shared/verbs/steps.ts';
import { conversationRow, giveTitle } from '../conversations/conversations.ts';
import { Ledger } from '../conversations/ledger.ts';
import type { Tx } from '../file/write-queue.ts';
import { carryOut, stepTx } from '../steps.ts';
import { addTurn } from './enqueue.ts';
import { dropIdleWorker } from './leases.ts';
import { goOn } from './permissions.ts';
import { endLiving } from './sessions.ts';

/** A function that writes in conversations, from a verb in steps. */
export function changing<A extends unknown[], T>(verb: (tx: LedgerTx<Ledger>, ...args: A) => Steps<T>) {
  return (tx: Tx, ...args: A): T => {
    const shared: LedgerTx<Ledger> = {
      ...stepTx(tx),
      ledgerOf: (owner, conversation) => Ledger.of(tx, owner, conversation),
      ledgerByNo: (conv) => Ledger.byNo(tx, conv),
      conversation: (owner, id) => conversationOf(conversationRow(tx.db, owner, id)),
      dropIdleWorker: (worker) => dropIdleWorker(tx.db, worker),
      giveTitle,
      goOn,
      endLiving,
      addTurn: (ledger, added, agent) => addTurn(ledger, added, agent, null),
    };
    return carryOut(tx.db, verb(shared, ...args));
  };
}
