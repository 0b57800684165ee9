import { randomUUID } from 'node:crypto';
import { noAgentGiven, noSuchAgent } from '../../core/errors.ts';
import type { Receipt } from '../../core/restore/receipt.ts';
import { effectiveRestore, type TurnRestore } from '../../core/restore/restore-settings.ts';
import { keptFor } from '../../core/turn/choices.ts';
import type { Agent } from '../../ports/agent.ts';
import type { Write } from '../../ports/store/writes.ts';
import { NO_EARLIER_ATTEMPTS, type Restored } from '../restore/request.ts';
import { restore } from '../restore/restore.ts';
import type { Held } from './held.ts';

/**
 * Restores a session before the next prompt, so that nobody waits for it then. A transcript block is sent later, with the prompt; what
 * a resume or a replay restores is in the session when this returns.
 */
export async function warm(
  held: Held,
  named: string | null,
  override: TurnRestore,
  shutdown: AbortSignal,
): Promise<Receipt> {
  const { agents, settings, store } = held.parts;
  const { owner, id } = held.conversation;
  const [newest] = await store.sessions(owner, id, { limit: 1 });
  const name = named ?? newest?.agent ?? held.conversation.agent ?? settings.defaultAgent;
  if (name === null) throw noAgentGiven([...agents.keys()]);
  const agent = agents.get(name)?.agent;
  if (agent === undefined) throw noSuchAgent(name, agents.keys());
  const signal = AbortSignal.any([held.lease.lost, shutdown]);
  // They may have changed since this process took the conversation.
  const choices = keptFor((await store.findConversation(owner, id))?.choices ?? {}, name) ?? {};
  await held.readySandbox(signal);
  const restored = await restore({
    held,
    agent,
    traits: await agent.traits(await held.openSandbox(), signal, choices.model),
    choices,
    settings: effectiveRestore(settings.restore, held.conversation.restore, override),
    explicit: null,
    newSession: null,
    turn: null,
    attempt: 1,
    rewind: null,
    shrink: 0,
    earlier: NO_EARLIER_ATTEMPTS,
    signal,
  });
  const write: Write = {
    write: 'receipt',
    receipt: restored.receipt,
    turn: null,
    session: 'open' in restored ? restored.open.ref : null,
  };
  try {
    await held.lease.write(write);
    if ('open' in restored) await keep(held, agent, restored);
    else signal.throwIfAborted();
  } catch (error) {
    // Only this process can end the process that was just started.
    if ('open' in restored) await restored.open.session.kill();
    throw error;
  }
  return restored.receipt;
}

/** Keeps the opened session for the next turn, which finds it in the lineage. One without an id cannot be found, and is closed. */
async function keep(held: Held, agent: Agent, restored: Restored): Promise<void> {
  const { session, origin, parent, dropped, omitted, condensedTo } = restored.open;
  if (session.id === null) return session.close();
  // If there is a block, it is not delivered yet: the next turn puts it before its prompt.
  const isTold = restored.preface.length === 0;
  const rebuilt = isTold && (restored.receipt.rung === 'replay' || restored.receipt.rung === 'rehydrate');
  const watermark = rebuilt ? held.conversation.head : restored.open.watermark;
  const unsettled = restored.receipt.unsettled;
  const state = unsettled ? 'unsettled' : 'live';
  // The position that was proved at opening counts. If it changes, somebody else used the session.
  const position = rebuilt ? await session.position() : restored.open.position;
  const { process } = session;
  const ref = restored.open.ref ?? randomUUID();
  const told: Write[] = restored.told.length === 0 ? [] : [{ write: 'told', session: ref, told: restored.told }];
  if (restored.open.ref === null) {
    const row = {
      ref,
      id: session.id,
      agent: agent.name,
      storage: await held.storage(agent),
      origin,
      parent,
      watermark,
      ...(rebuilt ? { dropped, omitted } : { dropped: 0 }),
      condensedTo,
      state,
      position,
      process,
    } as const;
    await held.lease.write({ write: 'open-session', session: row, turn: null }, ...told);
  } else {
    const change = { state, process, position, ...(rebuilt ? { watermark, dropped, omitted } : {}) } as const;
    await held.lease.write({ write: 'change-session', ref, change, reason: 'warmed up' }, ...told);
  }
  held.keepLive(agent.name, { ref, session, unsettled, unproved: restored.receipt.proof === 'none' });
}
