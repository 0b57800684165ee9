import { dirname, isAbsolute, join } from 'node:path';
import type { Folder, OpenSandbox } from '../../../ports/sandbox.ts';
import type { InstallNotes, ProvedProfile } from './description.ts';
import { homeOf, type Surroundings } from './surroundings.ts';

/** The name that Zed's program for Codex gives itself. Its last version is 0.16.0. */
export const OLD_CODEX_ACP = 'codex-acp';

/** npm leaves out the program itself when optional packages are turned off. */
export const CODEX_INSTALL: InstallNotes = {
  tested: '2.6.0',
  megabytes: 450,
  needs: `@openai/codex-${process.platform}-${process.arch}`,
};

/**
 * How codex-acp 2.6.0 is started so that no tool can run. With "none" as its exec server, Codex has no shell, patches no files and starts
 * no MCP server. Its modes do not help: the one called read-only runs commands. Whatever acts without the exec server is turned off by a
 * setting. Where that is not possible, there is no profile.
 */
export const CODEX_WITHOUT_TOOLS: ProvedProfile = {
  version: '2.6.0',
  profile: { kind: 'start', env: environmentFor, title: 'A replayed conversation' },
  unless: async ({ env, ownCommand }, sandbox) => ownCommand || actsAnyway({ env, sandbox }),
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

async function environmentFor(surroundings: Surroundings): Promise<Record<string, string> | null> {
  const { sandbox } = surroundings;
  // codex-acp trusts every directory that it works in. So settings of a project count there, and may name MCP servers with a URL.
  const own = await sandbox.realPath(codexHome(surroundings));
  for (const folder of upwards(sandbox.work)) {
    if (await hasSettings(sandbox, folder, own)) return null;
  }
  return { CODEX_EXEC_SERVER_URL: 'none', CODEX_CONFIG: JSON.stringify(CONFIG) };
}

/** Whether a folder has settings for Codex that are not those of its own home. A link in their place counts: it may lead anywhere. */
async function hasSettings(sandbox: OpenSandbox, path: string, own: string): Promise<boolean> {
  const folder = await visibleFolder(sandbox, path);
  if (folder === null) return false;
  const kind = (await folder.stat('.codex'))?.kind;
  if (kind === undefined) return false;
  if (kind === 'folder' && (await folder.stat('.codex/config.toml')) === null) return false;
  return (await sandbox.realPath(join(path, '.codex'))) !== own;
}

/** Null: it is not visible in the sandbox, so Codex does not see it either. */
async function visibleFolder(sandbox: OpenSandbox, path: string): Promise<Folder | null> {
  try {
    return await sandbox.folder(path);
  } catch {
    return null;
  }
}

function upwards(folder: string): string[] {
  const above = dirname(folder);
  return above === folder ? [folder] : [folder, ...upwards(above)];
}

/** Whether something here overrides the variables, or is not turned off by them. */
async function actsAnyway(surroundings: Surroundings): Promise<boolean> {
  const { sandbox, env } = surroundings;
  // The first names another Codex than the one that was tried. The second is what we would set.
  if ('CODEX_PATH' in env || 'CODEX_CONFIG' in env) return true;
  const home = codexHome(surroundings);
  if (!isAbsolute(home)) return true;
  try {
    const system = await sandbox.folder('/');
    // The settings of the machine override ours. On other systems than Linux, they are in places that we did not examine.
    if ((await system.stat('proc/version')) === null || (await system.stat('etc/codex')) !== null) return true;
    const folder = await sandbox.folder(home);
    // The first of these files overrides the variable.
    return (await folder.stat('environments.toml')) !== null || (await mayUseRemoteServers(folder));
  } catch {
    // A file that cannot be read may contain anything.
    return true;
  }
}

/** Where Codex keeps its sessions and settings. */
export function codexHome(surroundings: Surroundings): string {
  return surroundings.env.CODEX_HOME ?? join(homeOf(surroundings), '.codex');
}

/** More than any person writes. */
const MOST_CONFIG_BYTES = 1024 * 1024;

/** MCP servers that are programs are not started, but those with a URL are called. TOML escapes could hide the word. */
async function mayUseRemoteServers(home: Folder): Promise<boolean> {
  const file = await home.read('config.toml', { most: MOST_CONFIG_BYTES });
  if (file === null) return false;
  return file.size > MOST_CONFIG_BYTES || /\burl\b|\\[ux]/i.test(Buffer.from(file.bytes).toString('utf8'));
}
