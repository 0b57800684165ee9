import { randomUUID } from 'node:crypto';
import type { Step } from '../../../core/continuity.ts';
import type { Opened } from '../../../ports/agent.ts';
import type { RestoreRequest, StepFailure } from '../restore.ts';
import { notNew, wasUsed } from '../used-before.ts';
import { hopeless, previousSession, recordAssigned } from './lineage.ts';
import { openPatiently, whyNot } from './patiently.ts';
import type { Result } from './step.ts';

/** An id that we assign is recorded before the agent hears of it, and opens a session once (R1). */
export async function openNew(step: Step, request: RestoreRequest): Promise<Result> {
  const { hold, agent, traits } = request;
  await hold.letGo(agent);
  const parent = await previousSession(request);
  const noTools = step.deliver.what === 'prompts' && traits.noTools;
  const id = traits.id === 'assigned' ? randomUUID() : null;
  const ref = id === null ? null : await recordAssigned(id, parent, 'new', request);
  const opened = await openAssigned(id, noTools, request);
  const failure = whyNot(opened);
  if (failure) {
    if (ref !== null) await hopeless(ref, failure, request);
    return failure;
  }
  const { session } = opened as Opened & { ok: true };
  if (id === null && session.id !== null && traits.position && (await wasUsed(session.id, hold, agent))) {
    await session.close();
    return { failure: notNew(session.id) };
  }
  const open = { session, ref, origin: 'new', parent, watermark: 0, dropped: 0, mirrored: 0 } as const;
  return { open: { ...open, position: await session.position() }, proof: step.proof };
}

/** An id that is in use, and that nobody but us can know, was opened by an earlier attempt: from then on it is resumed (R1). */
async function openAssigned(
  id: string | null,
  noTools: boolean,
  request: RestoreRequest,
): Promise<Opened | StepFailure> {
  const opened = await openPatiently({ kind: 'new', id }, noTools, request);
  if (id === null || 'failure' in opened || opened.ok || opened.reason !== 'in_use') return opened;
  return openPatiently({ kind: 'resume', id }, noTools, request);
}
