import type { PublicReceipt } from '../../core/public/session.ts';
import type { Tried } from '../../core/receipt.ts';

/** A receipt in one line: how the session came to its context, what was carried and dropped, how far it is proved, why so. */
export function receiptLine(receipt: PublicReceipt): string {
  return [how(receipt), ...extras(receipt)].join(', ') + why(receipt.tried);
}

function how(receipt: PublicReceipt): string {
  const { rung, carried, dropped, proof } = receipt;
  const counts = `${turns(carried)} carried, ${dropped} dropped, proof ${proof}`;
  switch (rung) {
    case 'new':
      return 'new session: nothing to carry';
    case 'fresh':
      return `fresh session without the history: ${counts}`;
    case 'none':
      return dropped === 0 ? 'no session was opened' : `context not restored: ${turns(dropped)} would have been lost`;
    case 'live':
      return `went on in the live session: ${counts}`;
    default:
      return `restored by ${rung}: ${counts}`;
  }
}

function extras({ unsettled, modelCalls, toolsRan, lockWaits }: PublicReceipt): string[] {
  const result: string[] = [];
  if (unsettled) result.push('told that its last turn did not complete');
  if (modelCalls > 0) result.push(`${modelCalls} model ${modelCalls === 1 ? 'call' : 'calls'} for restoring`);
  if (toolsRan.length > 0) result.push(`tools ran: ${toolsRan.join(', ')}`);
  if (lockWaits.count > 0) result.push(`waited ${lockWaits.ms} ms for its lock`);
  return result;
}

function why(tried: readonly Tried[]): string {
  return tried.length === 0 ? '' : ` (${tried.map(({ rung, failure }) => `${rung}: ${failure}`).join('; ')})`;
}

export function turns(count: number): string {
  return count === 1 ? '1 turn' : `${count} turns`;
}
