import { given } from '../input/arguments.ts';
import { about, byName, type Input, invalidValue, object, orNull, text, value } from '../input/schema.ts';

/** The value of one of an agent's config options. */
export const CONFIG_VALUE = value<string | boolean>(
  (one) => typeof one === 'boolean' || (typeof one === 'string' && one !== ''),
  'a non-empty text, or true or false',
  { anyOf: [{ type: 'string', minLength: 1 }, { type: 'boolean' }] },
);

/**
 * What a caller chose for the prompts of an agent. A turn's choice beats its conversation's, which beats the agent's in the settings
 * (R7). A choice that is left out is taken from the next level, and at last from the agent itself.
 */
export interface Choices {
  readonly model?: string;
  readonly mode?: string;
  /** Config options of the agent, by their id. */
  readonly config?: Readonly<Record<string, string | boolean>>;
}

/** The choices of a conversation, and the agent that they are for: another agent has other names. Empty: nothing. */
export interface KeptChoices extends Choices {
  readonly agent?: string;
}

const CHANGE = object({
  model: about('Null: removes the choice.', orNull(text)),
  mode: about('Null: removes the choice.', orNull(text)),
  config: about('Replaces all earlier choices. Null: removes them.', orNull(byName(CONFIG_VALUE))),
});

/** A change of the choices of a conversation. Null removes a choice; what is left out stays. */
export type ChoicesChange = Input<typeof CHANGE>;

type Given = { readonly [Name in keyof Choices]?: unknown };

/** The choices for one turn. Throws `invalid`. */
export function parseChoices({ model, mode, config }: Given): Choices {
  return applyChange({}, readChange({ model, mode, config }));
}

/** What a conversation has chosen after a change. Throws `invalid`. */
export function changeChoices(kept: KeptChoices, { model, mode, config }: Given, agent: string | null): KeptChoices {
  const change = readChange({ model, mode, config });
  // The names of one agent are not valid for another.
  const below = kept.agent === undefined || kept.agent === agent ? kept : {};
  const { agent: _, ...chosen } = applyChange(below, change) as KeptChoices;
  return isEmpty(chosen) || agent === null ? chosen : { ...chosen, agent };
}

function readChange(input: Given) {
  return CHANGE.read(input, [], invalidValue());
}

function applyChange(below: Choices, change: ReturnType<typeof readChange>): Choices {
  const merged = Object.entries({ ...below, ...change }).filter(([, one]) => one !== null && !isEmpty(one));
  return Object.fromEntries(merged);
}

function isEmpty(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.keys(value).length === 0;
}

/** Those that apply to a turn of this agent; undefined: none. */
export function keptFor({ agent: of, ...choices }: KeptChoices, agent: string): Choices | undefined {
  return isEmpty(choices) || (of !== undefined && of !== agent) ? undefined : choices;
}

/** What is chosen in the options of a turn: its own, and by its conversation. */
export function choicesOf({ model, mode, config, kept }: Choices & { readonly kept?: Choices }) {
  return given({ model, mode, config, kept });
}

/** `above` wins, also for each config option. */
export function mergeChoices(below: Choices = {}, above: Choices = {}): Choices {
  const config = { ...below.config, ...above.config };
  return { ...below, ...above, ...(isEmpty(config) ? {} : { config }) };
}

/** Why an agent without any choices cannot take one. */
export const NOTHING_TO_CHOOSE = 'this agent has no model, mode or config options to choose';

/** What to do about choices that an agent does not have. `kept`: those of the conversation. `hasOthers`: the agent has other values. */
export function howToChoose(own: Choices, kept: Choices = {}, hasOthers = true): string {
  const names = (choices: Choices) =>
    Object.keys(choices)
      .map((name) => (name === 'config' ? '"config" (--set)' : `"${name}"`)) // the other flags have the names of the choices
      .join(' and ');
  const value = hasOthers ? 'Choose another value, or leave' : 'Leave';
  return [
    'Nothing was sent.',
    ...(isEmpty(own) ? [] : [`${value} out ${names(own)}.`]),
    ...(isEmpty(kept) ? [] : [`Change or remove ${names(kept)} of the conversation.`]),
  ].join(' ');
}
