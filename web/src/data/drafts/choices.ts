import type { Engine } from 'throughline/client';
import { given } from '../../../../src/core/input/arguments.ts';

type SubmitOptions = NonNullable<Parameters<Engine['submit']>[2]>;

/** What somebody chose for the next prompt. What is left out is as the conversation, the settings and the agent have it. */
export interface NextTurn extends Pick<SubmitOptions, 'agent' | 'model' | 'mode' | 'config' | 'restore' | 'limits'> {
  /** The agent that `model`, `mode` and `config` are names of: another one has other names. */
  readonly of?: string;
}

/** What goes with the prompt. `agent`: who would answer without a choice. */
export function submitOptions(next: NextTurn, agent: string | null): SubmitOptions {
  const { of, agent: chosen, model, mode, config, restore, limits } = next;
  const answering = chosen ?? agent;
  const named = of === undefined || of === answering ? { model, mode, config } : {};
  const handoff = chosen !== undefined && chosen !== agent ? { agent: chosen } : {};
  return given({ ...handoff, ...named, restore, limits });
}

/** What is still chosen after a prompt was accepted: names of its agent. The way to restore, and limits, were for that one turn. */
export function afterSending({ of, model, mode, config }: NextTurn): NextTurn {
  return given({ of, model, mode, config });
}

/** Undefined: no longer chosen. */
export type ChoiceChange = { readonly [Name in keyof NextTurn]?: NextTurn[Name] | undefined };

export function changeChoice(next: NextTurn, change: ChoiceChange): NextTurn {
  return given({ ...next, ...change }) as NextTurn;
}

/** Another agent, with nothing else chosen for it. */
export function chooseAgent({ restore, limits }: NextTurn, agent: string | null): NextTurn {
  return given({ ...(agent !== null && { agent, of: agent }), restore, limits });
}
