import { existsSync, readFileSync, realpathSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, isAbsolute, join } from 'node:path';
import { realPath } from '../../shared/paths.ts';
import type { InstallNotes, ProvedProfile } from './description.ts';

/** The name that Zed's program for Codex gives itself. Its last version is 0.16.0. */
export const OLD_CODEX_ACP = 'codex-acp';

/** npm leaves out the program itself when optional packages are turned off. */
export const CODEX_INSTALL: InstallNotes = {
  tested: '2.6.0',
  megabytes: 450,
  isComplete: (folder) =>
    existsSync(join(folder, 'node_modules', '@openai', `codex-${process.platform}-${process.arch}`, 'package.json')),
};

/**
 * How codex-acp 2.6.0 is started so that no tool can run. With "none" as its exec server, Codex has nowhere to act: it has no shell,
 * patches no files and starts no MCP server. Its modes do not help: the one called read-only runs commands. Whatever acts without the
 * exec server is turned off by a setting. Where that is not possible, there is no profile.
 */
export const CODEX_WITHOUT_TOOLS: ProvedProfile = {
  version: '2.6.0',
  profile: { kind: 'start', env: environmentFor, title: 'A replayed conversation' },
  unless: ({ env, ownCommand }) => ownCommand || actsAnyway(env),
};

/** Features that run something, or have the model run something. */
const FEATURES = [
  'apps',
  'artifact',
  'browser_use',
  'browser_use_external',
  'code_mode',
  'code_mode_only',
  'computer_use',
  'goals',
  'hooks',
  'image_generation',
  'in_app_browser',
  'memories',
  'multi_agent',
  'plugins',
  'remote_plugin',
  'request_permissions_tool',
  'shell_snapshot',
  'shell_tool',
  'skill_mcp_dependency_install',
  'standalone_web_search',
  'tool_suggest',
  'unified_exec',
  'view_image',
];

const CONFIG = {
  features: {
    ...Object.fromEntries(FEATURES.map((name) => [name, false])),
    // Models may have it without the feature.
    multi_agent_v2: { enabled: false, disable_native_tools: true },
  },
  notify: [],
  web_search: 'disabled',
};

function environmentFor(cwd: string, given: Readonly<Record<string, string>>): Record<string, string> | null {
  // codex-acp trusts every directory that it works in. So settings of a project count there, and may name MCP servers with a URL.
  const own = realPath(codexHome(given));
  const folders = [cwd, realpathSync(cwd)].flatMap(upwards).map((folder) => join(folder, '.codex'));
  if (folders.some((folder) => existsSync(join(folder, 'config.toml')) && realPath(folder) !== own)) return null;
  return { CODEX_EXEC_SERVER_URL: 'none', CODEX_CONFIG: JSON.stringify(CONFIG) };
}

function upwards(folder: string): string[] {
  const above = dirname(folder);
  return above === folder ? [folder] : [folder, ...upwards(above)];
}

/** Settings of the machine override ours. */
const MACHINE_SETTINGS = '/etc/codex';

/** Whether something here overrides the variables, or is not turned off by them. */
function actsAnyway(env: Readonly<Record<string, string>>): boolean {
  // The first names another Codex than the one that was tried. The second is what we would set.
  if ('CODEX_PATH' in env || 'CODEX_CONFIG' in env) return true;
  const home = codexHome(env);
  // On other systems, the settings of the machine are in places that we did not examine.
  if (process.platform !== 'linux' || !isAbsolute(home) || existsSync(MACHINE_SETTINGS)) return true;
  // This file overrides the variable.
  return existsSync(join(home, 'environments.toml')) || mayUseRemoteServers(join(home, 'config.toml'));
}

/** Where Codex keeps its sessions and settings. */
export function codexHome(env: Readonly<Record<string, string>>): string {
  return env.CODEX_HOME ?? join(env.HOME ?? homedir(), '.codex');
}

/** MCP servers that are programs are not started, but those with a URL are called. TOML escapes could hide the word. */
function mayUseRemoteServers(file: string): boolean {
  try {
    return /\burl\b|\\[ux]/i.test(readFileSync(file, 'utf8'));
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ENOENT';
  }
}
