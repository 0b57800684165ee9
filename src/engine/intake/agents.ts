import { ThroughlineError } from '../../core/errors.ts';
import type { Agent } from '../../ports/agent.ts';
import type { AgentInfo } from '../../ports/engine.ts';
import type { OpenSandbox, Sandboxes } from '../../ports/sandbox.ts';
import type { EngineParts } from '../parts.ts';
import { askedStarts } from '../starts.ts';

const PROBE_MS = 30_000;
/** How long an answer is kept for which an agent was started. One that names a problem is kept for less: somebody may be solving it. */
const LOGIN_KEPT_MS = 30_000;
const PROBLEM_KEPT_MS = 3_000;

type ListedParts = Pick<EngineParts, 'agents' | 'clock' | 'sandboxes'> & {
  readonly settings: Pick<EngineParts['settings'], 'defaultAgent'>;
};
type State = Omit<AgentInfo, 'name' | 'adapter' | 'isDefault'>;
/** `until`: infinite while the look lasts. */
type Look = { readonly state: Promise<State>; until: number };

/**
 * What people see of the agents. To look at an agent may start its program, so however many ask, an agent is looked at once at a time:
 * everybody gets that answer, and those who ask soon after get it as well.
 */
export class AgentList {
  readonly #parts: ListedParts;
  readonly #looks = { plain: new WeakMap<Agent, Look>(), login: new WeakMap<Agent, Look>() };

  constructor(parts: ListedParts) {
    this.#parts = parts;
  }

  /** A missing agent is listed with the reason. */
  list({ login = false }: { login?: boolean } = {}): Promise<AgentInfo[]> {
    const { agents, settings } = this.#parts;
    return Promise.all(
      [...agents].map(async ([name, { agent, adapter }]) => {
        const known = { name, adapter, isDefault: name === settings.defaultAgent };
        return { ...known, ...(await this.#look(agent, login)) };
      }),
    );
  }

  #look(agent: Agent, login: boolean): Promise<State> {
    const looks = this.#looks[login ? 'login' : 'plain'];
    const known = looks.get(agent);
    if (known !== undefined && this.#now() < known.until) return known.state;
    const look: Look = { state: stateOf(agent, this.#parts.sandboxes, login), until: Number.POSITIVE_INFINITY };
    looks.set(agent, look);
    const keep = (ms: number) => {
      look.until = this.#now() + ms;
    };
    look.state.then(
      (state) => keep(keptMs(state)),
      () => keep(0),
    );
    return look.state;
  }

  #now(): number {
    return this.#parts.clock.monotonic();
  }
}

function keptMs({ problem, login }: State): number {
  if (problem !== null || login?.loggedIn === false) return PROBLEM_KEPT_MS;
  // Without a login, its adapter remembers what it has seen.
  return login === null ? 0 : LOGIN_KEPT_MS;
}

async function stateOf(agent: Agent, sandboxes: Sandboxes, asked: boolean): Promise<State> {
  const late = AbortSignal.timeout(PROBE_MS);
  try {
    await using sandbox = await sandboxes.probe();
    const login = asked ? await loginOf(agent, sandbox, late) : null;
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
  if (agent.login === undefined) return null;
  const begun = await askedStarts.begin(late);
  return agent.login(sandbox, late).finally(begun);
}
