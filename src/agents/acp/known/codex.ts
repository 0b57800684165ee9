import { existsSync, readFileSync, realpathSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, isAbsolute, join } from 'node:path';
import type { ProvedProfile } from './description.ts';

/**
 * How codex-acp 0.16.0 is started so that no tool can run. With "none" as its exec server, Codex has nowhere to act: it has no shell,
 * patches no files and starts no MCP server. Its modes do not help: the one called read-only runs commands. Whatever acts without the
 * exec server is turned off by a setting. Where that is not possible, there is no profile.
 */
export const CODEX_WITHOUT_TOOLS: ProvedProfile = {
  version: '0.16.0',
  profile: { kind: 'start', args: argumentsFor, env: { CODEX_EXEC_SERVER_URL: 'none' } },
  unless: ({ env, ownCommand }) => ownCommand || actsAnyway(env),
};

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

function argumentsFor(cwd: string): string[] {
  const settings = [...FEATURES.map((name) => `features.${name}=false`), 'web_search="disabled"', 'notify=[]'];
  return [...settings, `projects={${untrusted(cwd)}}`].flatMap((setting) => ['-c', setting]);
}

/** Codex reads a project's settings when a person trusts its folder. Every folder above may have settings as well. */
function untrusted(cwd: string): string {
  const folders = new Set([cwd, realpathSync(cwd)].flatMap(upwards));
  return [...folders].map((folder) => `${JSON.stringify(folder)}={trust_level="untrusted"}`).join(',');
}

function upwards(folder: string): string[] {
  const above = dirname(folder);
  return above === folder ? [folder] : [folder, ...upwards(above)];
}

/** Settings of the machine override the arguments. */
const MACHINE_SETTINGS = '/etc/codex';

/** Whether something here overrides the arguments and variables. */
function actsAnyway(env: Readonly<Record<string, string>>): boolean {
  const home = env.CODEX_HOME ?? join(env.HOME ?? homedir(), '.codex');
  // On other systems, the settings of the machine are in places that we did not examine.
  if (process.platform !== 'linux' || !isAbsolute(home) || existsSync(MACHINE_SETTINGS)) return true;
  // This file overrides the variable.
  return existsSync(join(home, 'environments.toml')) || mayUseRemoteServers(join(home, 'config.toml'));
}

/** MCP servers that are programs are not started, but those with a URL are called. TOML escapes could hide the word. */
function mayUseRemoteServers(file: string): boolean {
  try {
    return /\burl\b|\\[ux]/i.test(readFileSync(file, 'utf8'));
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ENOENT';
  }
}
