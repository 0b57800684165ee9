import type { Step } from '../../../core/continuity.ts';
import type { Proof } from '../../../core/receipt.ts';
import type { OpenSession, RestoreRequest, StepFailure } from '../restore.ts';
import { openAdopted } from './adopted.ts';
import { openLive } from './live.ts';
import { openNew } from './new.ts';
import { openRehydrated } from './rehydrated.ts';
import { openResumed } from './resumed.ts';

/** What came of opening, and how far it is shown that the session has its context. */
export type Result = { readonly open: OpenSession; readonly proof: Proof } | StepFailure;

/** Opens the session of a step and proves, as far as the agent allows, that it stands where we left it. */
export function openStep(step: Step, request: RestoreRequest): Promise<Result> {
  switch (step.open.how) {
    case 'live':
      return openLive(step, step.open.session, request);
    case 'resume':
      return openResumed(step.open.session, request);
    case 'adopt':
      return openAdopted(step.open.id, request);
    case 'rehydrate':
      return openRehydrated(request);
    case 'new':
      return openNew(step, request);
  }
}
