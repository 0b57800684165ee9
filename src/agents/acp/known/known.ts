import { join, resolve } from 'node:path';
import { chunkText, type ModelRetry } from '../../../core/turn/update.ts';
import type { OpenSandbox } from '../../../ports/sandbox.ts';
import { asObject } from '../../shared/json.ts';
import { numberIn, sdkRetry } from '../../shared/model-retry.ts';
import type { Capabilities } from '../connection/capabilities.ts';
import { CODEX_INSTALL, CODEX_WITHOUT_TOOLS, OLD_CODEX_ACP } from './codex.ts';
import { outdated, recordedOutputs, whyNotOpened } from './codex-sessions.ts';
import { COPILOT_QUIRKS } from './copilot.ts';
import type { AgentProgram, KnownAgent, LoginStatus, NoToolsProfile, Quirks, Setup } from './description.ts';
import { OPENCODE_QUIRKS } from './opencode.ts';
import { PI_QUIRKS } from './pi.ts';
import { homeOf } from './surroundings.ts';

/** How Claude begins the message that replaces everything before a compaction. */
const CLAUDE_SUMMARY = 'This session is being continued from a previous conversation';
/** What Claude writes in the person's place when a prompt was stopped. */
const CLAUDE_NOTE = /^\[Request interrupted by user(?: for tool use)?\]$/;

/** How the ACP programs of Claude and Codex report whether somebody is logged in. */
const LOGIN_STATUS: LoginStatus = {
  method: '_auth/status_update',
  loggedIn(params) {
    const { kind } = asObject(asObject(params).authStatus);
    return typeof kind === 'string' ? kind !== 'none' : null;
  },
};

/** Asks the ACP program to pass on messages of the Agent SDK: whole blocks of an answer, and retries of model requests. */
const PASS_ON = { emitRawSDKMessages: [{ type: 'assistant' }, { type: 'system', subtype: 'api_retry' }] };

const CLAUDE_QUIRKS: Quirks = {
  meta: { claudeCode: PASS_ON },
  aboutAnswer(update) {
    if (update.sessionUpdate !== '_acp/notification' || update.method !== '_claude/sdkMessage') return null;
    const message = asObject(asObject(update.params).message);
    const { type, subtype, parent_tool_use_id: subagent } = message;
    if (subtype === 'api_retry') return sdkRetry(message);
    return type === 'assistant' && typeof subagent !== 'string' ? 'finished' : 'ours';
  },
  ownWords(who, text) {
    if (text.startsWith(CLAUDE_SUMMARY)) return 'summary';
    return who === 'person' && CLAUDE_NOTE.test(text.trim()) ? 'note' : null;
  },
  loginStatus: LOGIN_STATUS,
  withoutTools: {
    version: '0.99.0',
    profile: {
      kind: 'meta',
      meta: { claudeCode: { ...PASS_ON, options: { tools: [], settingSources: [], strictMcpConfig: true } } },
    },
    // With this variable it runs another program than the one that was tested.
    unless: async ({ env }) => 'CLAUDE_CODE_EXECUTABLE' in env,
  },
};

const CODEX_QUIRKS: Quirks = {
  aboutAnswer(update) {
    if (update.sessionUpdate !== 'session_info_update') return null;
    const { error, threadStatus } = asObject(asObject(asObject(update)._meta).codex);
    // The reason is in the next message, and the answer to the prompt is `end_turn`.
    if (asObject(threadStatus).type === 'systemError') return 'failed';
    return asObject(error).willRetry === true ? codexRetry(asObject(error)) : null;
  },
  recordedOutputs,
  loginStatus: LOGIN_STATUS,
  withoutTools: CODEX_WITHOUT_TOOLS,
  whyNotOpened,
  outdated,
};

/** Codex counts its retries in words: "Reconnecting... 2/5". While nothing is reachable, it does not count them. */
function codexRetry({ message, codexErrorInfo, additionalDetails }: Record<string, unknown>): ModelRetry {
  const [, attempt, of] = /(\d+)\/(\d+)$/.exec(String(message)) ?? [];
  const [about] = Object.values(asObject(codexErrorInfo));
  return {
    attempt: attempt === undefined ? null : Number(attempt),
    of: of === undefined ? null : Number(of),
    inMs: null,
    status: numberIn(asObject(about).httpStatusCode),
    reason: typeof additionalDetails === 'string' ? additionalDetails : null,
  };
}

/** goose (1.50) reports in a message that the stream of its model broke, and answers `end_turn`. Its record does not show it. */
const GOOSE_BROKEN = /^Network error: .*\n\nPlease resend your message to try again\.$/s;

const GOOSE_QUIRKS: Quirks = {
  // It has no login: a person configures its model and the key for it.
  saysNotSetUp: /failed to resolve provider|no provider (?:is )?(?:set|configured)/i,
  aboutAnswer(update) {
    const text = update.sessionUpdate === 'agent_message_chunk' ? chunkText(update) : null;
    return text !== null && GOOSE_BROKEN.test(text) ? 'failed' : null;
  },
};

const ANTHROPIC = [/^ANTHROPIC_/, /^CLAUDE_CODE_(?:USE_BEDROCK|USE_VERTEX|OAUTH_TOKEN)$/, /^CLAUDE_CONFIG_DIR$/];
const OPENAI = [/^OPENAI_/];
const GOOGLE = [/^GEMINI_/, /^GOOGLE_(?:API_KEY|GEMINI_BASE_URL|GENAI_\w+|CLOUD_PROJECT|CLOUD_LOCATION)$/];

export const KNOWN_AGENTS: Readonly<Record<string, KnownAgent>> = {
  'claude-code': {
    command: ['claude-agent-acp'],
    package: '@agentclientprotocol/claude-agent-acp',
    called: '@agentclientprotocol/claude-agent-acp',
    // Claude itself, without this protocol, has the same sessions there.
    storage: { variable: 'CLAUDE_CONFIG_DIR', folder: '.claude', sharedAs: 'claude' },
    variables: ANTHROPIC,
    // Without the first, it asks its model after every turn what the person may say next, with the whole history; we do not show that.
    // Without the second, it may update itself in the middle of a conversation.
    defaults: { CLAUDE_CODE_ENABLE_PROMPT_SUGGESTION: 'false', DISABLE_AUTOUPDATER: '1' },
    login: 'run "claude" and log in there, or set ANTHROPIC_API_KEY',
    quirks: CLAUDE_QUIRKS,
  },
  codex: {
    command: ['codex-acp'],
    package: '@agentclientprotocol/codex-acp',
    called: '@agentclientprotocol/codex-acp',
    formerly: OLD_CODEX_ACP,
    storage: { variable: 'CODEX_HOME', folder: '.codex' },
    variables: [...OPENAI, /^CODEX_(?:API_KEY|HOME)$/, /^NO_BROWSER$/],
    // The key alone does not log in. With "auth", Codex stores the key as if a person had logged in with it.
    login: 'run "codex login", or set OPENAI_API_KEY and, in its options, "auth": "api-key"',
    quirks: CODEX_QUIRKS,
    install: CODEX_INSTALL,
  },
  gemini: {
    command: ['gemini', '--acp'],
    package: '@google/gemini-cli',
    called: 'gemini-cli',
    storage: { variable: null, folder: '.gemini' },
    variables: GOOGLE,
    login: 'run "gemini" and log in there, or set GEMINI_API_KEY',
  },
  opencode: {
    command: ['opencode', 'acp'],
    package: 'opencode-ai',
    called: 'OpenCode',
    storage: { variable: 'XDG_DATA_HOME', folder: '.local/share' },
    variables: [...ANTHROPIC, ...OPENAI, ...GOOGLE, /^OPENCODE_/],
    login: 'run "opencode auth login"',
    quirks: OPENCODE_QUIRKS,
  },
  qwen: {
    command: ['qwen', '--acp'],
    package: '@qwen-code/qwen-code',
    called: 'qwen-code',
    storage: { variable: null, folder: '.qwen' },
    variables: [...OPENAI, /^(?:DASHSCOPE|QWEN)_/],
    login: 'run "qwen" and log in there, or set OPENAI_API_KEY',
  },
  copilot: {
    command: ['copilot', '--acp'],
    package: '@github/copilot',
    called: 'Copilot',
    storage: { variable: null, folder: '.copilot' },
    variables: [/^COPILOT_/, /^(?:GH|GITHUB)_TOKEN$/],
    login: 'run "copilot" and use /login there',
    quirks: COPILOT_QUIRKS,
  },
  pi: {
    command: ['pi-acp'],
    package: 'pi-acp',
    called: 'pi-acp',
    storage: { variable: null, folder: '.pi' },
    variables: [...ANTHROPIC, ...OPENAI, ...GOOGLE, /^PI_/],
    login: 'run "pi" and use /login there',
    quirks: PI_QUIRKS,
  },
  goose: {
    command: ['goose', 'acp'],
    package: '@aaif/goose-acp',
    called: 'goose',
    storage: { variable: 'XDG_DATA_HOME', folder: '.local/share' },
    variables: [...ANTHROPIC, ...OPENAI, ...GOOGLE, /^GOOSE_/],
    login: 'run "goose configure"',
    quirks: GOOSE_QUIRKS,
  },
};

/** The name in `KNOWN_AGENTS` of the agent that gives itself the name `called`; null: it is not known. */
function nameOf(called: string): string | null {
  return (
    Object.entries(KNOWN_AGENTS).find(([, agent]) => agent.called === called || agent.formerly === called)?.[0] ?? null
  );
}

/** The quirks of the agent that gives itself the name `called`. If that name is not known, those of `knownAs`. */
export function quirksOf(called: string, knownAs: string | null): Quirks {
  const name = nameOf(called) ?? knownAs;
  return (name === null ? undefined : KNOWN_AGENTS[name]?.quirks) ?? {};
}

/** The profile without tools. Null: none is proved for exactly this version and this setup. */
export async function profileOf(
  { name, version }: Pick<Capabilities, 'name' | 'version'>,
  setup: Setup,
  sandbox: OpenSandbox,
): Promise<NoToolsProfile | null> {
  const { noTools } = setup.options;
  if (noTools?.version === version) return { kind: 'mode', mode: noTools.mode };
  const proved = quirksOf(name, null).withoutTools;
  return proved?.version !== version || (await proved.unless(setup, sandbox)) ? null : proved.profile;
}

/**
 * Agents keep their sessions in their home directory. So the same agent with the same home has the same sessions, whatever the
 * settings call it and however it is started. `called`: the name that it gives itself.
 */
export async function storageName(
  { knownAs, command, env }: Pick<AgentProgram, 'knownAs' | 'command' | 'env'>,
  called: string,
  sandbox: OpenSandbox,
): Promise<string> {
  const home = homeOf({ sandbox, env });
  const name = knownAs ?? nameOf(called);
  const known = name === null ? undefined : KNOWN_AGENTS[name];
  if (known === undefined)
    return `acp:${called === 'unknown' ? command.join(' ') : called}:${await sandbox.realPath(home)}`;
  const { variable, folder, sharedAs = `acp:${name}` } = known.storage;
  const named = variable === null ? undefined : env[variable];
  return `${sharedAs}:${await sandbox.realPath(resolve(sandbox.work, named ?? join(home, folder)))}`;
}
