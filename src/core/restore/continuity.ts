import type { Proof } from './receipt.ts';
import { continues, type EffectiveRestore, type ReceiptRung, RUNGS, WHEN_UNPROVED } from './restore-settings.ts';
import { isUsable, type Session } from './session.ts';
import { type AgentTraits, canReopen } from './traits.ts';

/** The conversation, its sessions and its agent just before a prompt is sent. */
export interface Situation {
  /** The last turn of the history; 0: there is none. */
  readonly head: number;
  /** This agent's sessions in this conversation, most recently used first. Only the first usable one is a candidate. */
  readonly sessions: readonly Session[];
  /** Our reference of the session whose process we hold; null: none. */
  readonly live: string | null;
  /** Nothing showed which turns the living session had when it was opened. */
  readonly unproved?: boolean;
  /** Our references of adopted sessions in which no prompt has completed: only their own turns are certain. Left out: none. */
  readonly untold?: readonly string[];
  /** How many turns the newest session, unsettled, would be told a second time. Left out: none. */
  readonly repeats?: number;
  /** The newest session would be opened as it was before the last prompt, which failed. */
  readonly rewinds?: boolean;
  readonly traits: AgentTraits;
  readonly restore: EffectiveRestore;
  /** The agent's id of the session that the caller named; null: none. It is used or refused, never replaced (R7). */
  readonly explicit: string | null;
  /** The id that the caller chose for a new session; null: none. It is opened once, or refused (R1, R7). */
  readonly newSession?: string | null;
}

/** How a step opens the agent's session. */
export type Opening =
  | { readonly how: 'live'; readonly session: Session }
  | { readonly how: 'resume'; readonly session: Session }
  /** A session of the agent that this conversation has not used before. */
  | { readonly how: 'adopt'; readonly id: string }
  | { readonly how: 'rehydrate' }
  | { readonly how: 'new' };

/** What a step gives the session before the prompt: nothing, the records after `after`, or the earlier prompts one by one. */
export type Delivery =
  | { readonly what: 'nothing' }
  | {
      readonly what: 'records';
      readonly after: number;
      readonly unsettled: boolean;
      /** An adopted session whose own turns are not told, because it has them. Left out: all are told. */
      readonly except?: Session;
    }
  | { readonly what: 'prompts' };

/** One way to bring a session to the head: an opening × a delivery. */
export interface Step {
  readonly rung: ReceiptRung;
  readonly open: Opening;
  readonly deliver: Delivery;
  /** The proof that this step has before the prompt is sent, when all goes well. */
  readonly proof: Proof;
}

/** A plan is steps, best first; or, when there is none, the reason to give to the caller. */
export interface Plan {
  readonly steps: readonly Step[];
  readonly refusal: string | null;
  /** What to do about the refusal; left out: nothing that is known here. */
  readonly hint?: string;
  /** Why the preferred rung is not among the steps; left out: it is, or there is none. */
  readonly unplanned?: Impossible;
  /** A usable session that is replaced anyway, and why; left out: there is none. */
  readonly replaces?: { readonly session: Session; readonly reason: string };
}

/** Why something is not possible, and what to do. */
interface Impossible {
  readonly reason: string;
  readonly hint: string;
}

/** Every way to bring a session to the head of the conversation, best first. Same inputs, same plan. */
export function planContinuity(situation: Situation): Plan {
  const { restore, explicit } = situation;
  if (explicit !== null) return planExplicit(situation, explicit);
  const { newSession = null } = situation;
  if (newSession !== null) return planNewSession(situation, newSession);
  if (restore.policy === 'off') return { steps: [freshStep(situation)], refusal: null };
  const newest = restore.rebuild ? null : candidate(situation);
  const replaces = newest !== null && replaced(situation, newest);
  const cached = newest === null || replaces ? [] : cachedSteps(situation, newest);
  const wanted = [...cached, ...rebuildingSteps(situation)].filter((step) => isWanted(step, restore));
  const steps = wanted.filter((step) => isProved(step, restore));
  if (restore.policy === 'auto' && restore.rung === null && situation.head > 0) steps.push(freshStep(situation));
  if (steps.length === 0) return refuseAll(situation, wanted);
  const isPlanned = restore.rung === null || steps.some(({ rung }) => rung === restore.rung || rung === 'new');
  const unplanned = isPlanned ? {} : { unplanned: whyImpossible(situation, wanted) };
  return { steps, refusal: null, ...unplanned, ...(replaces && { replaces }) };
}

/** The caller named a session: it is the only one that may be used. */
function planExplicit(situation: Situation, id: string): Plan {
  const entries = situation.sessions.filter((session) => session.id === id);
  const known = entries[0];
  if (entries.some((session) => session.state === 'diverged')) return refuse('that session is diverged');
  if (known === undefined) {
    const { traits, head } = situation;
    if (!traits.resume && !traits.load) return refuse('this agent cannot reopen a session');
    const deliver: Delivery = head > 0 ? { what: 'records', after: 0, unsettled: false } : { what: 'nothing' };
    return {
      steps: [{ rung: 'resume', open: { how: 'adopt', id }, deliver, proof: reopenProof(traits) }],
      refusal: null,
    };
  }
  if (!isUsable(known)) return refuse(`that session is ${known.state}`);
  const steps = cachedSteps(situation, known);
  return steps.length > 0 ? { steps, refusal: null } : refuse('this agent cannot reopen a session');
}

/**
 * The caller chose the id of a new session. It may be in the lineage already, when an earlier attempt of the turn recorded it: then
 * the session that was sent a prompt is continued, and one that was not is opened.
 */
function planNewSession(situation: Situation, id: string): Plan {
  const { traits, sessions } = situation;
  // The new session is a rebuild, so a rung that would continue in the present one does not apply.
  const restore = continues(situation.restore.rung) ? { ...situation.restore, rung: null } : situation.restore;
  if (traits.id !== 'assigned') {
    return refuse('this agent issues the ids of its sessions itself', 'Leave out the id of the new session.');
  }
  const known = sessions.find((session) => session.id === id);
  if (known !== undefined && (!isUsable(known) || known.turns > 0)) return refuse('its id was used before');
  if (known?.state === 'unsettled') return { steps: cachedSteps(situation, known), refusal: null };
  const fresh = restore.policy === 'auto' && situation.head > 0 ? [freshStep(situation)] : [];
  const rebuilt = rebuildingSteps(situation).filter((step) => isWanted(step, restore) && isProved(step, restore));
  const steps =
    restore.policy === 'off' ? [freshStep(situation)] : [...rebuilt, ...(restore.rung === null ? fresh : [])];
  return steps.length > 0 ? { steps, refusal: null } : refuseAll({ ...situation, restore }, []);
}

/** Only the newest session of an agent is a candidate, never an older one (R1). */
function candidate({ sessions }: Situation): Session | null {
  const newest = sessions[0];
  return newest !== undefined && isUsable(newest) ? newest : null;
}

/** After one or two failed turns it is cheaper to repeat a little text than to replace the session. */
const MOST_REPEATS = 2;

/** Whether a session would be told so many turns again that it is rewound or replaced instead. */
export function tooManyRepeats(repeats: number): boolean {
  return repeats > MOST_REPEATS;
}

/**
 * An unsettled session is told all turns after its watermark, and keeps them even when that prompt fails. If it were told them every
 * time, its context would grow with the square of the failures. A session that is rewound to before the last prompt does not grow; but
 * one without a watermark has the history from its beginning, and would be told all of it again.
 */
function replaced(situation: Situation, session: Session): Plan['replaces'] | false {
  const { repeats = 0, rewinds = false, restore } = situation;
  if (session.state !== 'unsettled' || continues(restore.rung) || !tooManyRepeats(repeats)) return false;
  if (rewinds && session.watermark > 0) return false;
  return { session, reason: `it would be told ${repeats} turns that it has been told before` };
}

/** Steps that use a session that already has turns. */
function cachedSteps(situation: Situation, session: Session): Step[] {
  const { head, traits, live, untold = [] } = situation;
  const unsettled = session.state === 'unsettled';
  const behind = session.watermark < head;
  // An adopted session has only its own turns until a prompt tells it all others.
  const lacks = untold.includes(session.ref) && session.dropped > 0;
  const since: Delivery = behind ? { what: 'records', after: session.watermark, unsettled } : { what: 'nothing' };
  const deliver: Delivery = lacks ? { what: 'records', after: 0, unsettled, except: session } : since;
  const steps: Step[] = [];
  if (live === session.ref) {
    steps.push({
      rung: 'live',
      open: { how: 'live', session },
      deliver,
      proof: livingProof(situation),
    });
  }
  if (canReopen(traits)) {
    steps.push({ rung: 'resume', open: { how: 'resume', session }, deliver, proof: reopenProof(traits) });
  }
  return steps;
}

/** Steps that open a new session and tell it the history. */
function rebuildingSteps({ head, traits, restore }: Situation): Step[] {
  if (head === 0) return [{ rung: 'new', open: { how: 'new' }, deliver: { what: 'nothing' }, proof: 'counted' }];
  const steps: Step[] = [];
  if (traits.rehydrate) {
    steps.push({ rung: 'rehydrate', open: { how: 'rehydrate' }, deliver: { what: 'nothing' }, proof: 'proved' });
  }
  steps.push({
    rung: 'transcript',
    open: { how: 'new' },
    deliver: { what: 'records', after: 0, unsettled: false },
    proof: 'counted',
  });
  // A replay calls the model once a turn and could run tools: only when asked for, and only where tools cannot run or are allowed to.
  if (restore.rung === 'replay' && (traits.noTools || restore.allowTools)) {
    steps.push({ rung: 'replay', open: { how: 'new' }, deliver: { what: 'prompts' }, proof: 'counted' });
  }
  return steps;
}

function freshStep({ head }: Situation): Step {
  const rung = head === 0 ? 'new' : 'fresh';
  return { rung, open: { how: 'new' }, deliver: { what: 'nothing' }, proof: head === 0 ? 'counted' : 'none' };
}

/**
 * We delivered everything to this process ourselves, unless it was reopened without any proof. An agent that has changed its session id
 * before may do so again, and then only its storage could show which turns the new session has.
 */
function livingProof({ sessions, traits, unproved = false }: Situation): Proof {
  if (traits.position) return 'proved';
  return unproved || sessions.some((session) => session.origin === 'rotated') ? 'none' : 'counted';
}

/** Reopening is proved by the agent's own storage, or shown by the history it repeats; an id alone proves nothing. */
function reopenProof(traits: AgentTraits): Proof {
  if (traits.position) return 'proved';
  return traits.load ? 'consistent' : 'none';
}

/** A preferred rung is the only one that restores. What continues in the session comes before it, if it is higher on the ladder. */
function isWanted({ rung }: Step, { rung: preferred }: EffectiveRestore): boolean {
  const higher = continues(rung) && PLACES.indexOf(rung) < PLACES.indexOf(preferred ?? rung);
  return preferred === null || rung === preferred || rung === 'new' || higher;
}

const PLACES: readonly ReceiptRung[] = RUNGS;

function isProved({ proof }: Step, { policy }: EffectiveRestore): boolean {
  return policy === 'auto' || proof !== 'none';
}

/** `wanted`: the steps that only lack a proof. */
function whyImpossible({ restore: { rung }, traits }: Situation, wanted: readonly Step[]): Impossible {
  if (rung === 'replay' && !traits.noTools) {
    const reason = 'a replay could run tools again: this agent has no proved no-tools profile';
    return { reason, hint: 'Allow that (restore.allowTools, --allow-tools), or prefer another rung.' };
  }
  if (rung === null || wanted.some((step) => step.rung === rung)) {
    return { reason: 'no way to restore the context is proved for this agent', hint: WHEN_UNPROVED };
  }
  const hint = 'Prefer another rung, or none ("rung": null, --rung none), or send the prompt to another agent.';
  return { reason: `the rung "${rung}" that was asked for is not possible here`, hint };
}

function refuseAll(situation: Situation, wanted: readonly Step[]): Plan {
  const { reason, hint } = whyImpossible(situation, wanted);
  return refuse(reason, hint);
}

function refuse(reason: string, hint?: string): Plan {
  return { steps: [], refusal: reason, ...(hint !== undefined && { hint }) };
}
