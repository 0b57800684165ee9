import { ThroughlineError } from '../../core/errors.ts';
import type { Agent } from '../../ports/agent.ts';
import type { AgentInfo } from '../../ports/engine.ts';
import type { OpenSandbox, Sandboxes } from '../../ports/sandbox.ts';
import type { EngineParts } from '../parts.ts';
import { askedStarts } from '../starts.ts';

const PROBE_MS = 30_000;
/** How long the result is kept of a probe that started the agent. */
const LOGIN_KEPT_MS = 30_000;
/** Shorter: somebody may be solving the problem. */
const PROBLEM_KEPT_MS = 3_000;

type ListedParts = Pick<EngineParts, 'agents' | 'clock' | 'sandboxes'> & {
  readonly settings: Pick<EngineParts['settings'], 'defaultAgent'>;
};
type State = Omit<AgentInfo, 'name' | 'adapter' | 'isDefault' | 'announced'>;
/** `until`: how long its result is used; infinite while the probe lasts. */
type Probe = { readonly state: Promise<State>; until: number };

/** What people see of the agents. A probe may start the agent's program, so all who ask at the same time, or soon after, share one probe. */
export class AgentList {
  readonly #parts: ListedParts;
  readonly #probes = { plain: new WeakMap<Agent, Probe>(), login: new WeakMap<Agent, Probe>() };

  constructor(parts: ListedParts) {
    this.#parts = parts;
  }

  /** A missing agent is listed with the reason. */
  list({ login = false }: { login?: boolean } = {}): Promise<AgentInfo[]> {
    const { agents, settings } = this.#parts;
    return Promise.all(
      [...agents].map(async ([name, { agent, adapter, announcements }]) => {
        const known = { name, adapter, isDefault: name === settings.defaultAgent };
        return { ...known, ...(await this.#probe(agent, login)), announced: announcements?.last() ?? [] };
      }),
    );
  }

  #probe(agent: Agent, login: boolean): Promise<State> {
    const { clock, sandboxes } = this.#parts;
    const probes = this.#probes[login ? 'login' : 'plain'];
    const known = probes.get(agent);
    if (known !== undefined && clock.monotonic() < known.until) return known.state;
    const probe: Probe = { state: stateOf(agent, sandboxes, login), until: Number.POSITIVE_INFINITY };
    probes.set(agent, probe);
    const keep = (ms: number) => {
      probe.until = clock.monotonic() + ms;
    };
    probe.state.then(
      (state) => keep(keptMs(state)),
      () => keep(0),
    );
    return probe.state;
  }
}

function keptMs({ problem, login }: State): number {
  if (problem !== null || login?.loggedIn === false) return PROBLEM_KEPT_MS;
  // If no login was asked for, the adapter itself remembers the traits.
  return login === null ? 0 : LOGIN_KEPT_MS;
}

async function stateOf(agent: Agent, sandboxes: Sandboxes, withLogin: boolean): Promise<State> {
  const late = AbortSignal.timeout(PROBE_MS);
  try {
    await using sandbox = await sandboxes.probe();
    const login = withLogin ? await loginOf(agent, sandbox, late) : null;
    const traits = await agent.traits(sandbox, late);
    const where = (await agent.where?.(sandbox)) ?? null;
    return { where, traits, problem: (await agent.doubt?.(sandbox)) ?? null, login };
  } catch (error) {
    if (!(error instanceof ThroughlineError)) throw error;
    const said = late.aborted ? `It did not answer within ${PROBE_MS / 1_000} seconds.` : error.message;
    return { where: null, traits: null, problem: error.hint ? `${said} ${error.hint}` : said, login: null };
  }
}

async function loginOf(agent: Agent, sandbox: OpenSandbox, late: AbortSignal): Promise<State['login']> {
  const login = agent.login?.bind(agent);
  return login === undefined ? null : askedStarts.run(late, () => login(sandbox, late));
}
