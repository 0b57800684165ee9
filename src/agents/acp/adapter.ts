import { ThroughlineError } from '../../core/errors.ts';
import type { SessionHistory } from '../../core/restore/adopted.ts';
import type { AgentTraits } from '../../core/restore/traits.ts';
import type { Agent, Login, NativeSession, Opened, OpenRequest, ProgramStart } from '../../ports/agent.ts';
import type { Clock } from '../../ports/clock.ts';
import type { OpenSandbox } from '../../ports/sandbox.ts';
import { inheritedVariables } from '../shared/programs.ts';
import type { AgentProgram } from './known/description.ts';
import { type FindSettings, findAgent } from './known/find.ts';
import { KNOWN_AGENTS, profileOf, quirksOf, storageName } from './known/known.ts';
import { AgentMemory, fingerprintOf, type Learnt, whyNotReopened } from './known/memory.ts';
import { parseAcpOptions } from './options.ts';

interface AcpSettings extends Pick<FindSettings, 'command' | 'package' | 'installed'> {
  readonly name: string;
  readonly model?: string | undefined;
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** Our environment, of which an agent gets the variables that it needs. Left out: that of this process. */
  readonly ours?: NodeJS.ProcessEnv;
  /** A part of `AcpOptions`, as the settings have it; checked here. */
  readonly options?: Readonly<Record<string, unknown>> | undefined;
  /** A folder of our own for what was learnt about agents. */
  readonly memory: string;
  readonly clock: Clock;
}

/** In tokens, for agents that do not report it. Today's models have at least this. */
const WINDOW = 128_000;

/** Any program that speaks the Agent Client Protocol. Throws `invalid` for options that do not exist. */
export function acpAgent(settings: AcpSettings): Agent {
  const options = parseAcpOptions(settings.name, settings.options);
  const knownAs = options.agent ?? (Object.hasOwn(KNOWN_AGENTS, settings.name) ? settings.name : null);
  if (options.agent !== null && !Object.hasOwn(KNOWN_AGENTS, options.agent)) {
    throw new ThroughlineError('invalid', `No agent is known by the name "${options.agent}".`, {
      hint: `Known agents: ${Object.keys(KNOWN_AGENTS).join(', ')}. Any other agent needs a "command".`,
    });
  }
  const known = knownAs === null ? null : (KNOWN_AGENTS[knownAs] ?? null);
  return new AcpAgent(settings, {
    name: settings.name,
    options,
    env: {
      ...known?.defaults,
      ...inheritedVariables(known?.variables ?? [], settings.ours ?? process.env),
      ...settings.env,
    },
    ownCommand: settings.command !== undefined,
    login: known?.login ?? 'see its own documentation',
    knownAs,
    model: settings.model ?? null,
  });
}

/** Files that use the protocol's SDK are imported on demand, so that an agent that is only named in the settings costs nothing. */
class AcpAgent implements Agent {
  readonly name: string;
  readonly #settings: AcpSettings;
  readonly #setup: Omit<AgentProgram, 'command' | 'memory'>;
  /** What was learnt about the program that was found last, by the host of the sandbox where it was found. */
  readonly #memories = new Map<string, AgentMemory>();
  readonly #probing = new Map<string, Probe>();

  constructor(settings: AcpSettings, setup: Omit<AgentProgram, 'command' | 'memory'>) {
    this.name = settings.name;
    this.#settings = settings;
    this.#setup = setup;
  }

  async howToAllow(): Promise<string> {
    return '"options": {"mode": …} (the modes are the agent\'s own; docs/acp.md)';
  }

  async traits(sandbox: OpenSandbox, signal?: AbortSignal): Promise<AgentTraits> {
    const { options } = this.#setup;
    const learnt = await this.#learn(sandbox, signal);
    const trusted = whyNotReopened(learnt) === null;
    const profile = await profileOf(learnt, this.#setup, sandbox);
    const reopens = trusted && (learnt.load || learnt.resume);
    const window = Object.hasOwn(learnt.windows, this.name) ? learnt.windows[this.name] : undefined;
    return {
      version: `${learnt.name} ${learnt.version}`,
      id: 'issued',
      resume: trusted && learnt.resume,
      load: trusted && learnt.load,
      list: learnt.list,
      rehydrate: false,
      // A profile that ends only with the session is useless for an agent that cannot open the session again.
      noTools: profile !== null && (reopens || (profile.kind === 'mode' && options.mcpServers.length === 0)),
      position: false,
      rewind: false,
      images: learnt.image,
      window: options.window ?? window ?? WINDOW,
      windowFrom: options.window !== null ? 'setting' : window === undefined ? 'assumed' : 'reported',
    };
  }

  async where(sandbox: OpenSandbox): Promise<string> {
    return (await this.#find(sandbox)).where;
  }

  async doubt(sandbox: OpenSandbox): Promise<string | null> {
    const learnt = await this.#learn(sandbox);
    const missing = whyNotReopened(learnt);
    if (missing === null) return quirksOf(learnt.name, this.#setup.knownAs).outdated?.(learnt) ?? null;
    const { file } = (await this.#program(sandbox)).memory;
    return `It opens sessions without their history (${missing}), so it is no longer asked to open one again. To try again, delete ${file}.`;
  }

  async login(sandbox: OpenSandbox, signal: AbortSignal): Promise<Login> {
    const program = await this.#program(sandbox);
    const { loginOf } = await import('./open/probe.ts');
    return loginOf(program, sandbox, signal);
  }

  async list(sandbox: OpenSandbox, signal: AbortSignal): Promise<NativeSession[] | null> {
    const program = await this.#program(sandbox);
    const { listSessions } = await import('./open/probe.ts');
    return listSessions(program, sandbox, signal);
  }

  async program(sandbox: OpenSandbox): Promise<ProgramStart> {
    const { command } = await this.#find(sandbox);
    return { command, env: this.#setup.env };
  }

  async open(request: OpenRequest): Promise<Opened> {
    const program = await this.#program(request.sandbox);
    const { openSession } = await import('./open/open.ts');
    return openSession(request, program);
  }

  async storage(sandbox: OpenSandbox): Promise<string> {
    const { name } = await this.#learn(sandbox);
    // Only an agent that does not give its name is identified by its command. On another machine, looking for the command takes a while.
    const { command } = name === 'unknown' ? await this.#find(sandbox) : { command: [] };
    return storageName({ ...this.#setup, command }, name, sandbox);
  }

  async history(sessionId: string, sandbox: OpenSandbox, signal: AbortSignal): Promise<SessionHistory | null> {
    const learnt = await this.#learn(sandbox);
    if (!learnt.load || whyNotReopened(learnt) !== null) return null;
    const program = await this.#program(sandbox);
    const { readHistory } = await import('./open/history.ts');
    return readHistory(sessionId, sandbox, signal, program, this.#settings.clock);
  }

  /** The protocol has no way to read an agent's storage. */
  async position(): Promise<null> {
    return null;
  }

  async tail(): Promise<null> {
    return null;
  }

  async #find(sandbox: OpenSandbox) {
    const { env, knownAs } = this.#setup;
    const { command, package: folder, installed } = this.#settings;
    const found = await findAgent({ known: knownAs, path: env.PATH, command, package: folder, installed }, sandbox);
    if ('command' in found) return found;
    throw new ThroughlineError('agent_unavailable', `${this.name}: ${found.problem}.`, { hint: found.hint });
  }

  /** Looks for the program. Throws `agent_unavailable`. */
  async #program(sandbox: OpenSandbox): Promise<AgentProgram> {
    const { command } = await this.#find(sandbox);
    const fresh = new AgentMemory(this.#settings.memory, await fingerprintOf(command, sandbox));
    const known = this.#memories.get(sandbox.host);
    const memory = known?.file === fresh.file ? known : fresh;
    this.#memories.set(sandbox.host, memory);
    return { ...this.#setup, command, memory };
  }

  async #learn(sandbox: OpenSandbox, signal?: AbortSignal): Promise<Learnt> {
    const { host } = sandbox;
    // Every turn asks for this. The program is looked for again when it is started, not while it runs.
    const known = this.#memories.get(host)?.learnt;
    if (known) return known;
    const program = await this.#program(sandbox);
    if (program.memory.learnt !== null) return program.memory.learnt;
    const probe = this.#probing.get(host) ?? this.#probe(program, sandbox);
    return awaited(probe, signal);
  }

  #probe(program: AgentProgram, sandbox: OpenSandbox): Probe {
    const stop = new AbortController();
    const look = async () => {
      const { probing } = await import('./open/probe.ts');
      return probing(program, sandbox, async ({ can }) => can, { signal: stop.signal });
    };
    const forget = () => {
      if (this.#probing.get(sandbox.host) === probe) this.#probing.delete(sandbox.host);
    };
    const end = () => {
      forget(); // later callers start a probe of their own
      stop.abort();
    };
    const probe: Probe = { learnt: look().finally(forget), end, waiting: 0 };
    this.#probing.set(sandbox.host, probe);
    return probe;
  }
}

/** One look at what the program can do, shared by all callers that ask meanwhile. */
interface Probe {
  readonly learnt: Promise<Learnt>;
  /** Ends the program that was started. */
  end(): void;
  waiting: number;
}

/** Waits for the probe. A caller that stops waiting does not end it for the others; the last one ends it, and waits for that. */
async function awaited(probe: Probe, signal: AbortSignal | undefined): Promise<Learnt> {
  const left = Promise.withResolvers<void>();
  const leave = () => left.resolve();
  signal?.addEventListener('abort', leave, { once: true });
  if (signal?.aborted) leave();
  probe.waiting += 1;
  try {
    const learnt = await Promise.race([probe.learnt, left.promise]);
    if (learnt) return learnt;
  } finally {
    probe.waiting -= 1;
    signal?.removeEventListener('abort', leave);
  }
  if (probe.waiting > 0) throw new ThroughlineError('cancelled', 'Cancelled while others wait for the agent.');
  probe.end();
  return probe.learnt;
}
