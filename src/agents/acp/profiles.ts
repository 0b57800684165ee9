import type { AgentIdentity } from './capabilities.ts';
import type { AcpOptions } from './options.ts';

/**
 * Ways to open a session in which no tool can run. Asking an agent to be careful is none: agents that were denied every
 * permission have run tools all the same. Each is proved on one version by counting side effects (test/agents); any other
 * version has none until that was done for it.
 */
export type NoToolsProfile =
  /** Said when the session is made; it ends when the session is opened again without. */
  | { readonly kind: 'meta'; readonly meta: Readonly<Record<string, unknown>> }
  /** A mode of the session, which is left again in place. */
  | { readonly kind: 'mode'; readonly mode: string };

interface ProvedProfile extends AgentIdentity {
  readonly profile: NoToolsProfile;
  /** A variable that makes it run another program than the one that was tried. */
  readonly unlessSet: string;
}

const PROVED: readonly ProvedProfile[] = [
  {
    name: '@agentclientprotocol/claude-agent-acp',
    version: '0.99.0',
    profile: {
      kind: 'meta',
      meta: { claudeCode: { options: { tools: [], settingSources: [], strictMcpConfig: true } } },
    },
    unlessSet: 'CLAUDE_CODE_EXECUTABLE',
  },
];

/** Null: nothing is proved for this very version. */
export function profileOf(
  { name, version }: AgentIdentity,
  { noTools }: AcpOptions,
  env: Readonly<Record<string, string>>,
): NoToolsProfile | null {
  if (noTools?.version === version) return { kind: 'mode', mode: noTools.mode };
  const proved = PROVED.find((one) => one.name === name && one.version === version);
  return proved === undefined || proved.unlessSet in env ? null : proved.profile;
}
