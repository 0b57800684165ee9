import type { Step } from '../../../core/continuity.ts';
import type { Session } from '../../../core/session.ts';
import type { RestoreRequest } from '../restore.ts';
import { foreignHands, wentOnAlone } from './foreign-hands.ts';
import { inLineage } from './lineage.ts';
import { tooWeak } from './patiently.ts';
import type { Result } from './step.ts';

/** The process that we hold, as long as its storage is where we left it. */
export async function openLive(step: Step, row: Session, request: RestoreRequest): Promise<Result> {
  const { hold, agent, traits } = request;
  const live = hold.living(agent.name);
  if (live === null) return { failure: 'its process has ended' };
  const position = traits.position ? await live.session.position() : null;
  if (traits.position && position !== row.position) {
    const alone = await wentOnAlone(row, position, request);
    if (alone === null) return foreignHands(row, position, request);
    // What it did is in its storage; in its process there may be more to come that nobody asked for.
    await hold.letGo(agent);
    return { failure: alone.did };
  }
  const proof = position !== null ? 'proved' : traits.position ? 'counted' : step.proof;
  if (tooWeak(proof, request)) return { failure: 'nothing shows that it has the context, or takes it along' };
  return { open: { ...inLineage(row), session: live.session }, proof };
}
