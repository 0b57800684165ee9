import type { Failure } from '../errors.ts';
import { about, invalidValue, type Output, object, orNull, value } from '../input/schema.ts';

/** How long a turn may take, in seconds. Null: no limit. The time that a permission question waits does not count. */
export interface TimeLimits {
  /** From the moment that a worker begins the turn, including the restore. */
  readonly turnSeconds: number | null;
  /** The turn is ended when the agent has sent nothing for so long: no update, no question, no report of any kind. */
  readonly stallSeconds: number | null;
  /** An event reports that the agent has sent nothing for so long. */
  readonly noticeSeconds: number | null;
}

/** Some tools are silent for long, and are no reason to end a turn: a build, a test suite. */
export const DEFAULT_TIME_LIMITS: TimeLimits = { turnSeconds: null, stallSeconds: 1_800, noticeSeconds: 120 };

const seconds = orNull(
  value<number>((one) => typeof one === 'number' && Number.isFinite(one) && one > 0, 'a number of seconds above 0', {
    type: 'number',
    exclusiveMinimum: 0,
  }),
);

/** What a caller may set, in seconds; null: no limit. A limit that is left out is taken from the next level (turn, agent, settings, default). */
export const TIMES = {
  turnSeconds: about('The turn is ended when it takes longer. Default: no limit.', seconds),
  stallSeconds: about('The turn is ended when the agent sends nothing for so long. Default 1800.', seconds),
  noticeSeconds: about('An event reports that the agent sends nothing for so long. Default 120.', seconds),
} satisfies Record<keyof TimeLimits, unknown>;
const TURN_TIMES = object(TIMES);
export type TimeOverride = Output<typeof TURN_TIMES>;

export function effectiveTimes(settings: TimeLimits, agent: TimeOverride = {}, turn: TimeOverride = {}): TimeLimits {
  return { ...settings, ...agent, ...turn };
}

/** Checks what a caller sets for a turn. Throws `invalid` and names the fault. */
export function parseTimes(input: unknown): TimeOverride {
  return TURN_TIMES.read(input, ['limits'], invalidValue());
}

/** How long a turn has taken, in milliseconds, without the time that questions waited. */
export interface Passed {
  readonly sinceBegin: number;
  readonly sinceHeard: number;
  /** An event has reported the silence already. */
  readonly noticed: boolean;
}

export type TimeVerdict =
  /** Nothing is due before so many milliseconds; null: nothing ever is. */
  | { readonly due: 'nothing'; readonly inMs: number | null }
  /** `endsInMs`: when the turn is ended if nothing comes; null: never. */
  | { readonly due: 'notice'; readonly endsInMs: number | null }
  | { readonly due: 'end'; readonly failure: Failure };

/** What to do about a turn that has taken so long. `tool`: the one that it runs; null: none. */
export function judgeTime(limits: TimeLimits, passed: Passed, tool: string | null): TimeVerdict {
  const left = (seconds: number | null, ms: number) => (seconds === null ? null : seconds * 1000 - ms);
  const turn = left(limits.turnSeconds, passed.sinceBegin);
  const stall = left(limits.stallSeconds, passed.sinceHeard);
  const notice = passed.noticed ? null : left(limits.noticeSeconds, passed.sinceHeard);
  if (turn !== null && turn <= 0) return { due: 'end', failure: timedOut(limits.turnSeconds) };
  if (stall !== null && stall <= 0) return { due: 'end', failure: stalled(limits.stallSeconds, tool) };
  const ends = [turn, stall].filter((ms) => ms !== null);
  const endsInMs = ends.length === 0 ? null : Math.min(...ends);
  if (notice !== null && notice <= 0) return { due: 'notice', endsInMs };
  const next = [...ends, ...(notice === null ? [] : [notice])];
  return { due: 'nothing', inMs: next.length === 0 ? null : Math.min(...next) };
}

const RAISE = 'with the turn (limits), in agents.NAME.limits or in limits of the settings';

/** "1 second", "90 seconds". */
export function inSeconds(count: number | null): string {
  return `${count} ${count === 1 ? 'second' : 'seconds'}`;
}

function timedOut(seconds: number | null): Failure {
  return {
    code: 'timed_out',
    message: `The turn took longer than its limit of ${inSeconds(seconds)} and was ended.`,
    hint: `What it did is kept. "throughline retry KEY" sends the prompt again. Raise turnSeconds (--time-limit) ${RAISE}.`,
  };
}

function stalled(seconds: number | null, tool: string | null): Failure {
  const during = tool === null ? '' : ` while it ran ${tool}`;
  return {
    code: 'stalled',
    message: `The agent sent nothing for ${inSeconds(seconds)}${during}, and the turn was ended.`,
    hint: `What it did is kept. "throughline retry KEY" sends the prompt again. For tools that are silent for longer, raise stallSeconds (--stall-limit) ${RAISE}.`,
  };
}
