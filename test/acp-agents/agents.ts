// The agents that `npm run test:agents` tests: exact versions, how each is started, and how it is configured to use the stand-in model with a
// made-up key and without a login. docs/acp-agents.md describes the results.

export interface AcpAgent {
  /** Its npm packages with their exact versions. */
  readonly packages: Readonly<Record<string, string>>;
  /** A program of these packages, and its arguments. */
  readonly command: readonly [program: string, ...args: string[]];
  /** The variables that it needs beyond HOME and TMPDIR. `model`: the address of the stand-in model, without a path. */
  env(model: string): Record<string, string>;
  /** The files in the home of the user, by path. */
  files(model: string): Record<string, object>;
  /** The mode in which commands need no permission, where there is one and it is not the first. */
  readonly mode?: string;
  /** The folder in the home where it keeps its sessions. */
  readonly storage: string;
  /** `load`: it opens a session again with its history. `sometimes`: not in the minute in which the session was made. */
  readonly reopens: 'load' | 'sometimes';
  /** Its tool for shell commands, and the arguments of that tool beside the command. */
  readonly shell: readonly [tool: string, others?: object];
}

/** Its version. If it has several packages, each version with the name of the package. */
export function versionOf({ packages }: Pick<AcpAgent, 'packages'>): string {
  const all = Object.entries(packages);
  return all.map(([id, version]) => (all.length > 1 ? `${id.split('/').at(-1)} ${version}` : version)).join(', ');
}

const MODEL = 'stand-in';

export const ACP_AGENTS: Readonly<Record<string, AcpAgent>> = {
  gemini: {
    packages: { '@google/gemini-cli': '0.61.0' },
    // It runs commands without permission only in folders that it trusts.
    command: ['gemini', '--acp', '--skip-trust'],
    env: (model) => ({ GEMINI_API_KEY: 'fake', GOOGLE_GEMINI_BASE_URL: model }),
    files: () => ({
      '.gemini/settings.json': {
        security: { auth: { selectedType: 'gemini-api-key' } },
        privacy: { usageStatisticsEnabled: false },
        general: { enableAutoUpdate: false },
      },
    }),
    mode: 'yolo',
    storage: '.gemini/tmp',
    reopens: 'sometimes',
    shell: ['run_shell_command'],
  },
  opencode: {
    packages: { 'opencode-ai': '1.18.33' },
    command: ['opencode', 'acp'],
    env: () => ({ OPENCODE_DISABLE_MODELS_FETCH: '1', OPENCODE_DISABLE_AUTOUPDATE: '1' }),
    files: (model) => ({
      '.config/opencode/opencode.json': {
        provider: {
          local: {
            npm: '@ai-sdk/openai-compatible',
            name: 'Local',
            options: { baseURL: `${model}/v1`, apiKey: 'fake' },
            models: { [MODEL]: { name: MODEL } },
          },
        },
        enabled_providers: ['local'],
        model: `local/${MODEL}`,
        autoupdate: false,
        share: 'disabled',
      },
    }),
    storage: '.local/share/opencode',
    reopens: 'load',
    shell: ['bash', { description: 'A command' }],
  },
  qwen: {
    packages: { '@qwen-code/qwen-code': '0.24.4' },
    command: ['qwen', '--acp'],
    env: (model) => ({ OPENAI_API_KEY: 'fake', OPENAI_BASE_URL: `${model}/v1`, OPENAI_MODEL: MODEL }),
    files: () => ({
      '.qwen/settings.json': {
        security: { auth: { selectedType: 'openai' } },
        privacy: { usageStatisticsEnabled: false },
        general: { enableAutoUpdate: false },
        // Otherwise it calls the model after every turn to choose memories and to suggest the next prompt.
        memory: { enableManagedAutoMemory: false, enableManagedAutoDream: false },
        ui: { enableFollowupSuggestions: false },
      },
    }),
    mode: 'yolo',
    storage: '.qwen/projects',
    reopens: 'load',
    shell: ['run_shell_command', { is_background: false }],
  },
  copilot: {
    packages: { '@github/copilot': '1.0.102' },
    command: ['copilot', '--acp', '--allow-all-tools'],
    env: (model) => ({
      COPILOT_PROVIDER_BASE_URL: `${model}/v1`,
      COPILOT_PROVIDER_TYPE: 'openai',
      COPILOT_PROVIDER_API_KEY: 'fake',
      COPILOT_MODEL: MODEL,
      COPILOT_OFFLINE: 'true',
    }),
    files: () => ({}),
    storage: '.copilot/session-state',
    reopens: 'load',
    shell: ['bash', { description: 'A command' }],
  },
  pi: {
    packages: { 'pi-acp': '0.0.34', '@earendil-works/pi-coding-agent': '0.87.1' },
    command: ['pi-acp'],
    env: () => ({ PI_OFFLINE: '1' }),
    files: (model) => ({
      '.pi/agent/models.json': {
        providers: {
          local: {
            baseUrl: `${model}/v1`,
            api: 'openai-completions',
            apiKey: 'fake',
            models: [
              {
                id: MODEL,
                name: MODEL,
                reasoning: false,
                input: ['text'],
                contextWindow: 200_000,
                maxTokens: 8_000,
                cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
              },
            ],
          },
        },
      },
      '.pi/agent/settings.json': { defaultProvider: 'local', defaultModel: MODEL },
    }),
    storage: '.pi/agent/sessions',
    reopens: 'load',
    shell: ['bash'],
  },
  goose: {
    packages: { '@aaif/goose-acp': '1.50.0' },
    command: ['goose', 'acp'],
    env: (model) => ({
      GOOSE_PROVIDER: 'openai',
      GOOSE_MODEL: MODEL,
      OPENAI_HOST: model,
      OPENAI_API_KEY: 'fake',
      GOOSE_DISABLE_KEYRING: '1',
      GOOSE_TELEMETRY_ENABLED: 'false',
    }),
    files: () => ({}),
    storage: '.local/share/goose/sessions',
    reopens: 'load',
    shell: ['shell'],
  },
};
