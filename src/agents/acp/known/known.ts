/** Agents that speak the protocol and are known by name: how each is started, and what of our environment it gets. */
export interface KnownAgent {
  /** The program, looked for on PATH, and its arguments. */
  readonly command: readonly [program: string, ...args: string[]];
  /** The npm package whose program of that name it is. */
  readonly package: string;
  /** What it calls itself when it is started. */
  readonly called: string;
  /** Where it keeps its sessions: a variable that says so, and the folder of its home in which they are otherwise. */
  readonly storage: readonly [variable: string | null, folder: string];
  /** Packages that it does not work without and does not bring along. */
  readonly beside?: readonly string[];
  /** The documented ways to log in and to reach its model. Nothing else of our environment is handed on. */
  readonly variables: readonly RegExp[];
  /** What it starts with unless the settings say otherwise. */
  readonly defaults?: Readonly<Record<string, string>>;
  /** How a person logs in. */
  readonly login: string;
  /** It opens a session for anybody, so that this says nothing of a login. */
  readonly opensForAnybody?: true;
}

const ANTHROPIC = [/^ANTHROPIC_/, /^CLAUDE_CODE_(?:USE_BEDROCK|USE_VERTEX|OAUTH_TOKEN)$/, /^CLAUDE_CONFIG_DIR$/];
const OPENAI = [/^OPENAI_/];
const GOOGLE = [/^GEMINI_/, /^GOOGLE_(?:API_KEY|GEMINI_BASE_URL|GENAI_\w+|CLOUD_PROJECT|CLOUD_LOCATION)$/];

export const KNOWN_AGENTS: Readonly<Record<string, KnownAgent>> = {
  'claude-code': {
    command: ['claude-agent-acp'],
    package: '@agentclientprotocol/claude-agent-acp',
    called: '@agentclientprotocol/claude-agent-acp',
    storage: ['CLAUDE_CONFIG_DIR', '.claude'],
    variables: ANTHROPIC,
    // It asks its model after every turn what the person may say next, with the whole history: nobody here is shown that. And
    // another version in the middle of a conversation is for the person to choose.
    defaults: { CLAUDE_CODE_ENABLE_PROMPT_SUGGESTION: 'false', DISABLE_AUTOUPDATER: '1' },
    login: 'run "claude" and log in there, or set ANTHROPIC_API_KEY',
  },
  codex: {
    command: ['codex-acp'],
    package: '@zed-industries/codex-acp',
    called: 'codex-acp',
    storage: ['CODEX_HOME', '.codex'],
    variables: [...OPENAI, /^CODEX_(?:API_KEY|HOME)$/, /^NO_BROWSER$/],
    login: 'run "codex login", or set OPENAI_API_KEY',
  },
  gemini: {
    command: ['gemini', '--acp'],
    package: '@google/gemini-cli',
    called: 'gemini-cli',
    storage: [null, '.gemini'],
    variables: GOOGLE,
    login: 'run "gemini" and log in there, or set GEMINI_API_KEY',
  },
  opencode: {
    command: ['opencode', 'acp'],
    package: 'opencode-ai',
    called: 'OpenCode',
    storage: ['XDG_DATA_HOME', '.local/share'],
    variables: [...ANTHROPIC, ...OPENAI, ...GOOGLE, /^OPENCODE_/],
    login: 'run "opencode auth login"',
    opensForAnybody: true,
  },
  qwen: {
    command: ['qwen', '--acp'],
    package: '@qwen-code/qwen-code',
    called: 'qwen-code',
    storage: [null, '.qwen'],
    variables: [...OPENAI, /^(?:DASHSCOPE|QWEN)_/],
    login: 'run "qwen" and log in there, or set OPENAI_API_KEY',
  },
  copilot: {
    command: ['copilot', '--acp'],
    package: '@github/copilot',
    called: 'Copilot',
    storage: [null, '.copilot'],
    variables: [/^COPILOT_/, /^(?:GH|GITHUB)_TOKEN$/],
    login: 'run "copilot" and use /login there',
  },
  pi: {
    command: ['pi-acp'],
    package: 'pi-acp',
    called: 'pi-acp',
    storage: [null, '.pi'],
    // Its program "pi" is looked for on PATH.
    beside: ['@earendil-works/pi-coding-agent'],
    variables: [...ANTHROPIC, ...OPENAI, ...GOOGLE, /^PI_/],
    login: 'run "pi" and use /login there',
  },
  goose: {
    command: ['goose', 'acp'],
    package: '@aaif/goose-acp',
    called: 'goose',
    storage: ['XDG_DATA_HOME', '.local/share'],
    variables: [...ANTHROPIC, ...OPENAI, ...GOOGLE, /^GOOSE_/],
    login: 'run "goose configure"',
  },
};

/** The name under which the agent is known that calls itself so; null: none is. */
export function knownByItself(called: string): string | null {
  return Object.entries(KNOWN_AGENTS).find(([, agent]) => agent.called === called)?.[0] ?? null;
}

/** What any agent needs to reach its model from here. */
const ALWAYS = [/^(?:HTTPS?|NO|ALL)_PROXY$/i, /^(?:NODE_EXTRA_CA_CERTS|SSL_CERT_(?:FILE|DIR))$/];

/** The part of our environment that an agent gets beyond what every program gets. */
export function variablesFor(known: KnownAgent | null, ours: NodeJS.ProcessEnv): Record<string, string> {
  const wanted = [...ALWAYS, ...(known?.variables ?? [])];
  const taken: Record<string, string> = {};
  for (const [name, value] of Object.entries(ours)) {
    if (value !== undefined && wanted.some((names) => names.test(name))) taken[name] = value;
  }
  return taken;
}
