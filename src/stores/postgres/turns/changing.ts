import { conversationOf } from '../../shared/rows.ts';
import type { Steps, StepTx } from '../../shared/verbs/steps.ts';
import type { LedgerAccess, LedgerTx } from '../../shared/writing/ledger.ts';
import { conversationRow, findByKey, insertConversation } from '../conversations/conversations.ts';
import { Ledger } from '../conversations/ledger.ts';
import type { Access, Tx } from '../server/access.ts';
import { carryOut, stepAccess, stepTx } from '../steps.ts';
import { dropIdleWorker, registerWorker } from './leases.ts';

/** A function that writes in conversations, from a verb in steps. */
export function changing<A extends unknown[], T>(verb: (tx: LedgerTx, ...args: A) => Steps<T>) {
  return (tx: Tx, ...args: A): Promise<T> => {
    const shared: LedgerTx = Object.assign(stepTx(tx), {
      alone: () => tx.alone(),
      ledgerOf: (owner, conversation) => Ledger.of(tx, owner, conversation),
      ledgerByNo: (conv) => Ledger.byNo(tx, conv),
      ledgerUnder: (fence) => Ledger.under(tx, fence),
      conversation: async (owner, id) => conversationOf(await conversationRow(tx.sql, owner, id)),
      findByKey: (owner, key) => findByKey(tx.sql, owner, key),
      insertConversation: (owner, spec, named) => insertConversation(tx, owner, spec, named),
      registerWorker: (worker) => registerWorker(tx, worker),
      dropIdleWorker: (worker) => dropIdleWorker(tx, worker),
    } satisfies Omit<LedgerTx, keyof StepTx>);
    return carryOut(tx.sql, verb(shared, ...args));
  };
}

export function ledgerAccess(access: Access): LedgerAccess {
  return { ...stepAccess(access), changing: (verb) => access.writing(changing(verb)) };
}
