import { join } from 'node:path';
import type { OpenSandbox } from '../../ports/sandbox.ts';
import { KEPT_TO_ITSELF } from './by-itself.ts';
import type { ClaudeOptions } from './options.ts';

/*
 * What Claude gets of our environment, beyond what every program gets: the documented ways to log in and to reach its API,
 * and nothing else. Keys of a cloud are handed on only where Claude was told to use that cloud.
 */
const ALWAYS = [
  /^ANTHROPIC_/,
  /^CLAUDE_/,
  /^(?:HTTPS?|NO|ALL)_PROXY$/i,
  /^(?:NODE_EXTRA_CA_CERTS|SSL_CERT_(?:FILE|DIR))$/,
];
const CLOUDS: readonly (readonly [chosenBy: string, names: RegExp])[] = [
  ['CLAUDE_CODE_USE_BEDROCK', /^AWS_/],
  ['CLAUDE_CODE_USE_VERTEX', /^(?:GOOGLE_|GCLOUD_|CLOUD_ML_REGION$|VERTEX_REGION_)/],
  ['CLAUDE_CODE_USE_FOUNDRY', /^AZURE_/],
];
/** What a Claude tells the programs that it starts: we may be one of them, and ours is another session. */
const OF_ANOTHER_SESSION =
  /^CLAUDE_(?:CODE_(?:ENTRYPOINT|SESSION_ID|SSE_PORT|RESUME_\w+|SDK_\w+|REMOTE\w*|CHILD_SESSION|EXECPATH)|AGENT_SDK_VERSION|PROJECT_DIR|ENV_FILE|PLUGIN_\w+|EFFORT|JOB_DIR)$/;

export function claudeVariables(ours: NodeJS.ProcessEnv): Record<string, string> {
  const clouds = CLOUDS.filter(([chosenBy]) => ours[chosenBy]).map(([, names]) => names);
  const wanted = [...ALWAYS, ...clouds];
  const taken: Record<string, string> = {};
  for (const [name, value] of Object.entries(ours)) {
    if (value === undefined || OF_ANOTHER_SESSION.test(name)) continue;
    if (wanted.some((names) => names.test(name))) taken[name] = value;
  }
  return taken;
}

/** What Claude is asked about itself with, where there is no sandbox. */
export function environmentOutside(
  ours: NodeJS.ProcessEnv,
  settings: Readonly<Record<string, string>>,
): Record<string, string> {
  return { ...claudeVariables(ours), ...KEPT_TO_ITSELF, ...settings };
}

/** All that is added to the allowlisted environment of a sandbox. What the settings say wins. */
export function environmentIn(
  sandbox: OpenSandbox,
  ours: NodeJS.ProcessEnv,
  settings: Readonly<Record<string, string>>,
  home: ClaudeOptions['home'],
): Record<string, string> {
  return {
    ...claudeVariables(ours),
    ...KEPT_TO_ITSELF,
    // Else nothing is heard of a call of the model in which a subagent only speaks, and it is missing from those counted.
    CLAUDE_CODE_FORWARD_SUBAGENT_TEXT: '1',
    ...(home === 'sandbox' ? { CLAUDE_CONFIG_DIR: join(sandbox.state, 'claude') } : {}),
    ...settings,
    // Says when a turn is really over: a result alone may be followed by more.
    CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS: '1',
  };
}
