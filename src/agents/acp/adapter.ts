import { ThroughlineError } from '../../core/errors.ts';
import type { AgentTraits } from '../../core/traits.ts';
import type { Agent, Login } from '../../ports/agent.ts';
import type { Capabilities } from './connection/capabilities.ts';
import { findAgent } from './known/find.ts';
import { KNOWN_AGENTS, variablesFor } from './known/known.ts';
import { AgentMemory, type Learnt, lieOf } from './known/memory.ts';
import { profileOf } from './known/profiles.ts';
import { storageName } from './known/storage-name.ts';
import type { Opener } from './open/open.ts';
import { parseAcpOptions } from './options.ts';

export interface AcpSettings {
  readonly name: string;
  readonly command?: readonly string[] | undefined;
  readonly package?: string | undefined;
  readonly model?: string | undefined;
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** `AcpOptions` in part, as they stand in the settings; checked here. */
  readonly options?: Readonly<Record<string, unknown>> | undefined;
  /** A folder of the data home into which a person may install agents. */
  readonly installed: string;
  /** Where what was learnt of agents is kept; a folder of our own. */
  readonly memory: string;
}

/** A guess that no model of today falls short of, for agents that do not tell. */
const WINDOW = 128_000;

/** Any program that speaks the Agent Client Protocol. Throws `invalid` for options that there are not. */
export function acpAgent(settings: AcpSettings): Agent {
  const { name } = settings;
  const options = parseAcpOptions(settings.options);
  const knownAs = options.agent ?? (Object.hasOwn(KNOWN_AGENTS, name) ? name : null);
  const known = knownAs === null ? null : (KNOWN_AGENTS[knownAs] ?? null);
  if (options.agent !== null && known === null) {
    throw new ThroughlineError('invalid', `No agent is known by the name "${options.agent}".`, {
      hint: `Known are ${Object.keys(KNOWN_AGENTS).join(', ')}; any other is set by its "command".`,
    });
  }
  const env = { ...known?.defaults, ...variablesFor(known, process.env), ...settings.env };
  const path = env.PATH ?? process.env.PATH ?? '';
  const login = known?.login ?? 'see its own documentation';
  const here = { options, env, ownCommand: settings.command !== undefined };
  const looking = { name, env, login, openMs: options.openMs, scratch: settings.memory };
  let probing: Promise<Learnt> | null = null;

  const find = () => {
    const found = findAgent({ known: knownAs, path, ...settings });
    if ('command' in found) return found;
    throw new ThroughlineError('agent_unavailable', `${name}: ${found.problem}.`, { hint: found.hint });
  };
  let remembered: { readonly of: string; readonly memory: AgentMemory } | null = null;
  const memoryOf = (command: readonly string[]) => {
    const of = JSON.stringify(command);
    if (remembered?.of !== of) remembered = { of, memory: new AgentMemory(settings.memory, command) };
    return remembered.memory;
  };
  const learn = async (): Promise<Learnt> => {
    // Asked for in every turn: it is looked for again when it is started, and not by a turn that finds it running.
    if (remembered?.memory.learnt) return remembered.memory.learnt;
    const { command } = find();
    const memory = memoryOf(command);
    if (memory.learnt !== null) return memory.learnt;
    probing ??= probed(command)
      .then((capabilities) => memory.saw(capabilities))
      .finally(() => {
        probing = null;
      });
    return probing;
  };
  // The SDK is loaded when an agent is started: whoever only has one in the settings does not pay for it.
  const probed = async (command: readonly string[]) => {
    const { probe } = await import('./known/probe.ts');
    return probe({ ...looking, command });
  };
  const loggedIn = async (signal: AbortSignal): Promise<Login> => {
    const { command } = find();
    const { loginOf } = await import('./known/login.ts');
    const saw = (capabilities: Capabilities) => void memoryOf(command).saw(capabilities);
    return loginOf({ ...looking, command, signal, auth: options.auth, saw, known });
  };
  const traitsOf = (learnt: Learnt): AgentTraits => {
    const honest = lieOf(learnt) === null;
    const profile = profileOf(learnt, here);
    const reopens = honest && (learnt.load || learnt.resume);
    const window = Object.hasOwn(learnt.windows, name) ? learnt.windows[name] : undefined;
    return {
      version: `${learnt.name} ${learnt.version}`,
      id: 'issued',
      resume: honest && learnt.resume,
      load: honest && learnt.load,
      list: learnt.list,
      rehydrate: false,
      // One that ends only by opening the session again is of no use where that cannot be done.
      noTools: profile !== null && (reopens || (profile.kind === 'mode' && options.mcpServers.length === 0)),
      position: false,
      rewind: false,
      window: options.window ?? window ?? WINDOW,
    };
  };

  return {
    name,
    traits: async () => traitsOf(await learn()),
    where: async () => find().where,
    async doubt() {
      const lie = lieOf(await learn());
      const { file } = memoryOf(find().command);
      return lie && `It is not asked to open a session again: ${lie}. To have it asked once more, delete ${file}.`;
    },
    login: loggedIn,
    async list(cwd, signal) {
      const { command } = find();
      const { listSessions } = await import('./known/list.ts');
      return listSessions({ ...looking, command, signal, auth: options.auth, cwd });
    },
    async open(request) {
      const { command } = find();
      const memory = memoryOf(command);
      const opener: Opener = {
        name,
        command,
        env,
        model: settings.model ?? null,
        options,
        login,
        saw: (capabilities) => void memory.saw(capabilities),
        get starting() {
          const profile = memory.learnt && profileOf(memory.learnt, here);
          return profile?.kind === 'start' ? profile : null;
        },
        profile: (capabilities) => profileOf(capabilities, here),
        get lies() {
          return memory.learnt !== null && lieOf(memory.learnt) !== null;
        },
        lacked: (session, detail) => memory.lacked(session, detail),
        loaded: () => memory.loaded(),
        onWindow: (tokens) => memory.window(name, tokens),
      };
      const { openSession } = await import('./open/open.ts');
      return openSession(request, opener);
    },
    async storage({ work: cwd }) {
      const { name: called } = await learn();
      return storageName({ knownAs, called, command: find().command, env, cwd });
    },
    position: async () => null,
    tail: async () => null,
  };
}
