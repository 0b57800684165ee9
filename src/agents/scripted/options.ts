import { ThroughlineError } from '../../core/errors.ts';
import { isObject } from '../../core/turn/content.ts';

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

const CHOICES: { readonly [name: string]: readonly string[] } = {
  ids: ['issued', 'assigned', 'rotating'],
  memory: ['disk', 'process'],
  resume: ['real', 'hollow', 'none'],
};
/** The types of options whose default is null. */
const NULLABLE: { readonly [name: string]: string } = { maxPromptTokens: 'number', dir: 'string' };

/** Fills in the defaults. Throws `invalid` with the option and its valid values. */
export function parseScriptedOptions(input: unknown): ScriptedOptions {
  if (input === undefined || input === null) return SCRIPTED_DEFAULTS;
  if (!isObject(input)) throw invalid('the options are an object');
  for (const [name, value] of Object.entries(input)) checkOption(name, value);
  const options = { ...SCRIPTED_DEFAULTS, ...input };
  if (options.hollowRotation && options.ids !== 'rotating') throw invalid('"hollowRotation" needs "ids": "rotating"');
  if (options.nameLate && options.ids === 'assigned') throw invalid('"nameLate" is not possible with assigned ids');
  return options;
}

function checkOption(name: string, value: unknown): void {
  if (!Object.hasOwn(SCRIPTED_DEFAULTS, name)) {
    throw invalid(`there is no option "${name}"; known are ${Object.keys(SCRIPTED_DEFAULTS).join(', ')}`);
  }
  const choices = CHOICES[name];
  if (choices !== undefined) {
    if (!choices.includes(value as string)) throw invalid(`"${name}" is one of ${choices.join(', ')}`);
    return;
  }
  const nullable = NULLABLE[name];
  if (nullable !== undefined && value === null) return;
  const type = nullable ?? typeof SCRIPTED_DEFAULTS[name as keyof ScriptedOptions];
  const negative = typeof value === 'number' && !(value >= 0 && Number.isFinite(value));
  if (typeof value !== type || negative)
    throw invalid(`"${name}" is a ${type === 'number' ? 'number from 0 on' : type}`);
}

function invalid(message: string): ThroughlineError {
  return new ThroughlineError('invalid', `The scripted agent's settings: ${message}.`);
}
