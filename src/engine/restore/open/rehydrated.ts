import { randomUUID } from 'node:crypto';
import { isUsable } from '../../../core/session.ts';
import type { Opened } from '../../../ports/agent.ts';
import { recordsWithin } from '../deliver.ts';
import type { RestoreRequest } from '../restore.ts';
import { drop, hopeless, previousSession, recordAssigned } from './lineage.ts';
import { openPatiently, whyNot } from './patiently.ts';
import type { Result } from './step.ts';

/** The agent's own file as it was, when our copy of it reaches the head; else one made from the records. */
export async function openRehydrated(request: RestoreRequest): Promise<Result> {
  await request.hold.letGo(request.agent);
  return (await openMirrored(request)) ?? openSynthesised(request);
}

/** Null: there is no copy that would do. */
async function openMirrored(request: RestoreRequest): Promise<Result | null> {
  const { hold, agent } = request;
  const { owner, id: conversation, head } = hold.conversation;
  const [row] = await hold.parts.store.sessions(owner, conversation, { agent: agent.name, limit: 1 });
  const usable = row !== undefined && row.state !== 'diverged' && row.state !== 'closed';
  if (!usable || row.watermark !== head || row.position === null || row.mirrored === 0) return null;
  const transcript = await hold.parts.store.transcript(owner, conversation, row.ref);
  if (transcript === null) return null;
  if (isUsable(row)) await drop(row, 'lost', 'its file is put back from our copy', request);
  const how = { kind: 'rehydrate', id: row.id, from: { transcript, memo: row.memo } } as const;
  const opened = await openPatiently(how, false, request);
  if ('failure' in opened) return opened.final ? opened : null;
  if (!opened.ok) return null;
  if ((await opened.session.position()) !== row.position) {
    await opened.session.close();
    return null;
  }
  const { watermark, dropped, position } = row;
  const open = {
    session: opened.session,
    ref: null,
    origin: 'rehydrated',
    parent: row.ref,
    watermark,
    dropped,
  } as const;
  return { open: { ...open, position, mirrored: 0 }, proof: 'proved' };
}

async function openSynthesised(request: RestoreRequest): Promise<Result> {
  const { records, dropped } = await recordsWithin(0, request);
  if (records.length === 0) return { failure: 'nothing of the history fits into the budget' };
  const parent = await previousSession(request);
  const id = randomUUID();
  const ref = await recordAssigned(id, parent, 'rehydrated', request);
  const opened = await openPatiently({ kind: 'rehydrate', id, from: { records } }, false, request);
  const failure = whyNot(opened);
  if (failure) {
    await hopeless(ref, failure, request);
    return failure;
  }
  const { session, proof } = opened as Opened & { ok: true };
  const open = { session, ref, origin: 'rehydrated', parent, watermark: 0, dropped, mirrored: 0 } as const;
  return { open: { ...open, position: await session.position() }, proof };
}
