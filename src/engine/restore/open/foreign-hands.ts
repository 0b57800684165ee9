import { PartsBuilder } from '../../../core/record.ts';
import type { Session } from '../../../core/session.ts';
import type { RestoreRequest, StepFailure } from '../restore.ts';
import { drop } from './lineage.ts';

/**
 * Whether the session has moved by its agent's own doing, without anybody's prompt, and what it did then; null: it was not the
 * agent alone.
 */
export async function wentOnAlone(
  row: Session,
  position: string | null,
  { hold, agent }: RestoreRequest,
): Promise<{ readonly did: string } | null> {
  if (position === null || row.position === null) return null;
  const tail = await agent.tail(row.id, { prompt: null, position: row.position }, await hold.openSandbox());
  if (tail === null || tail.position !== position) return null;
  const parts = new PartsBuilder();
  for (const update of tail.updates) parts.add(update);
  const tools = parts.parts().flatMap((part) => (part.type === 'tool' ? [part.name] : []));
  const ran = tools.length === 0 ? 'no tool ran' : `these tools ran: ${tools.join(', ')}`;
  return { did: `it went on by itself after its last turn, unasked; ${ran}` };
}

/** Somebody else used the session: it is never used again and never merged (R10). */
export async function foreignHands(row: Session, found: string | null, request: RestoreRequest): Promise<StepFailure> {
  if (found === null) return drop(row, 'lost', 'the agent no longer has it', request);
  return drop(row, 'diverged', 'somebody else has used it since: it is not where we left it', request);
}
