import { isUsable } from '../../core/restore/session.ts';
import type { ToldPart } from '../../core/restore/told.ts';
import type { Opened } from '../../ports/agent.ts';
import { nothingFits, recordsWithin } from './deliver.ts';
import { assign, isOpen, KNOWS_NOTHING, neverOpened, openWithLockRetry, previousSession, whyNotOpen } from './open.ts';
import { inLineage, type OpenResult, type Restoring } from './request.ts';
import { transcriptTold } from './told.ts';

/** Writes the agent's own file and opens its session: the file as it was, if our copy reaches the head; otherwise one made from records. */
export async function openRehydrated(request: Restoring): Promise<OpenResult> {
  await request.held.endLive(request.agent);
  // Our copy contains the id of its session, so it cannot have the id that the caller chose. A rebuild is for the turns themselves, within
  // the budget: our copy has what the session had, also its agent's summary of them.
  const isCopy = request.newSession === null && !request.settings.rebuild;
  const mirrored = isCopy ? await openMirrored(request) : null;
  return mirrored ?? openFromRecords(request);
}

/** Null: there is no usable copy. */
async function openMirrored(request: Restoring): Promise<OpenResult | null> {
  const { held, agent } = request;
  const { owner, id: conversation, head } = held.conversation;
  const [row] = await held.parts.store.sessions(owner, conversation, { agent: agent.name, limit: 1 });
  const usable = row !== undefined && row.state !== 'diverged' && row.state !== 'closed';
  if (!usable || row.watermark !== head || row.position === null || row.mirrored === 0) return null;
  const transcript = await held.parts.store.transcript(owner, conversation, row.ref);
  if (transcript === null) return null;
  if (isUsable(row)) {
    const reason = 'its file is put back from our copy';
    await held.putAside(agent, { ref: row.ref, state: 'lost', reason });
  }
  const how = { kind: 'rehydrate', id: row.id, from: { transcript, memo: row.memo } } as const;
  const opened = await openWithLockRetry(how, request);
  if ('failure' in opened) return opened.final ? opened : null;
  if (!opened.ok) return null;
  const { session } = opened;
  if ((await session.position()) !== row.position) {
    await session.close();
    return null;
  }
  const known = { ...inLineage(row), ref: null, origin: 'rehydrated', parent: row.ref } as const;
  return { open: { session, ...known, mirrored: 0, told: toldBy(opened) }, proof: 'proved' };
}

async function openFromRecords(request: Restoring): Promise<OpenResult> {
  const { records, dropped, omitted, images } = await recordsWithin(0, request);
  if (records.length === 0) return { failure: nothingFits(dropped) };
  const parent = await previousSession(request);
  const assigned = await assign(parent, 'rehydrated', request);
  if ('failure' in assigned) return assigned;
  const { id, ref } = assigned;
  const opened = await openWithLockRetry({ kind: 'rehydrate', id, from: { records } }, request);
  if (!isOpen(opened)) return neverOpened(ref, whyNotOpen(opened));
  const { session, proof } = opened;
  const made = { cutTurns: dropped + omitted.shortened, images };
  const told = { ...KNOWS_NOTHING, dropped, omitted, made };
  const open = { session, ref, origin: 'rehydrated', parent, ...told, told: toldBy(opened) } as const;
  return { open: { ...open, position: await session.position() }, proof };
}

function toldBy({ wrote }: Extract<Opened, { ok: true }>): ToldPart[] {
  return wrote === undefined ? [] : [transcriptTold(wrote)];
}
