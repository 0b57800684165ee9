import type { AgentIdentity } from '../connection/capabilities.ts';
import type { AcpOptions } from '../options.ts';
import { CODEX_ENV, codexActsAllTheSame, codexArgs } from './codex.ts';

/**
 * Ways to open a session in which no tool can run. Asking an agent to be careful is none: agents that were denied every
 * permission have run tools all the same. Each is proved on one version by counting side effects (test/agents); any other
 * version has none until that was done for it.
 */
export type NoToolsProfile =
  /** Said when the session is made; it ends when the session is opened again without. */
  | { readonly kind: 'meta'; readonly meta: Readonly<Record<string, unknown>> }
  /** A mode of the session, which is left again in place. */
  | { readonly kind: 'mode'; readonly mode: string }
  /** What its program is started with; it ends when the session is opened again by one that was started without. */
  | StartProfile;

export interface StartProfile {
  readonly kind: 'start';
  args(cwd: string): readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

/** How the agent is set up here. */
export interface SetUp {
  readonly options: AcpOptions;
  readonly env: Readonly<Record<string, string>>;
  /** Whether the settings say how it is started: that may be a program of the person's, which starts it in its own way. */
  readonly ownCommand: boolean;
}

interface ProvedProfile extends AgentIdentity {
  readonly profile: NoToolsProfile;
  /** Whether it is not to be relied on here, although it is the version that was tried. */
  readonly unless: (here: SetUp) => boolean;
}

const PROVED: readonly ProvedProfile[] = [
  {
    name: '@agentclientprotocol/claude-agent-acp',
    version: '0.99.0',
    profile: {
      kind: 'meta',
      meta: { claudeCode: { options: { tools: [], settingSources: [], strictMcpConfig: true } } },
    },
    // Makes it run another program than the one that was tried.
    unless: ({ env }) => 'CLAUDE_CODE_EXECUTABLE' in env,
  },
  {
    name: 'codex-acp',
    version: '0.16.0',
    profile: { kind: 'start', args: codexArgs, env: CODEX_ENV },
    unless: ({ env, ownCommand }) => ownCommand || codexActsAllTheSame(env),
  },
];

/** Null: nothing is proved for this very version, or not as it is set up here. */
export function profileOf({ name, version }: AgentIdentity, here: SetUp): NoToolsProfile | null {
  const { noTools } = here.options;
  if (noTools?.version === version) return { kind: 'mode', mode: noTools.mode };
  const proved = PROVED.find((one) => one.name === name && one.version === version);
  return proved === undefined || proved.unless(here) ? null : proved.profile;
}
