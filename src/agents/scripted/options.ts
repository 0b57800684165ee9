import { about, checked, flag, type Output, object, oneOf, orNull, value } from '../../core/input/schema.ts';
import { parseOptions } from '../../core/input/settings.ts';
import { anyText } from '../shared/mcp-servers.ts';

const amount = value<number>(
  (one) => typeof one === 'number' && Number.isFinite(one) && one >= 0,
  'a number, 0 or more',
  { type: 'number', minimum: 0 },
);

/** What `options` of a scripted agent may hold: its behaviour, and its faults. */
export const SCRIPTED_OPTIONS = checked(
  object({
    ids: about(
      'Who chooses the id of a session. `issued`: the agent. `assigned`: the caller. `rotating`: the agent, a new id with every prompt.',
      oneOf(['issued', 'assigned', 'rotating']),
    ),
    nameLate: about('The agent reports the id of a new session only with its first answer.', flag),
    refuseUsedIds: about(
      'An assigned id that is in use is refused. False: its session is silently replaced by an empty one.',
      flag,
    ),
    memory: about('`process`: a session is forgotten when its process ends.', oneOf(['disk', 'process'])),
    resume: about(
      '`hollow`: resumes any id, without its context. `none`: cannot resume.',
      oneOf(['real', 'hollow', 'none']),
    ),
    hollowRotation: about('With rotating ids: the new session does not know what the old one knew.', flag),
    tied: about('A session is found only from the working directory in which it was created.', flag),
    lockMs: about('For this long after a turn the session is locked: it can be neither resumed nor prompted.', amount),
    position: about('Whether the adapter reads the storage.', flag),
    noTools: about('There is a profile in which no tool runs.', flag),
    toolsInPlace: about(
      'That profile can be ended in an open session. False: only by opening the session again without it.',
      flag,
    ),
    window: about('The window in tokens.', amount),
    chunkMs: about('The time between the words of an answer; 0: it comes at once.', amount),
    startMs: about('Opening takes at least this long.', amount),
    maxPromptTokens: about('A longer prompt is refused; null: no limit.', orNull(amount)),
    survives: about('When its input ends during a turn, the process finishes the turn.', flag),
    lingers: about('When its input ends while it waits for a prompt, the process does not exit.', flag),
    cancelGraceMs: about('How long the agent may take to stop after a cancel before it is killed.', amount),
    dir: about(
      "Where sessions are kept, relative to the sandbox's state directory; null: in a folder of their own there.",
      orNull(anyText),
    ),
  }),
  ({ ids, hollowRotation, nameLate }) => {
    if (hollowRotation && ids !== 'rotating') return { says: 'the option "hollowRotation" needs "ids": "rotating"' };
    if (nameLate && ids === 'assigned') return { says: 'the option "nameLate" is not possible with assigned ids' };
    return null;
  },
);

export type ScriptedOptions = Required<Output<typeof SCRIPTED_OPTIONS>>;

/** An agent without faults. */
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

/** Fills in the defaults. Throws `invalid` with the option and its valid values. */
export function parseScriptedOptions(agent: string, input: unknown): ScriptedOptions {
  return { ...SCRIPTED_DEFAULTS, ...parseOptions(SCRIPTED_OPTIONS, agent, input) };
}
