import type { Driver } from '../conversation.ts';
import type { Delayed } from '../limits/slots.ts';
import type { ProcessIdentity } from '../process.ts';
import { shellWord } from './quoted.ts';
import type { Turn } from './turn.ts';

/*
 * Who runs an open turn. A turn is stranded when no living process holds its conversation, and none will take it up. Interfaces then
 * show why, and what to do.
 */

/** A conversation with an open turn, and who holds it. */
export interface Standing {
  readonly owner: string;
  readonly conversation: string;
  readonly key: string | null;
  readonly driver: Driver;
  readonly place: string;
  /** The name of the place: the path of its data home; null: none is known. */
  readonly home: string | null;
  /** Its oldest open turn: only that one can be running. */
  readonly turn: Pick<Turn, 'id' | 'n' | 'state' | 'agent'>;
  /** Who holds the lease; null: nobody. `expired`: anybody may take it. */
  readonly holder: { readonly id: string; readonly process: ProcessIdentity; readonly expired: boolean } | null;
}

/** Why the open turns of a conversation do not run now. Both null: they run or will run soon, or there are none. */
export interface Hindrance {
  readonly stranded: Stranded | null;
  readonly delayed: Delayed | null;
}

export const NO_HINDRANCE: Hindrance = { stranded: null, delayed: null };

/** Why an open turn is not run, and what to do about it. */
export interface Stranded {
  readonly reason: (typeof STRANDED_REASONS)[number];
  readonly message: string;
  readonly hint: string;
}

/** Its agent is not configured here · it belongs to another data home · no process takes it up. */
export const STRANDED_REASONS = ['no_agent', 'other_home', 'no_process'] as const;

/** The processes that could run it. */
export interface RunnerFacts {
  /** A process holds the conversation and is not known to be dead. */
  readonly held: boolean;
  /** A living process takes up such turns, or waits for this one and will run it. */
  readonly taken: boolean;
  /** The conversation belongs to the data home of this process. */
  readonly here: boolean;
  /** The agent is configured in this process. */
  readonly known: boolean;
  /** The address of the store that the turn is in. */
  readonly store: string;
}

/** Null: a process runs it, or soon will. The turns behind the oldest open one wait for the same. */
export function whyStranded(standing: Standing, { held, taken, here, known, store }: RunnerFacts): Stranded | null {
  if (held) return null;
  if (standing.driver === 'tracker') return standing.turn.state === 'queued' ? null : untracked(standing);
  if (taken) return null;
  if (!here) return otherHome(standing, store);
  return known ? noProcess(standing) : noAgent(standing);
}

export function isHeld({ holder }: Standing, status: (process: ProcessIdentity) => Status): boolean {
  return holder !== null && mayRun(holder, status);
}

/** Whether a holder may still run what it holds. One whose state is unknown may, until its lease has expired. */
export function mayRun(
  { process, expired }: Pick<NonNullable<Standing['holder']>, 'process' | 'expired'>,
  status: (process: ProcessIdentity) => Status,
): boolean {
  const now = status(process);
  return now === 'alive' || (now === 'unknown' && !expired);
}

type Status = 'alive' | 'dead' | 'unknown';

/** A process that takes up turns is listed again at least once a minute. One whose state is unknown counts as gone after three. */
const QUIET_MS = 180_000;

export function isThere({ process, quietMs }: Takes, status: (process: ProcessIdentity) => Status): boolean {
  const now = status(process);
  return now === 'alive' || (now === 'unknown' && quietMs < QUIET_MS);
}

/** Whether something that belongs to `place` can run at `here`. */
export function runsAt(place: string, here: string): boolean {
  return place === 'any' || place === here;
}

/** Whether one of these processes takes it up. */
export function isTakenBy(
  { place, turn }: Standing,
  takers: readonly Takes[],
  status: (process: ProcessIdentity) => Status,
) {
  return takers.some(
    (taker) => runsAt(place, taker.place) && taker.agents.includes(turn.agent) && isThere(taker, status),
  );
}

/** A process that takes up what others left. */
export interface Takes {
  readonly place: string;
  readonly agents: readonly string[];
  readonly process: ProcessIdentity;
  /** Since it was listed last. */
  readonly quietMs: number;
}

/** Its holder ended in the middle of a turn, and the end of that turn is not recorded. */
export function isLeftInTheMiddle({ driver, turn }: Standing, held: boolean): boolean {
  return driver === 'worker' && !held && turn.state !== 'queued';
}

function otherHome({ turn, home, place }: Standing, store: string): Stranded {
  return { reason: 'other_home', ...continuable(runsOnlyAt(`Turn ${turn.n}`, { home, place, store })) };
}

/** Where something runs. `home`: the path of the data home; null: not known. `store`: the address of the store that it is in. */
export interface OtherHome {
  readonly home: string | null;
  readonly place: string;
  readonly store: string;
}

/**
 * For something that only processes of another data home run, when there is none. The command names the store: without it, that data home
 * may open another one.
 */
export function runsOnlyAt(what: string, { home, place, store }: OtherHome): { message: string; hint: string } {
  const where = home === null ? `the data home with the place ${place}` : `the data home ${home}`;
  const named = home === null ? '' : ` --home ${shellWord(home)}`;
  return {
    message: `${what} runs only at ${where}, and no process takes it up there.`,
    hint: `Start "throughline serve${named} --store ${shellWord(store)}"${home === null ? ' there' : ''}.`,
  };
}

/** A conversation, and so its turns, can also be continued here. */
export function continuable({ message, hint }: { message: string; hint: string }): { message: string; hint: string } {
  return {
    message,
    hint: `${hint} To continue here, fork the conversation; if that place is gone, move it ("throughline move"): without its files.`,
  };
}

/** Only the program that drives the agent itself knows how the request went. */
function untracked({ turn }: Standing): Stranded {
  return {
    reason: 'no_process',
    message: `The program that tracks turn ${turn.n} has ended or closed its tracker.`,
    hint: 'The turn ends when that program continues it, or as interrupted when it tracks the next request of this conversation.',
  };
}

function noAgent({ turn }: Standing): Stranded {
  return {
    reason: 'no_agent',
    message: `Turn ${turn.n} is for the agent "${turn.agent}", which is not available here, and no other process takes it up.`,
    hint: `Add the agent to the settings, or run "throughline cancel ${turn.id}".`,
  };
}

function noProcess({ turn, key, conversation }: Standing): Stranded {
  const runs = `"throughline serve", a program that opens this data home, or the next "throughline send ${shellWord(key ?? conversation)} …"`;
  if (turn.state === 'queued') {
    return { reason: 'no_process', message: `No process runs turn ${turn.n} now.`, hint: `${runs} runs it.` };
  }
  return {
    reason: 'no_process',
    message: `The process that ran turn ${turn.n} has ended, and the end of the turn could not be recorded.`,
    hint: `${runs} ends it as interrupted.`,
  };
}
