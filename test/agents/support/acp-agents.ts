// Agents that speak the Agent Client Protocol, as tests start them: the small ones of ../acp/programs, and the real ones that
// test/agents has installed. All of them talk to the stand-in model.
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { agentProgram } from '../../program.ts';
import { claudeEnvironment, findClaude, NOT_INSTALLED, packageFolder, userHome } from './claude.ts';

interface Model {
  readonly url: string;
}

/** How an agent is set, as in the settings file. */
export interface AcpAgentSettings {
  readonly adapter: 'acp';
  readonly command?: readonly string[];
  readonly package?: string;
  readonly env: Readonly<Record<string, string>>;
  readonly options: Readonly<Record<string, unknown>>;
}

/** Most of a start is compiling; agents get only the variables that they are given. */
const { NODE_COMPILE_CACHE } = process.env;
const cache: Record<string, string> = NODE_COMPILE_CACHE === undefined ? {} : { NODE_COMPILE_CACHE };

/** One of the programs of the tests, with its arguments. */
export function ownAgent(
  model: Model,
  home: string,
  [program, ...args]: readonly [string, ...string[]],
  options: Readonly<Record<string, unknown>> = {},
): AcpAgentSettings {
  const command = [process.execPath, agentProgram(program), ...args];
  return { adapter: 'acp', command, env: { ...cache, HOME: home, MODEL_URL: model.url }, options };
}

/** Why the real agents cannot be tried here; null: they can. */
export function missing(
  name: '@agentclientprotocol/claude-agent-acp' | '@agentclientprotocol/codex-acp',
): string | null {
  return existsSync(join(packageFolder, 'node_modules', name)) ? null : NOT_INSTALLED;
}

/** Claude behind its ACP program; shell commands need no permission. */
export function claudeAcp(
  model: Model,
  root: string,
  options: Readonly<Record<string, unknown>> = {},
): AcpAgentSettings {
  const { PATH: _, ...claude } = claudeEnvironment(model, userHome(root, { permissions: { allow: ['Bash'] } }));
  const env = { ...cache, ...claude };
  return { adapter: 'acp', package: packageFolder, env, options: { agent: 'claude-code', ...options } };
}

/** The ACP program of Claude. It has a Claude of its own. */
export const CLAUDE_ACP = join(packageFolder, 'node_modules/@agentclientprotocol/claude-agent-acp/dist/index.js');
/** What `claude auth status --json` says in that environment, as far as its ACP program reads it; login.test.ts compares it. */
const LOGIN_STATUS = { loggedIn: true, authMethod: 'api_key', apiKeySource: 'ANTHROPIC_API_KEY' };

/**
 * The same, where its login is not the point. At each start its ACP program starts another Claude, which takes half as long as the first,
 * only to ask who is logged in; here a script answers that. Without its profile without tools: Throughline trusts only its own Claude.
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

/** A model that this Codex does not know. For those that it knows, all tools are functions of a script that the model writes. */
const PLAIN_MODEL = 'gpt-5.4';

/**
 * Codex behind its ACP program. In full access, because its sandbox needs a program that not every machine has; its TMPDIR lies
 * apart from its home, or it refuses to run a shell. Without plugins: at each start it would look for them on GitHub. And it would ask
 * `lsb_release` twice for the name of the system, a script that starts twenty programs; without, it reads a file.
 */
export function codexAcp(
  model: Model,
  root: string,
  options: Readonly<Record<string, unknown>> = {},
  name = PLAIN_MODEL,
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
    `model = "${name}"
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
  const env = { ...cache, PATH, HOME: home, TMPDIR: temporary, STANDIN_KEY: 'fake', NO_BROWSER: '1' };
  const all = { agent: 'codex', mode: 'agent-full-access', ...options };
  return { adapter: 'acp', package: packageFolder, env, options: all };
}
