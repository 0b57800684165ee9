import { type Failure, ThroughlineError } from '../../core/errors.ts';
import { type Budget, NO_BUDGET } from '../../core/limits/budget.ts';
import { type DayLimit, judgeSpending, lower } from '../../core/limits/spending.ts';
import type { EngineParts } from '../parts.ts';

interface Whose {
  readonly owner: string;
  /** Null: it is about to be made. */
  readonly id: string | null;
}

/** The limits of spending per day that hold for a conversation, with what was spent of them. Empty: there is none. */
export async function dayLimits({ store, settings }: EngineParts, { owner, id }: Whose): Promise<DayLimit[]> {
  const spent = await store.spending(owner, id);
  const { conversationPerDay, ownerPerDay, owners } = settings.spending;
  const limits: DayLimit[] = [
    {
      whose: 'conversation',
      limit: lower(conversationPerDay, spent.limitPerDay ?? NO_BUDGET),
      spent: spent.conversation,
    },
    { whose: 'owner', limit: owners.get(owner) ?? ownerPerDay, spent: spent.owner },
  ];
  return limits.filter(({ limit }) => isSet(limit));
}

/** Before a prompt is accepted. Throws `over_budget`. One that was accepted before is that turn, whatever was spent since (R3). */
export async function checkSpending(parts: EngineParts, whose: Whose, requestId: string | null): Promise<void> {
  const failure: Failure | null = judgeSpending(await dayLimits(parts, whose), parts.clock.now());
  if (failure === null) return;
  if (requestId !== null && (await parts.store.findRequest(whose.owner, requestId)) !== null) return;
  const { code, message, hint } = failure;
  throw new ThroughlineError(code, message, hint === undefined ? {} : { hint });
}

function isSet({ costMicros, tokens }: Budget): boolean {
  return costMicros !== null || tokens !== null;
}
