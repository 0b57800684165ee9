import { existsSync, readFileSync, realpathSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, isAbsolute, join } from 'node:path';

/*
 * How codex-acp 0.16.0 is started so that no tool can run. With "none" for the server that executes things, Codex has nothing to
 * act in: it knows no shell, patches no files and starts no MCP server. Its modes are no help: the one that is called read-only runs
 * commands. What acts without that is turned off, one by one; what cannot be turned off from here takes the profile away.
 */
export const CODEX_ENV = { CODEX_EXEC_SERVER_URL: 'none' } as const;

const FEATURES = [
  'shell_tool',
  'unified_exec',
  'shell_snapshot',
  'js_repl',
  'code_mode',
  'multi_agent',
  'hooks',
  'plugins',
  'apps',
  'memories',
  'goals',
  'tool_search',
  'tool_suggest',
  'image_generation',
];

export function codexArgs(cwd: string): string[] {
  const settings = [...FEATURES.map((name) => `features.${name}=false`), 'web_search="disabled"', 'notify=[]'];
  return [...settings, `projects={${untrusted(cwd)}}`].flatMap((setting) => ['-c', setting]);
}

/** The settings of a project count where a person trusts it. Trust goes by folder, and there may be settings in each above, too. */
function untrusted(cwd: string): string {
  const folders = new Set([cwd, realpathSync(cwd)].flatMap(upwards));
  return [...folders].map((folder) => `${JSON.stringify(folder)}={trust_level="untrusted"}`).join(',');
}

function upwards(folder: string): string[] {
  const above = dirname(folder);
  return above === folder ? [folder] : [folder, ...upwards(above)];
}

/** Settings of the machine, which count more than what a program is started with. */
const OF_THE_MACHINE = '/etc/codex';

/** Whether something here outweighs what Codex is started with. */
export function codexActsAllTheSame(env: Readonly<Record<string, string>>): boolean {
  const home = env.CODEX_HOME ?? join(env.HOME ?? homedir(), '.codex');
  // Elsewhere, settings of the machine come from places that were not looked at.
  if (process.platform !== 'linux' || !isAbsolute(home) || existsSync(OF_THE_MACHINE)) return true;
  // Says what there is to act in, whatever the variable says.
  return existsSync(join(home, 'environments.toml')) || mayHaveServersElsewhere(join(home, 'config.toml'));
}

/** An MCP server that is a program is not started; one at an address is asked all the same. Words can be hidden by escapes. */
function mayHaveServersElsewhere(file: string): boolean {
  try {
    return /\burl\b|\\[ux]/i.test(readFileSync(file, 'utf8'));
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ENOENT';
  }
}
