import { ThroughlineError } from '../../core/errors.ts';
import { type PublicSession, toPublicSessions } from '../../core/public/session.ts';
import type { Session } from '../../core/restore/session.ts';
import type { EngineParts } from '../parts.ts';
import { canReopen, type Held } from './held.ts';
import type { Worker } from './worker.ts';

interface KillRequest {
  readonly owner: string;
  readonly id: string;
  /** Who asks, as the lineage has it. */
  readonly by: string;
}

/**
 * Ends the agents' processes of a conversation. The worker that holds it interrupts the turn that runs, ends the processes, and
 * writes into the lineage why. If another process holds it, the recorded processes are ended from here, and the holder finds them
 * gone. Returns the sessions that had a process.
 */
export async function kill(parts: EngineParts, worker: Worker, request: KillRequest): Promise<PublicSession[]> {
  const { owner, id, by } = request;
  const before = (await parts.store.sessions(owner, id)).filter(({ process }) => process !== null);
  const refs = new Set(before.map(({ ref }) => ref));
  const ended = await worker.whileHeld(id, (held) => killHeld(held, by), {
    code: 'interrupted',
    message: `${by} ended the agent's session while the turn ran.`,
    hint: 'What the agent had said is kept. "retry" sends the prompt again.',
  });
  for (const ref of ended ?? []) refs.add(ref);
  // Another process holds it, or no slot was free to do it in order.
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
    const keeps = await canReopen(agent, await held.openSandbox());
    const state = !keeps ? 'lost' : live.unsettled ? 'unsettled' : 'dormant';
    await held.putAside(agent, { ref: live.ref, state, reason: `${by} ended its process`, force: true });
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
