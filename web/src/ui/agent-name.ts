/** What people call the agents that Throughline knows by name. */
const NAMES: Readonly<Record<string, string>> = {
  claude: 'Claude Code',
  'claude-code': 'Claude Code',
  codex: 'Codex',
  gemini: 'Gemini CLI',
  opencode: 'OpenCode',
  qwen: 'Qwen Code',
  copilot: 'GitHub Copilot',
  pi: 'Pi',
  goose: 'Goose',
};

/** An agent as people call it, or by its name in the settings. */
export function agentName(agent: string): string {
  return NAMES[agent] ?? agent;
}
