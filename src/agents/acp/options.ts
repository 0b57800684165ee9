import { isAbsolute } from 'node:path';
import { about, byName, type Output, object, orNull, required, text, value, whole } from '../../core/input/schema.ts';
import { parseOptions } from '../../core/input/settings.ts';
import { CONFIG_VALUE } from '../../core/turn/choices.ts';
import { MCP_SERVERS } from '../shared/mcp-servers.ts';

const ms = whole({ least: 0, of: ' of milliseconds' });

/** What `options` of an ACP agent may hold. */
export const ACP_OPTIONS = object({
  agent: about('The name under which it is known. Default: its own name, if that is a known one.', orNull(text)),
  mode: about("The mode of its sessions. Default: the agent's own choice.", orNull(text)),
  config: about('Config options by their id.', byName(CONFIG_VALUE)),
  mcpServers: about('MCP servers for every session, by name as in .mcp.json, or a list. Default: none.', MCP_SERVERS),
  directories: about(
    'Additional directories in which it may act.',
    value<readonly string[]>(
      (paths) => Array.isArray(paths) && paths.every((one) => typeof one === 'string' && isAbsolute(one)),
      'a list of absolute paths',
      { type: 'array', items: { type: 'string', pattern: '^/' } },
    ),
  ),
  auth: about('The id of the login method to use before a session is opened. Default: none.', orNull(text)),
  window: about(
    "The model's window in tokens. Default: what the agent reports.",
    orNull(whole({ least: 1, of: ' of tokens' })),
  ),
  noTools: about(
    'A mode in which no tool can run, which you tested on exactly this version.',
    orNull(object({ version: required(text), mode: required(text) })),
  ),
  openMs: about('How long the agent may take to open a session. Default 120000.', ms),
  silentMs: about('How long it may send nothing while it opens a session again. Default 60000.', ms),
  quietMs: about('After a load: how long without an update counts as the end. Default 2000.', ms),
  lateMs: about('After a load: how long to wait in total. Default 30000.', ms),
  cancelGraceMs: about('How long it may take to stop when a turn is cancelled. Default 5000.', ms),
});

/** They apply to every session, also after a restore. Null: not set. */
export type AcpOptions = Required<Output<typeof ACP_OPTIONS>>;

export const ACP_DEFAULTS: AcpOptions = {
  agent: null,
  mode: null,
  config: {},
  mcpServers: [],
  directories: [],
  auth: null,
  window: null,
  noTools: null,
  openMs: 120_000,
  silentMs: 60_000,
  quietMs: 2_000,
  lateMs: 30_000,
  cancelGraceMs: 5_000,
};

/** Fills in the defaults. Throws `invalid` that names the option and what it may be. */
export function parseAcpOptions(agent: string, input: unknown): AcpOptions {
  return { ...ACP_DEFAULTS, ...parseOptions(ACP_OPTIONS, agent, input) };
}
