import type { ModelRetry, Update } from '../../../core/turn/update.ts';
import type { OpenSandbox } from '../../../ports/sandbox.ts';
import type { Capabilities } from '../connection/capabilities.ts';
import type { AcpOptions } from '../options.ts';
import type { AgentMemory } from './memory.ts';
import type { Surroundings } from './surroundings.ts';

/** An agent that is known by name: how it is started, which of our variables it gets, and how it differs from others. */
export interface KnownAgent {
  /** The program, looked for on PATH, and its arguments. */
  readonly command: readonly [program: string, ...args: string[]];
  /** The npm package that contains this program. */
  readonly package: string;
  /** The name that it gives itself when it is started (`agentInfo.name`). */
  readonly called: string;
  /** The name that an older program for the same agent gives itself. */
  readonly formerly?: string;
  readonly storage: KnownStorage;
  /** The documented variables for its login and its model. It gets no others of our environment. */
  readonly variables: readonly RegExp[];
  /** Variables that it starts with unless the settings say otherwise. */
  readonly defaults?: Readonly<Record<string, string>>;
  /** How a person logs in. */
  readonly login: string;
  readonly quirks?: Quirks;
  /** How `throughline agents install` installs it; left out: a person does. */
  readonly install?: InstallNotes;
}

export interface InstallNotes {
  /** The version of the package that our tests use. */
  readonly tested: string;
  readonly megabytes: number;
  /** The optional package that has the program itself for this machine. */
  readonly needs: string;
}

/** Where an agent keeps its sessions. */
interface KnownStorage {
  /** The variable that names the folder; null: there is none. */
  readonly variable: string | null;
  /** The folder below the home directory where they are otherwise. */
  readonly folder: string;
  /** The name of this kind of storage, when another adapter uses the same one. */
  readonly sharedAs?: string;
}

/**
 * Where one agent differs from the protocol or goes beyond it. Code for all agents uses these members, and never the name of an agent.
 */
export interface Quirks {
  /** The banner that it also sends as a message, read from its answer to `session/new`; null: it sends none. */
  readonly banner?: (response: Readonly<Record<string, unknown>>) => string | null;
  /** Whether the agent itself wrote this message of a repeated history: a summary, or a note in the person's place. */
  readonly ownWords?: (who: 'person' | 'agent', text: string) => 'summary' | 'note' | null;
  /** Text with which the agent never answers a request to load the session. */
  readonly hangsOn?: RegExp;
  /** What we ask for when a session is opened (`_meta`). */
  readonly meta?: Readonly<Record<string, unknown>>;
  /** What an update says about the answer; null or left out: nothing beyond the protocol. */
  readonly aboutAnswer?: (update: Update) => AboutAnswer | null;
  /** The texts of these messages in its own record, of those that are there. Asked when a turn has completed. */
  readonly recordedTexts?: (
    messageIds: readonly string[],
    surroundings: Surroundings,
  ) => Promise<ReadonlyMap<string, string>>;
  /**
   * What these tool calls printed, from its own record, of those that are there. It leaves out a part of what it sends in pieces. Asked
   * when it has answered a prompt.
   */
  readonly recordedOutputs?: (
    toolCallIds: readonly string[],
    session: string,
    surroundings: Surroundings,
  ) => Promise<ReadonlyMap<string, string>>;
  /** Why the last turn failed, from its own record, although it reports that the turn ended; null: nothing shows a failure. */
  readonly failureOf?: (session: string, surroundings: Surroundings) => Promise<string | null>;
  /** Its answers count the tokens since the start of its process, not those of the prompt. */
  readonly addsUpTokens?: true;
  /** Its message when nobody has set it up yet. */
  readonly saysNotSetUp?: RegExp;
  /** It opens a session for anybody, so an open session does not show a login. */
  readonly opensForAnybody?: true;
  readonly loginStatus?: LoginStatus;
  readonly withoutTools?: ProvedProfile;
  /** Why this version of its program must not open one of its sessions: it would damage it. Null: it may. */
  readonly whyNotOpened?: (
    session: string,
    version: Pick<Capabilities, 'name' | 'version'>,
    surroundings: Surroundings,
  ) => Promise<string | null>;
  /** Why a person should update this version of its program, as a sentence; null: there is no reason. */
  readonly outdated?: (version: Pick<Capabilities, 'name' | 'version'>) => string | null;
}

/**
 * A retry: the model did not answer or the connection to it broke, and it is asked again; what was streamed of the unfinished message
 * does not count. `finished`: what was streamed so far is final. `notice`: a message of the agent itself, not of the model. `failed`:
 * the agent reports that the model did not answer; its reason is this message, or the next one if this is none. `ours`: an answer to a
 * request of ours, which is not shown.
 */
export type AboutAnswer = ModelRetry | 'finished' | 'notice' | 'failed' | 'ours';

/** A notification, not in the protocol, that reports whether somebody is logged in. */
export interface LoginStatus {
  readonly method: string;
  /** Null: the notification does not show it. */
  readonly loggedIn: (params: unknown) => boolean | null;
}

/**
 * A way to open a session in which no tool can run. Denying every permission is not enough: agents have run tools anyway. Each
 * profile is proved on one version by counting side effects (test/agents). Other versions have none until that is done for them.
 */
export type NoToolsProfile =
  /** Sent when the session is opened. It ends when the session is opened again without it. */
  | { readonly kind: 'meta'; readonly meta: Readonly<Record<string, unknown>> }
  /** A mode of the session, which can be left while it is open. */
  | { readonly kind: 'mode'; readonly mode: string }
  /** Variables of the program. It ends when the session is opened by a program that was started without them. */
  | StartProfile;

export interface StartProfile {
  readonly kind: 'start';
  /** The variables to add. Null: something in the working directory or above it defeats the profile. */
  env(surroundings: Surroundings): Promise<Readonly<Record<string, string>> | null>;
  /** The title of the session. Without one the agent asks its model for a title, in another session that has tools. */
  readonly title: string;
}

export interface ProvedProfile {
  readonly version: string;
  readonly profile: NoToolsProfile;
  /** Whether something in this setup defeats the profile, although the version is the proved one. */
  readonly unless: (setup: Setup, sandbox: OpenSandbox) => Promise<boolean>;
}

/** The program of an agent, as it was found, and how it is set up here. */
export interface AgentProgram extends Setup {
  /** The agent's name in the settings. */
  readonly name: string;
  readonly command: readonly string[];
  /** How a person logs in; for messages. */
  readonly login: string;
  /** The name under which the agent is known; null: none. */
  readonly knownAs: string | null;
  readonly model: string | null;
  readonly memory: AgentMemory;
}

/** How the agent is set up here. */
export interface Setup {
  readonly options: AcpOptions;
  readonly env: Readonly<Record<string, string>>;
  /** Whether the settings name the command. It may be a person's own program, which starts the agent in another way. */
  readonly ownCommand: boolean;
}
