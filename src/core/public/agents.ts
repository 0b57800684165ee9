/**
 * Agents that are known by name, and the command that installs each. An installed agent is found without any setting.
 * `throughline agents install` installs the version that our tests use, into the data home.
 */
export const INSTALL_COMMANDS: Readonly<Record<string, string>> = {
  claude: 'throughline agents install claude',
  codex: 'throughline agents install codex',
  gemini: 'npm install -g @google/gemini-cli',
  opencode: 'npm install -g opencode-ai',
  qwen: 'npm install -g @qwen-code/qwen-code',
  copilot: 'npm install -g @github/copilot',
  // It looks for the program "pi" on PATH.
  pi: 'npm install -g pi-acp @earendil-works/pi-coding-agent',
  goose: 'npm install -g @aaif/goose-acp',
  'claude-code': 'npm install -g @agentclientprotocol/claude-agent-acp',
};
