// The settings of agents that speak the Agent Client Protocol: the small ones of ../acp/programs, and the real ones that are installed
// in test/agents. All of them use the stand-in model.
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { agentProgram } from '../../program.ts';
import { claudeEnvironment, findClaude, NOT_INSTALLED, packageFolder, userHome } from './claude.ts';

interface Model {
  readonly url: string;
}

/** The settings of one agent, as in the settings file. */
export interface AcpAgentSettings {
  readonly adapter: 'acp';
  readonly command?: readonly string[];
  readonly package?: string;
  readonly env: Readonly<Record<string, string>>;
  readonly options: Readonly<Record<string, unknown>>;
}

/**
 * Node spends most of its start on compiling, so agents use the compile cache of the tests. They inherit no variables and must be given
 * this one.
 */
const { NODE_COMPILE_CACHE } = process.env;
const compileCache: Record<string, string> = NODE_COMPILE_CACHE === undefined ? {} : { NODE_COMPILE_CACHE };

/** A program of ../acp/programs, with its arguments. */
export function smallAgent(
  model: Model,
  home: string,
  [program, ...args]: readonly [string, ...string[]],
  options: Readonly<Record<string, unknown>> = {},
): AcpAgentSettings {
  const command = [process.execPath, agentProgram(program), ...args];
  return { adapter: 'acp', command, env: { ...compileCache, HOME: home, MODEL_URL: model.url }, options };
}

/** The reason to skip a test of this agent; null: the agent is installed. */
export function whyNotInstalled(
  name: '@agentclientprotocol/claude-agent-acp' | '@agentclientprotocol/codex-acp',
): string | null {
  return existsSync(join(packageFolder, 'node_modules', name)) ? null : NOT_INSTALLED;
}

/** Claude behind its ACP program. Shell commands need no permission. */
export function claudeAcp(
  model: Model,
  root: string,
  options: Readonly<Record<string, unknown>> = {},
): AcpAgentSettings {
  const { PATH: _, ...claude } = claudeEnvironment(model, userHome(root, { permissions: { allow: ['Bash'] } }));
  const env = { ...compileCache, ...claude };
  return { adapter: 'acp', package: packageFolder, env, options: { agent: 'claude-code', ...options } };
}

/** The ACP program of Claude. Its package depends on its own copy of Claude. */
export const CLAUDE_ACP = join(packageFolder, 'node_modules/@agentclientprotocol/claude-agent-acp/dist/index.js');
/** The fields of `claude auth status --json` that the ACP program reads. login.test.ts compares them with the real answer. */
const LOGIN_STATUS = { loggedIn: true, authMethod: 'api_key', apiKeySource: 'ANTHROPIC_API_KEY' };

/**
 * `claudeAcp` with a faster start, for tests that are not about the login. At each start, the ACP program starts a second Claude only to
 * ask who is logged in, which takes half as long as the start of the first one. Here a script answers that. Such an agent has no profile
 * without tools: Throughline trusts only the Claude of the package.
 */
export function quickClaudeAcp(
  model: Model,
  root: string,
  options: Readonly<Record<string, unknown>> = {},
): AcpAgentSettings {
  const settings = claudeAcp(model, root, options);
  const program = join(root, 'claude-logged-in');
  writeFileSync(
    program,
    `#!/bin/sh
if [ "$1 $2" = "auth status" ]; then echo '${JSON.stringify(LOGIN_STATUS)}'; exit; fi
exec '${findClaude(CLAUDE_ACP)?.program}' "$@"
`,
    { mode: 0o755 },
  );
  return { ...settings, env: { ...settings.env, CLAUDE_CODE_EXECUTABLE: program } };
}

/** This Codex does not know the model and offers it plain tools. To models that it knows it offers one tool, which runs scripts. */
const UNKNOWN_MODEL = 'gpt-5.4';

/**
 * Codex behind its ACP program.
 * - It has full access, because its sandbox needs a program that not every machine has.
 * - Its TMPDIR is outside of its home. Otherwise it refuses to run a shell.
 * - It has no plugins. Otherwise it looks for them on GitHub at each start.
 * - `lsb_release` fails, so Codex reads the name of the system from a file. The real one is a script that starts twenty programs, and
 *   Codex calls it twice.
 */
export function codexAcp(
  model: Model,
  root: string,
  options: Readonly<Record<string, unknown>> = {},
  modelName = UNKNOWN_MODEL,
): AcpAgentSettings {
  const home = join(root, 'codex-home');
  const temporary = join(root, 'codex-tmp');
  mkdirSync(join(home, '.codex'), { recursive: true });
  mkdirSync(temporary, { recursive: true });
  const programs = join(home, 'bin');
  mkdirSync(programs, { recursive: true });
  writeFileSync(join(programs, 'lsb_release'), '#!/bin/sh\nexit 1\n', { mode: 0o755 });
  writeFileSync(
    join(home, '.codex', 'config.toml'),
    `model = "${modelName}"
model_provider = "standin"
features.plugins = false
[model_providers.standin]
name = "stand-in"
base_url = "${model.url}/v1"
wire_api = "responses"
env_key = "STANDIN_KEY"
`,
  );
  const PATH = [programs, process.env.PATH].join(delimiter);
  const env = { ...compileCache, PATH, HOME: home, TMPDIR: temporary, STANDIN_KEY: 'fake', NO_BROWSER: '1' };
  const allOptions = { agent: 'codex', mode: 'agent-full-access', ...options };
  return { adapter: 'acp', package: packageFolder, env, options: allOptions };
}

/** A line of a prompt: the stand-in model calls the shell tool of Claude and of the small agents, even if it is not offered. */
export const bash = (command: string) => `model: tool! Bash ${JSON.stringify({ command })}`;
/** The same for the shell tool of Codex. */
export const execCommand = (cmd: string) => `model: tool! exec_command ${JSON.stringify({ cmd })}`;
