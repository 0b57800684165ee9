import { MARK } from './marked.ts';

/** Agents that react to kills in different ways. */
const OPTIONS = {
  plain: {},
  /** Continues its turn, tools included, when the worker that started it was killed. */
  survivor: { survives: true },
  /** Waits for a prompt, also when its worker was killed. */
  lingerer: { lingers: true },
  /** Forgets when its process ends. */
  forgetful: { memory: 'process' },
  /** Changes its session id with every prompt, and reports it late. */
  rotating: { ids: 'rotating', nameLate: true },
  /** Takes the id that we choose, and survives. */
  assigned: { ids: 'assigned', survives: true },
} as const;

export type AgentName = keyof typeof OPTIONS;
/** Those that end by themselves when everything that could end them was killed. */
export const MORTALS = (Object.keys(OPTIONS) as AgentName[]).filter((name) => name !== 'lingerer');

interface AgentSettings {
  readonly adapter: 'scripted';
  readonly options: Readonly<Record<string, unknown>>;
  readonly env: Readonly<Record<string, string>>;
}

export function settingsFor(mark: string): { agents: Record<string, AgentSettings>; defaultAgent: string } {
  const agents: Record<string, AgentSettings> = {};
  for (const [name, options] of Object.entries(OPTIONS)) {
    agents[name] = { adapter: 'scripted', options, env: { [MARK]: mark } };
  }
  return { agents, defaultAgent: 'plain' };
}
