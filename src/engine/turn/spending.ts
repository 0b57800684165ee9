import { type Budget, NO_BUDGET } from '../../core/limits/budget.ts';
import { type DayLimit, lower } from '../../core/limits/spending.ts';
import type { EngineParts } from '../parts.ts';

/**
 * The limits of spending per day that hold for a conversation, with what was spent of them. Empty: there is none. `id` null: the
 * conversation is about to be made.
 */
export async function dayLimits(
  { store, settings }: EngineParts,
  { owner, id }: { readonly owner: string; readonly id: string | null },
): Promise<DayLimit[]> {
  const { conversationPerDay, ownerPerDay, owners } = settings.spending;
  const own = id === null ? null : await store.limitPerDay(owner, id);
  const ofConversation = lower(conversationPerDay, own ?? NO_BUDGET);
  const ofOwner = owners.get(owner) ?? ownerPerDay;
  // Mostly nothing is limited, and every prompt and turn comes here.
  if (!isSet(ofConversation) && !isSet(ofOwner)) return [];
  const spent = await store.spending(owner, id);
  const limits: DayLimit[] = [
    { whose: 'conversation', limit: ofConversation, spent: spent.conversation },
    { whose: 'owner', limit: ofOwner, spent: spent.owner },
  ];
  return limits.filter(({ limit }) => isSet(limit));
}

function isSet({ costMicros, tokens }: Budget): boolean {
  return costMicros !== null || tokens !== null;
}
