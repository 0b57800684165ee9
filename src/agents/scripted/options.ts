import { checked, flag, object, oneOf, orNull, value } from '../../core/input/schema.ts';
import { parseOptions } from '../../core/input/settings.ts';

/** The behaviour of the scripted agent, and its faults. The defaults make an agent without faults. */
export interface ScriptedOptions {
  /** Who chooses a session's id: the agent, the caller, or the agent, a new one with every prompt. */
  readonly ids: 'issued' | 'assigned' | 'rotating';
  /** The agent reports the id of a new session only with its first answer. */
  readonly nameLate: boolean;
  /** An assigned id that is in use is refused. False: its session is silently replaced by an empty one. */
  readonly refuseUsedIds: boolean;
  /** `process`: a session is forgotten when its process ends. */
  readonly memory: 'disk' | 'process';
  /** `hollow`: resumes any id, without its context. `none`: cannot resume. */
  readonly resume: 'real' | 'hollow' | 'none';
  /** With rotating ids: the new session does not know what the old one knew. */
  readonly hollowRotation: boolean;
  /** A session is found only from the working directory in which it was created. */
  readonly tied: boolean;
  /** For this long after a turn the session is locked: it can be neither resumed nor prompted. */
  readonly lockMs: number;
  /** Whether the adapter reads the storage. */
  readonly position: boolean;
  /** There is a profile in which no tool runs. */
  readonly noTools: boolean;
  /** That profile can be ended in an open session. False: only by opening the session again without it. */
  readonly toolsInPlace: boolean;
  /** The window in tokens. */
  readonly window: number;
  /** The time between the words of an answer; 0: it comes at once. */
  readonly chunkMs: number;
  /** Opening takes at least this long. */
  readonly startMs: number;
  /** A longer prompt is refused; null: none is. */
  readonly maxPromptTokens: number | null;
  /** When its input ends during a turn, the process finishes the turn. */
  readonly survives: boolean;
  /** When its input ends while it waits for a prompt, the process does not exit. */
  readonly lingers: boolean;
  /** How long the agent may take to stop after a cancel before it is killed. */
  readonly cancelGraceMs: number;
  /** Where sessions are kept, relative to the sandbox's state directory; null: in a folder of their own there. */
  readonly dir: string | null;
}

export const SCRIPTED_DEFAULTS: ScriptedOptions = {
  ids: 'issued',
  nameLate: false,
  refuseUsedIds: true,
  memory: 'disk',
  resume: 'real',
  hollowRotation: false,
  tied: false,
  lockMs: 0,
  position: true,
  noTools: true,
  toolsInPlace: true,
  window: 100_000,
  chunkMs: 0,
  startMs: 0,
  maxPromptTokens: null,
  survives: false,
  lingers: false,
  cancelGraceMs: 2_000,
  dir: null,
};

const amount = value<number>(
  (one) => typeof one === 'number' && Number.isFinite(one) && one >= 0,
  'a number, 0 or more',
  { type: 'number', minimum: 0 },
);

/** What `options` of a scripted agent may hold; each is described above. */
export const SCRIPTED_OPTIONS = checked(
  object({
    ids: oneOf(['issued', 'assigned', 'rotating']),
    nameLate: flag,
    refuseUsedIds: flag,
    memory: oneOf(['disk', 'process']),
    resume: oneOf(['real', 'hollow', 'none']),
    hollowRotation: flag,
    tied: flag,
    lockMs: amount,
    position: flag,
    noTools: flag,
    toolsInPlace: flag,
    window: amount,
    chunkMs: amount,
    startMs: amount,
    maxPromptTokens: orNull(amount),
    survives: flag,
    lingers: flag,
    cancelGraceMs: amount,
    dir: orNull(value<string>((one) => typeof one === 'string', 'a text', { type: 'string' })),
  } satisfies Record<keyof ScriptedOptions, unknown>),
  ({ ids, hollowRotation, nameLate }) => {
    if (hollowRotation && ids !== 'rotating') return { says: 'the option "hollowRotation" needs "ids": "rotating"' };
    if (nameLate && ids === 'assigned') return { says: 'the option "nameLate" is not possible with assigned ids' };
    return null;
  },
);

/** Fills in the defaults. Throws `invalid` with the option and its valid values. */
export function parseScriptedOptions(agent: string, input: unknown): ScriptedOptions {
  return { ...SCRIPTED_DEFAULTS, ...parseOptions(SCRIPTED_OPTIONS, agent, input) };
}
