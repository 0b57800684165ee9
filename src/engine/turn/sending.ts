import { randomUUID } from 'node:crypto';
import type { Sent, Turn } from '../../core/turn.ts';
import type { Write } from '../../ports/store/writes.ts';
import type { Restored } from '../restore/restore.ts';
import type { Hold } from '../worker/hold.ts';

/** The fact of sending a prompt of ours, which has an id. */
export type SentPromptFact = Sent & { readonly prompt: string };

/** What is written before a prompt leaves, in one commit: the receipt and the fact of sending (R6). */
export function sending(
  hold: Hold,
  turn: Pick<Turn, 'id' | 'attempt'>,
  { open, receipt, delivered }: Restored & { ok: true },
  ref: string | null,
): { readonly sent: SentPromptFact; readonly writes: readonly Write[] } {
  const sent: SentPromptFact = {
    attempt: turn.attempt,
    prompt: randomUUID(),
    session: ref,
    position: open.position,
    rung: receipt.rung,
    delivered,
    process: open.session.process,
    at: hold.parts.clock.now(),
  };
  const writes: Write[] = [
    { write: 'receipt', receipt, turn: turn.id, session: ref },
    { write: 'send', turn: turn.id, sent },
  ];
  return { sent, writes };
}
