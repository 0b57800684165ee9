/*
 * Which turn runs next. A process has a number of slots, and every running turn holds one.
 *
 *   - One owner holds at most `perOwner` of them, so that others find a free one.
 *   - A turn that waits for the answer to a permission question holds none, and continues at once when the answer comes, with
 *     or without a free slot. Its agent keeps running meanwhile, so these turns are limited, too: when an owner has `perOwner`
 *     of them, or all owners together `parallel`, no further turn of that owner begins. An owner without such a turn is never
 *     delayed by the questions of others.
 *   - A free slot goes to the owner with the fewest running turns; among equals, to the next one after the owner who was
 *     served last, in the order of their names.
 */
export interface SlotLimits {
  /** How many turns may run at once in a process. */
  readonly parallel: number;
  /** How many of them may belong to one owner. */
  readonly perOwner: number;
}

/** The turns of one owner that have begun and not ended. */
export interface Load {
  readonly running: number;
  /** Waiting for an answer. */
  readonly asking: number;
}

export interface Loads {
  /** Of all owners together. */
  readonly all: Load;
  /** Owners without a turn are left out. */
  readonly owners: ReadonlyMap<string, Load>;
}

/** The owner has all the slots that one owner may have · all slots are in use · too many of the owner's turns wait for an answer. */
export const SLOT_REASONS = ['owner_slots', 'all_slots', 'owner_questions'] as const;
export type SlotReason = (typeof SLOT_REASONS)[number];
/** `other_process`: another process holds the conversation. Its slots are not known here. */
export const DELAY_REASONS = [...SLOT_REASONS, 'other_process'] as const;

/** Why a queued turn that will run has not begun, and what to do about it. */
export interface Delayed {
  readonly reason: (typeof DELAY_REASONS)[number];
  readonly message: string;
  readonly hint: string;
}

export function isDelayed(why: { readonly reason: string }): why is Delayed {
  return (DELAY_REASONS as readonly string[]).includes(why.reason);
}

const NO_LOAD: Load = { running: 0, asking: 0 };

const loadOf = ({ owners }: Loads, owner: string) => owners.get(owner) ?? NO_LOAD;

/** Null: a turn of the owner may begin. */
export function whyNoSlot(loads: Loads, { parallel, perOwner }: SlotLimits, owner: string): SlotReason | null {
  const { running, asking } = loadOf(loads, owner);
  if (running >= perOwner) return 'owner_slots';
  if (loads.all.running >= parallel) return 'all_slots';
  return asking > 0 && (asking >= perOwner || loads.all.asking >= parallel) ? 'owner_questions' : null;
}

/** In which order owners are served. */
export interface Share {
  /** First come the owners in neither list, who have no running turn: by name, beginning after this one, then from the first name. */
  readonly after: string;
  /** Then these, in this order. */
  readonly busy: readonly string[];
  /** These are not served. */
  readonly full: readonly string[];
}

export function shareOf(loads: Loads, limits: SlotLimits, after: string): Share {
  const [busy, full]: [string[], string[]] = [[], []];
  for (const [owner, { running }] of loads.owners) {
    if (whyNoSlot(loads, limits, owner) !== null) full.push(owner);
    else if (running > 0) busy.push(owner);
  }
  return { after, busy: busy.sort((a, b) => byShare(loads, after, a, b)), full };
}

/** The owner who is served first. Null: there are none. */
export function fairest(owners: readonly string[], loads: Loads, after: string): string | null {
  return owners.toSorted((a, b) => byShare(loads, after, a, b))[0] ?? null;
}

function byShare(loads: Loads, after: string, a: string, b: string): number {
  const fewer = loadOf(loads, a).running - loadOf(loads, b).running;
  if (fewer !== 0 || a === b) return fewer;
  const round = Number(a <= after) - Number(b <= after);
  return round !== 0 ? round : a < b ? -1 : 1;
}

/**
 * Which conversations lose their warm agents so that at most `most` keep them: of the owner who has the most, the one that was idle
 * longest. So the many conversations of one owner do not cost others their agents.
 */
export function leavesFirst<T extends { readonly owner: string; readonly since: number }>(
  warm: readonly T[],
  most: number,
): T[] {
  const leaving: T[] = [];
  const byOwner = Map.groupBy(
    warm.toSorted((a, b) => a.since - b.since),
    ({ owner }) => owner,
  );
  while (warm.length - leaving.length > most) {
    const [first] = [...byOwner.values()].toSorted(
      (a, b) => b.length - a.length || (a[0] as T).since - (b[0] as T).since,
    );
    leaving.push(first?.shift() as T);
    for (const [owner, rest] of byOwner) if (rest.length === 0) byOwner.delete(owner);
  }
  return leaving;
}

/** The memory that one agent is expected to need. */
const MEMORY_PER_SLOT = 512 * 2 ** 20;
const [FEWEST, MOST] = [4, 64];

/** The limits of the settings. Default: one slot for every 512 MiB of memory, from 4 to 64, and three quarters of them for one owner. */
export function slotLimits(
  given: { readonly parallel?: number; readonly perOwner?: number },
  memory: number,
): SlotLimits {
  const fitting = Math.min(MOST, Math.max(FEWEST, Math.floor(memory / MEMORY_PER_SLOT)));
  const { parallel = fitting } = given;
  return { parallel, perOwner: given.perOwner ?? Math.ceil((parallel * 3) / 4) };
}

const BY_ITSELF = 'It begins by itself.';

export function delayedBy(reason: SlotReason, n: number, { parallel, perOwner }: SlotLimits): Delayed {
  switch (reason) {
    case 'all_slots':
      return {
        reason,
        message: `Turn ${n} waits for a slot: ${running(parallel)}, which is the limit.`,
        hint: `${BY_ITSELF} The setting "turns.parallel" is the limit.`,
      };
    case 'owner_slots':
      return {
        reason,
        message: `Turn ${n} waits for a slot: ${running(perOwner)} for its owner, which is the limit.`,
        hint: `${BY_ITSELF} The setting "turns.perOwner" is the limit.`,
      };
    case 'owner_questions':
      return {
        reason,
        message: `Turn ${n} waits: too many turns of its owner wait for the answer to a permission question.`,
        hint: 'Answer some of them: "throughline permissions" lists them.',
      };
  }
}

/** Another process holds the conversation of this turn. */
export function delayedElsewhere(n: number): Delayed {
  return {
    reason: 'other_process',
    message: `Turn ${n} waits in another process, which holds the conversation.`,
    hint: `${BY_ITSELF} Every process has slots of its own; that one runs the turn.`,
  };
}

function running(count: number): string {
  return count === 1 ? '1 turn is running' : `${count} turns are running`;
}
