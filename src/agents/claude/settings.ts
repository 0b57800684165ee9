import { statSync } from 'node:fs';
import { isAbsolute } from 'node:path';
import {
  about,
  byName,
  dotted,
  flag,
  type Input,
  kinds,
  list,
  type Output,
  object,
  oneOf,
  required,
  type Schema,
  text,
  value,
  whole,
} from '../../core/input/schema.ts';
import { parseOptions } from '../../core/input/settings.ts';
import { isObject } from '../../core/turn/content.ts';
import type { Clock } from '../../ports/clock.ts';
import type { OpenSandbox } from '../../ports/sandbox.ts';
import { anyText, MCP_SERVERS, type McpServer } from '../shared/mcp-servers.ts';
import { type FindSettings, type FoundClaude, findClaude } from './find/find.ts';
import { LearntWindows } from './windows.ts';

/** The settings of one agent that is Claude, for both adapters. */
export interface ClaudeSettings extends Pick<FindSettings, 'command' | 'package' | 'installed'> {
  readonly name: string;
  readonly model?: string | undefined;
  readonly env: Readonly<Record<string, string>>;
  /** Our environment, of which Claude gets the variables that it needs. Left out: that of this process. */
  readonly ours?: NodeJS.ProcessEnv;
  readonly options: Readonly<Record<string, unknown>>;
  /** A folder of our own for what was learnt about agents. */
  readonly memory: string;
  readonly clock: Clock;
}

/**
 * Reads the settings, and returns `find`, which looks for Claude and passes what it found through `check`. A result is
 * remembered until another Claude is installed by name; a failure is not, because Claude may be installed meanwhile. Throws
 * `invalid` for unknown options.
 */
export function readClaudeSettings<T>(
  { name, model, env, ours = process.env, options: given, memory, clock, ...places }: ClaudeSettings,
  check: (found: FoundClaude) => T,
) {
  const options = parseClaudeOptions(name, given);
  const settings: FindSettings = { ...places, path: env.PATH, trustProject: options.trustProject };
  const remembered = new Map<string, Promise<T>>();
  const find = (sandbox: OpenSandbox): Promise<T> => {
    // Only a trusted project can have its own Claude; otherwise the directory makes no difference.
    const from = options.trustProject ? sandbox.work : null;
    // Installing replaces the folder, so its inode changes.
    const key = JSON.stringify([sandbox.host, from, statSync(places.installed, { throwIfNoEntry: false })?.ino]);
    const found = remembered.get(key) ?? findClaude(settings, sandbox).then(check);
    remembered.set(key, found);
    found.catch(() => remembered.delete(key));
    return found;
  };
  const windows = new LearntWindows(memory, name);
  return { parts: { name, env, ours, options, model: model ?? null, windows, clock }, find };
}

export const MODES = ['default', 'acceptEdits', 'plan', 'dontAsk', 'auto', 'bypassPermissions'] as const;
export const EFFORTS = ['low', 'medium', 'high', 'xhigh', 'max'] as const;
const SOURCES = ['user', 'project', 'local'] as const;

const tools = list(text);
const rounds = whole({ least: 1 });

/** A subagent, as Claude has it. */
const SUBAGENT = object({
  description: required(text),
  prompt: required(text),
  tools,
  disallowedTools: tools,
  model: text,
  effort: oneOf(EFFORTS),
  maxTurns: rounds,
  permissionMode: oneOf(MODES),
  skills: list(text),
});

const seconds = value<number>((one) => typeof one === 'number' && one > 0, 'a number of seconds above 0', {
  type: 'number',
  exclusiveMinimum: 0,
});
const onFailure = oneOf(['continue', 'block']);
/** The fields that hooks of every type have. */
const COMMON = { if: text, timeout: seconds, statusMessage: text, once: flag };

/** Unknown fields are refused: Claude ignores a misspelled one silently. A test compares the fields with the SDK's types. */
export const HOOK = kinds('type', {
  command: object({
    type: required(oneOf(['command'])),
    command: required(text),
    args: list(anyText),
    shell: oneOf(['bash', 'powershell']),
    async: flag,
    asyncRewake: flag,
    onFailure,
    ...COMMON,
  }),
  prompt: object({
    type: required(oneOf(['prompt'])),
    prompt: required(text),
    model: text,
    continueOnBlock: flag,
    ...COMMON,
  }),
  agent: object({ type: required(oneOf(['agent'])), prompt: required(text), model: text, ...COMMON }),
  http: object({
    type: required(oneOf(['http'])),
    url: required(text),
    headers: byName(value<string>((one) => typeof one === 'string', 'a text', { type: 'string' }, { hidden: true })),
    allowedEnvVars: list(text),
    onFailure,
    ...COMMON,
  }),
  mcp_tool: object({
    type: required(oneOf(['mcp_tool'])),
    server: required(text),
    tool: required(text),
    input: value<Readonly<Record<string, unknown>>>(isObject, 'an object', { type: 'object' }),
    ...COMMON,
  }),
});

/** Which calls a hook is for, and the hooks, as in Claude's settings files. */
const HOOK_GROUP = object({ matcher: anyText, hooks: required(list(HOOK)) });

/** Unknown events are refused: Claude ignores hooks of a misspelled one silently. A test compares the names with the SDK's types. */
// biome-ignore format: a list of names
export const HOOK_EVENTS = [
  'PreToolUse', 'PostToolUse', 'PostToolUseFailure', 'PostToolBatch', 'Notification', 'UserPromptSubmit', 'UserPromptExpansion',
  'SessionStart', 'SessionEnd', 'Stop', 'StopFailure', 'SubagentStart', 'SubagentStop', 'PreCompact', 'PostCompact', 'PreModelSwitch',
  'PostModelSwitch', 'PermissionRequest', 'PermissionDenied', 'Setup', 'TeammateIdle', 'TaskCreated', 'TaskCompleted', 'Elicitation',
  'ElicitationResult', 'ConfigChange', 'WorktreeCreate', 'WorktreeRemove', 'InstructionsLoaded', 'CwdChanged', 'FileChanged',
  'DirectoryAdded', 'MessageDisplay',
] as const;
const HOOK_GROUPS = list(HOOK_GROUP);
type ByEvent<Group> = { readonly [Event in (typeof HOOK_EVENTS)[number]]?: readonly Group[] };
const HOOKS: Schema<ByEvent<Input<typeof HOOK_GROUP>>, ByEvent<Output<typeof HOOK_GROUP>>> = {
  ...object(
    Object.fromEntries(HOOK_EVENTS.map((event) => [event, HOOK_GROUPS])) as Record<
      (typeof HOOK_EVENTS)[number],
      typeof HOOK_GROUPS
    >,
  ),
  // The groups are described once, not for each event.
  json: { type: 'object', propertyNames: { enum: [...HOOK_EVENTS] }, additionalProperties: HOOK_GROUPS.json },
};

/** What `options` of a Claude may hold. */
export const CLAUDE_OPTIONS = refusing(
  object({
    permissionMode: about('How Claude asks before it uses a tool. Default: it asks.', oneOf(MODES)),
    appendSystemPrompt: about("Added to the end of Claude's system prompt.", text),
    allowedTools: about('Tools that need no permission: "Read", "Bash(git log:*)".', tools),
    disallowedTools: about('Tools that Claude does not get.', tools),
    additionalDirectories: about(
      'Directories beside the working directory that Claude may use.',
      value<readonly string[]>(
        (paths) => Array.isArray(paths) && paths.every((one) => typeof one === 'string' && isAbsolute(one)),
        'a list of absolute paths',
        { type: 'array', items: { type: 'string' } },
      ),
    ),
    maxTurns: about('How often the model may be asked in one turn. Then the turn fails. Default: no limit.', rounds),
    effort: about('How much the model thinks. Default: as the model has it.', oneOf(EFFORTS)),
    agents: about('Subagents by name.', byName(SUBAGENT)),
    hooks: about("Hooks by event, in the form of Claude's settings files.", HOOKS),
    settingSources: about("Which of Claude's settings files are used. Default: all.", list(oneOf(SOURCES))),
    home: about(
      'The config directory: that of the user, with their login, or one per conversation. Default: user.',
      oneOf(['user', 'sandbox']),
    ),
    trustProject: about("Whether a Claude in the working directory's node_modules may be started. Default: no.", flag),
    window: about(
      "The model's window in tokens. Default: what Claude has reported of the model.",
      whole({ least: 1, of: ' of tokens' }),
    ),
    mcpServers: about('MCP servers for every session, by name as in .mcp.json, or a list. Default: none.', MCP_SERVERS),
  }),
);

/** The `options` of the settings, with their defaults. */
export type ClaudeOptions = Output<typeof CLAUDE_OPTIONS> & {
  readonly home: 'user' | 'sandbox';
  readonly trustProject: boolean;
  readonly mcpServers: readonly McpServer[];
};

/** Throws `invalid` for unknown options and invalid values. */
export function parseClaudeOptions(agent: string, options: unknown): ClaudeOptions {
  return { home: 'user', trustProject: false, mcpServers: [], ...parseOptions(CLAUDE_OPTIONS, agent, options) };
}

/** Refuses the other options of the Agent SDK, each with what to do instead. */
function refusing<In, Out>(schema: Schema<In, Out>): Schema<In, Out> {
  return {
    ...schema,
    read(given, at, report) {
      const refused = isObject(given) ? Object.keys(given).find((name) => Object.hasOwn(REFUSED, name)) : undefined;
      if (refused === undefined) return schema.read(given, at, report);
      const says = `"${dotted([...at, refused])}" is an option of the Agent SDK that Throughline does not take. ${REFUSED[refused]}`;
      throw report([...at, refused], { says });
    },
  };
}

const OURS = 'Throughline sets it.';
const FUNCTION = 'It is a function, and settings hold only values.';
const NOT_SHOWN = 'Throughline does not show the output that it adds.';
const IN_SETTINGS_FILE = 'Put it into one of Claude’s settings files (settingSources).';

/** The options of the Agent SDK (0.3.325) that are not ours, and what to do about each. A test compares this with its types. */
export const REFUSED: Readonly<Record<string, string>> = {
  model: 'Set "model" of the agent, beside "options".',
  env: 'Set "env" of the agent, beside "options".',
  pathToClaudeCodeExecutable: 'Set "command" of the agent, beside "options".',
  executable: 'Set "command" of the agent, beside "options".',
  executableArgs: 'Set "command" of the agent, beside "options".',
  extraArgs: 'Set "command" of the agent, beside "options".',
  cwd: 'Set "cwd" of the conversation.',
  resume: `${OURS} Name the session of a turn with "session".`,
  sessionId: `${OURS} Choose the id of a new session with "newSession".`,
  continue: `${OURS} A conversation always continues.`,
  forkSession: `${OURS} Fork the conversation.`,
  resumeSessionAt: OURS,
  resumeDropsTurn: OURS,
  abortController: 'Cancel the turn.',
  canUseTool: 'Answer permissions with "onPermission", "tl.answer" or "throughline answer".',
  permissionPromptToolName: 'Answer permissions with "onPermission", "tl.answer" or "throughline answer".',
  permissionPrompts: 'Set "permissions" of the turn or of the settings.',
  allowDangerouslySkipPermissions: 'Set "permissionMode": "bypassPermissions".',
  systemPrompt: 'Use "appendSystemPrompt". Without its own system prompt Claude does not know its tools.',
  tools: 'Use "disallowedTools" for those that Claude must not have.',
  toolAliases: 'Use hooks to change calls of tools.',
  toolConfig: 'Claude asks its questions in its reply.',
  maxBudgetUsd: 'Set "limits": {"conversationPerDay"} of the settings, or the budget of a task.',
  taskBudget: 'Set the budget of a task.',
  maxThinkingTokens: 'Use "effort".',
  thinking: 'Use "effort".',
  betas: 'Set ANTHROPIC_BETAS in "env" of the agent.',
  fallbackModel: 'Choose the model of a turn with "model".',
  settings: 'Use "hooks", "allowedTools" and the like; for the rest use Claude’s settings files (settingSources).',
  managedSettings: 'They are for administrators, and are in a file of their own.',
  sandbox: IN_SETTINGS_FILE,
  agent: IN_SETTINGS_FILE,
  plugins: IN_SETTINGS_FILE,
  pluginDelivery: IN_SETTINGS_FILE,
  skills: 'Claude finds them in the folders of its settings files (settingSources).',
  planModeInstructions: 'Use "appendSystemPrompt".',
  projectConfigRoot: 'Name the checkout itself as the directory of the conversation.',
  outputFormat: 'Ask for the format in the prompt.',
  title: 'Set "title" of the conversation.',
  strictMcpConfig: `${OURS} Only the servers of "mcpServers" are started.`,
  verbatimPrompts: `${OURS} A prompt is text.`,
  includePartialMessages: `${OURS} Text is streamed.`,
  persistSession: `${OURS} Without its transcript a session cannot be resumed.`,
  sessionStore: `${OURS} It keeps a copy of the transcript.`,
  sessionStoreFlush: OURS,
  loadTimeoutMs: OURS,
  enableFileCheckpointing: 'Throughline restores conversations, not files.',
  spawnClaudeCodeProcess: `${OURS} Claude runs in the sandbox of the conversation.`,
  includeHookEvents: NOT_SHOWN,
  forwardSubagentText: NOT_SHOWN,
  promptSuggestions: NOT_SHOWN,
  agentProgressSummaries: NOT_SHOWN,
  perTaskStopAffordance: 'Cancel the turn.',
  onElicitation: FUNCTION,
  onUserDialog: FUNCTION,
  supportedDialogKinds: FUNCTION,
  stderr: FUNCTION,
  debug: 'Set DEBUG in "env" of the agent.',
  debugFile: 'Set DEBUG in "env" of the agent.',
};
