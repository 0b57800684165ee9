import { isObject } from '../../core/content.ts';
import { ThroughlineError } from '../../core/errors.ts';

/** How the scripted agent behaves, and misbehaves. The defaults make a well-behaved agent. */
export interface ScriptedOptions {
  /** Who names a session: the agent, the caller, or the agent anew with every prompt. */
  readonly ids: 'issued' | 'assigned' | 'rotating';
  /** The agent tells a new session's id only with its first answer. */
  readonly nameLate: boolean;
  /** An assigned id that has a session already is refused. False: that session is silently begun anew. */
  readonly refuseUsedIds: boolean;
  /** `process`: a session is forgotten when its process ends. */
  readonly memory: 'disk' | 'process';
  /** `hollow`: says yes to any id and knows nothing of it. `none`: cannot. */
  readonly resume: 'real' | 'hollow' | 'none';
  /** With rotating ids: what the old session knew is not carried into the new one. */
  readonly hollowRotation: boolean;
  /** A session is found only from the working directory it was made in. */
  readonly tied: boolean;
  /** For so long after a turn the session is locked: it can be neither resumed nor prompted. */
  readonly lockMs: number;
  /** Whether the adapter reads the storage back. */
  readonly position: boolean;
  /** Has a profile in which no tool runs. */
  readonly noTools: boolean;
  /** That profile can be ended in a session that is open. False: only by opening it again without. */
  readonly toolsInPlace: boolean;
  /** The window in tokens. */
  readonly window: number;
  /** Answers come word by word, so far apart; 0: at once. */
  readonly chunkMs: number;
  /** Opening takes at least so long. */
  readonly startMs: number;
  /** A longer prompt is refused as too long; null: none is. */
  readonly maxPromptTokens: number | null;
  /** The process goes on when its input ends, and finishes its turn. */
  readonly survives: boolean;
  /** The process stays when its input ends while it waits for a prompt. */
  readonly lingers: boolean;
  /** How long the agent may take to obey a cancel before it is killed. */
  readonly cancelGraceMs: number;
  /** Where sessions are kept; null: in the sandbox's own state. A relative one lies there, too. */
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
/** Options whose default is null, and what they are when they are set. */
const NULLABLE: { readonly [name: string]: string } = { maxPromptTokens: 'number', dir: 'string' };

/** Fills in the defaults. Throws `invalid` that names the option and what it may be. */
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
