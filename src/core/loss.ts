/** Stored data that is missing: the high-water mark, outside of the database, shows that it was committed. */
export interface Loss {
  readonly noticedAt: number;
  /** `tail`: the newest part is missing. `other`: the file is another one than was used before. */
  readonly kind: 'tail' | 'other';
  /** How many events are missing, as far as is known. */
  readonly events: number;
  /** How many commits without an event are missing: keys, limits, erasures, leases. */
  readonly changes: number;
  /** Those whose events are missing, as far as is known. */
  readonly conversations: readonly LostEvents[];
}

/** What is missing in one conversation. */
export interface LostEvents {
  readonly conversationId: string;
  /** Null: it has none, or the conversation is missing as a whole. */
  readonly key: string | null;
  readonly had: Extent;
  /** What was left when the loss was noticed; null: nothing. */
  readonly has: Extent | null;
}

/** How much there is of a conversation. */
export interface Extent {
  /** The number of its last event. */
  readonly seq: number;
  readonly turns: number;
}

/** A sentence for operators. It names no conversation. */
export function lossInWords({ kind, events, changes, conversations }: Loss): string {
  const where = conversations.length === 0 ? '' : ` of ${count(conversations.length, 'conversation')}`;
  const missing = [
    ...(events === 0 ? [] : [`${count(events, 'event')}${where}`]),
    ...(changes === 0 ? [] : [count(changes, 'other change')]),
  ].join(' and ');
  if (kind === 'tail') return `Stored data is missing: ${missing}.`;
  return `The data file is not the one that was used here before. The earlier file had at least ${missing}.`;
}

export const LOSS_CAUSE = 'The end of the log was cut or damaged, or an older copy of the data file was put back.';

/** For a key that is not found, when whole conversations are missing. */
export const LOST_WHOLE =
  'Stored conversations are missing, and their keys with them: it may be one of them. "throughline doctor" names them by id; verify it by that.';

export const ACKNOWLEDGE_LOSS =
  'Restore a backup that has it, or acknowledge the loss with "throughline doctor --accept-loss"; then it is no longer reported.';

/** What is missing in one conversation, in a sentence. */
export function lostInWords({ had, has }: Omit<LostEvents, 'conversationId' | 'key'>): string {
  if (has === null) return `It had ${extentInWords(had)}, and nothing of it is left.`;
  const events =
    had.seq - has.seq === 1 ? `Event ${had.seq} is missing` : `Events ${has.seq + 1} to ${had.seq} are missing`;
  const verb = has.turns === 1 ? 'is' : 'are';
  return `${events}: it had ${extentInWords(had)}, and ${extentInWords(has)} ${verb} left.`;
}

function extentInWords({ seq, turns }: Extent): string {
  return `${count(turns, 'turn')} (${count(seq, 'event')})`;
}

function count(n: number, what: string): string {
  return `${n} ${what}${n === 1 ? '' : 's'}`;
}
