import { ThroughlineError } from '../../core/errors.ts';
import type { SessionHistory } from '../../core/restore/adopted.ts';
import type { AgentTraits } from '../../core/restore/traits.ts';
import type { Agent, Login, NativeSession, Opened, OpenRequest } from '../../ports/agent.ts';
import type { OpenSandbox } from '../../ports/sandbox.ts';
import type { AgentProgram, StartProgram } from './known/description.ts';
import { type FindSettings, findAgent } from './known/find.ts';
import { KNOWN_AGENTS, profileOf, quirksOf, storageName, variablesFor } from './known/known.ts';
import { AgentMemory, type Learnt, whyNotReopened } from './known/memory.ts';
import { parseAcpOptions } from './options.ts';

export interface AcpSettings extends Pick<FindSettings, 'command' | 'package' | 'installed'> {
  readonly name: string;
  readonly model?: string | undefined;
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** A part of `AcpOptions`, as the settings have it; checked here. */
  readonly options?: Readonly<Record<string, unknown>> | undefined;
  /** A folder of our own for what was learnt of agents. */
  readonly memory: string;
  /** Starts the agent outside of any sandbox, to see what it can do. */
  readonly start: StartProgram;
}

/** In tokens, for agents that do not say. Models of today have at least this. */
const WINDOW = 128_000;

/** Any program that speaks the Agent Client Protocol. Throws `invalid` for options that do not exist. */
export function acpAgent(settings: AcpSettings): Agent {
  const options = parseAcpOptions(settings.options);
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
    env: { ...known?.defaults, ...variablesFor(known, process.env), ...settings.env },
    ownCommand: settings.command !== undefined,
    login: known?.login ?? 'see its own documentation',
    knownAs,
    model: settings.model ?? null,
    start: settings.start,
  });
}

/** What uses the protocol's SDK is imported on demand: an agent that is only named in the settings costs nothing. */
class AcpAgent implements Agent {
  readonly name: string;
  readonly #settings: AcpSettings;
  readonly #setup: Omit<AgentProgram, 'command' | 'memory'>;
  /** What was learnt of the program that was found last. */
  #memory: { readonly of: string; readonly memory: AgentMemory } | null = null;
  #probing: Promise<Learnt> | null = null;

  constructor(settings: AcpSettings, setup: Omit<AgentProgram, 'command' | 'memory'>) {
    this.name = settings.name;
    this.#settings = settings;
    this.#setup = setup;
  }

  async howToAllow(): Promise<string> {
    return '"options": {"mode": …} (the modes are the agent\'s own; docs/acp.md)';
  }

  async traits(): Promise<AgentTraits> {
    const { options } = this.#setup;
    const learnt = await this.#learn();
    const trusted = whyNotReopened(learnt) === null;
    const profile = profileOf(learnt, this.#setup);
    const reopens = trusted && (learnt.load || learnt.resume);
    const window = Object.hasOwn(learnt.windows, this.name) ? learnt.windows[this.name] : undefined;
    return {
      version: `${learnt.name} ${learnt.version}`,
      id: 'issued',
      resume: trusted && learnt.resume,
      load: trusted && learnt.load,
      list: learnt.list,
      rehydrate: false,
      // A profile that ends only when the session is opened again is useless where that is not possible.
      noTools: profile !== null && (reopens || (profile.kind === 'mode' && options.mcpServers.length === 0)),
      position: false,
      rewind: false,
      images: learnt.image,
      window: options.window ?? window ?? WINDOW,
    };
  }

  async where(): Promise<string> {
    return this.#find().where;
  }

  async doubt(): Promise<string | null> {
    const learnt = await this.#learn();
    const missing = whyNotReopened(learnt);
    if (missing === null) return quirksOf(learnt.name, this.#setup.knownAs).outdated?.(learnt) ?? null;
    const { file } = this.#program().memory;
    return `It opens sessions without their history (${missing}), so it is no longer asked to open one again. To try again, delete ${file}.`;
  }

  async login(signal: AbortSignal): Promise<Login> {
    const program = this.#program();
    const { loginOf } = await import('./known/probe.ts');
    return loginOf(program, signal);
  }

  async list(cwd: string, signal: AbortSignal): Promise<NativeSession[] | null> {
    const program = this.#program();
    const { listSessions } = await import('./known/probe.ts');
    return listSessions(program, cwd, signal);
  }

  async open(request: OpenRequest): Promise<Opened> {
    const program = this.#program();
    const { openSession } = await import('./open/open.ts');
    return openSession(request, program);
  }

  async storage({ work: cwd }: OpenSandbox): Promise<string> {
    const { name: called } = await this.#learn();
    return storageName(this.#program(), called, cwd);
  }

  async history(sessionId: string, sandbox: OpenSandbox, signal: AbortSignal): Promise<SessionHistory | null> {
    const learnt = await this.#learn();
    if (!learnt.load || whyNotReopened(learnt) !== null) return null;
    const program = this.#program();
    const { readHistory } = await import('./open/history.ts');
    return readHistory(sessionId, sandbox, signal, program);
  }

  /** The protocol has no way to read an agent's storage. */
  async position(): Promise<null> {
    return null;
  }

  async tail(): Promise<null> {
    return null;
  }

  #find() {
    const { env, knownAs } = this.#setup;
    const found = findAgent({ known: knownAs, path: env.PATH ?? process.env.PATH ?? '', ...this.#settings });
    if ('command' in found) return found;
    throw new ThroughlineError('agent_unavailable', `${this.name}: ${found.problem}.`, { hint: found.hint });
  }

  /** Looks for the program. Throws `agent_unavailable`. */
  #program(): AgentProgram {
    const { command } = this.#find();
    const of = JSON.stringify(command);
    if (this.#memory?.of !== of) this.#memory = { of, memory: new AgentMemory(this.#settings.memory, command) };
    return { ...this.#setup, command, memory: this.#memory.memory };
  }

  async #learn(): Promise<Learnt> {
    // Every turn asks for this. The program is looked for again when it is started, not while it runs.
    if (this.#memory?.memory.learnt) return this.#memory.memory.learnt;
    const program = this.#program();
    if (program.memory.learnt !== null) return program.memory.learnt;
    this.#probing ??= import('./known/probe.ts')
      .then(({ probing }) => probing(program, async ({ can }) => can))
      .finally(() => {
        this.#probing = null;
      });
    return this.#probing;
  }
}
