import type { Engine } from 'throughline/client';
import { given } from '../../../../src/core/input/arguments.ts';

type SubmitOptions = NonNullable<Parameters<Engine['submit']>[2]>;

/** What somebody chose for the next prompt. For the rest, the conversation, the settings and the agent decide. */
export interface NextTurn extends Pick<SubmitOptions, 'agent' | 'model' | 'mode' | 'config' | 'restore' | 'limits'> {
  /** The agent to which `model`, `mode` and `config` belong: another agent has other names. */
  readonly of?: string;
}

/** The options of the next prompt. `agent`: who answers if none is chosen. */
export function submitOptions(next: NextTurn, agent: string | null): SubmitOptions {
  const { of, agent: chosen, model, mode, config, restore, limits } = next;
  const answering = chosen ?? agent;
  const named = of === undefined || of === answering ? { model, mode, config } : {};
  const handoff = chosen !== undefined && chosen !== agent ? { agent: chosen } : {};
  return given({ ...handoff, ...named, restore, limits });
}

/** What stays chosen after a prompt was accepted: model, mode and config. The restore and the limits were for that turn only. */
export function afterSending({ of, model, mode, config }: NextTurn): NextTurn {
  return given({ of, model, mode, config });
}

/** Undefined removes a choice. */
export type ChoiceChange = { readonly [Name in keyof NextTurn]?: NextTurn[Name] | undefined };

export function changeChoice(next: NextTurn, change: ChoiceChange): NextTurn {
  return given({ ...next, ...change }) as NextTurn;
}

/** Chooses another agent; null: the one that answers without a choice. Model, mode and config are removed. */
export function chooseAgent({ restore, limits }: NextTurn, agent: string | null): NextTurn {
  return given({ ...(agent !== null && { agent, of: agent }), restore, limits });
}
