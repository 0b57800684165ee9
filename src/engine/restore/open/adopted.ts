import type { RestoreRequest } from '../restore.ts';
import { previousSession } from './lineage.ts';
import { openPatiently, proveOpened, tooWeak } from './patiently.ts';
import type { Result } from './step.ts';

/** A native session that somebody else made: read first, and taken into the lineage when the prompt is sent. */
export async function openAdopted(id: string, request: RestoreRequest): Promise<Result> {
  const { hold, agent, traits } = request;
  await hold.letGo(agent);
  const position = traits.position ? await agent.position(id, await hold.openSandbox()) : null;
  if (traits.position && position === null) return { failure: 'the agent has no such session here' };
  const opened = await openPatiently({ kind: 'resume', id }, false, request);
  if ('failure' in opened) return opened;
  if (!opened.ok) return { failure: `the agent refused: ${opened.message}` };
  const proof = await proveOpened(opened, position, request);
  if (proof === 'refuted') {
    await opened.session.close();
    return { failure: 'after opening, it was not where its storage stood' };
  }
  if (tooWeak(proof, request)) {
    await opened.session.close();
    return { failure: 'nothing shows what it knows; the policy "auto" takes it all the same' };
  }
  const parent = await previousSession(request);
  return {
    open: {
      session: opened.session,
      ref: null,
      origin: 'adopted',
      parent,
      watermark: 0,
      dropped: 0,
      position,
      mirrored: 0,
    },
    proof,
  };
}
