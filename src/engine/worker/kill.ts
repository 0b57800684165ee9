import { ThroughlineError } from '../../core/errors.ts';
import type { Actor } from '../../core/input/names.ts';
import { type PublicSession, toPublicSessions } from '../../core/public/session.ts';
import type { Session } from '../../core/restore/session.ts';
import type { EngineParts } from '../parts.ts';
import type { Held } from './held.ts';
import type { Worker } from './worker.ts';

/**
 * Ends the agents' processes of a conversation. If this process holds the conversation, it interrupts the turn that runs, ends the
 * processes, and records the reason in the lineage. Otherwise it ends the recorded processes, and their holder finds them gone. Returns
 * the sessions that had a process.
 */
export async function kill(
  parts: EngineParts,
  worker: Worker,
  { owner, id, by }: Actor & { readonly id: string },
): Promise<PublicSession[]> {
  const before = (await parts.store.sessions(owner, id)).filter(({ process }) => process !== null);
  const refs = new Set(before.map(({ ref }) => ref));
  const ended = await worker.whileHeld(id, (held) => killHeld(held, by), {
    code: 'interrupted',
    message: `${by} ended the agent's session while the turn ran.`,
    hint: 'What the agent had said is kept. "throughline retry KEY" sends the prompt again.',
  });
  for (const ref of ended ?? []) refs.add(ref);
  // Another process holds it or nobody does, or no slot was free.
  if (ended === null) await Promise.all(before.map((session) => endProcess(parts, session)));
  const after = await parts.store.sessions(owner, id);
  const killed = after.filter(({ ref }) => refs.has(ref)).map(({ id: sessionId }) => sessionId);
  return toPublicSessions(after).filter((session) => killed.includes(session.id));
}

async function killHeld(held: Held, by: string): Promise<string[]> {
  const refs: string[] = [];
  for (const [name, live] of held.live) {
    const agent = held.parts.agents.get(name)?.agent;
    if (agent === undefined) continue;
    await held.endLive(agent, by);
    refs.push(live.ref);
  }
  return refs;
}

async function endProcess({ sandboxes }: EngineParts, { id, process }: Session): Promise<void> {
  if (process === null || (await sandboxes.end(process)) === 'ended') return;
  throw new ThroughlineError('refused', `The process of session ${id} cannot be ended from here.`, {
    hint: 'It runs on another machine, or in another container. End it there.',
  });
}
