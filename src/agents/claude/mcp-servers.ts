import { isObject } from '../../core/content.ts';
import { asSentence, ThroughlineError } from '../../core/errors.ts';
import type { McpServer, NamedValue } from '../shared/mcp-servers.ts';
import { isSince } from './version.ts';

/** The first version that was seen to know the request. 2.0.60 and 1.0.128 pass over it, and would be waited for without end. */
const TAKEN_SINCE = [2, 0, 76] as const;

/**
 * What to give to a session: none without tools, because theirs are tools as well. Throws `agent_unavailable` for a version that takes
 * none, or is started anew for every prompt (`warm`: it is not).
 */
export function serversFor(
  servers: readonly McpServer[],
  noTools: boolean,
  { version, warm }: { readonly version: string; readonly warm: boolean },
): readonly McpServer[] {
  if (noTools || servers.length === 0) return [];
  if (!warm || !isSince(version, TAKEN_SINCE)) throw cannotBeGiven(`version ${version} is too old`);
  return servers;
}

/** What Claude said to a request; null: it ended before it said anything. */
export type ServersAnswer =
  | { readonly ok: true; readonly response: unknown }
  | { readonly ok: false; readonly error: string }
  | null;

/**
 * Gives the servers to a Claude that is up, through its input, where nobody else can read their secrets; it answers when they
 * are connected. False: it has ended. Throws `agent_unavailable` when one is not there: Claude would go on without its tools.
 */
export async function giveServers(
  servers: readonly McpServer[],
  tell: (servers: Readonly<Record<string, object>>) => Promise<ServersAnswer>,
): Promise<boolean> {
  if (servers.length === 0) return true;
  const answer = await tell(byName(servers));
  if (answer === null) return false;
  if (!answer.ok) throw cannotBeGiven(withoutSecrets(answer.error, servers));
  const errors = isObject(answer.response) && isObject(answer.response.errors) ? answer.response.errors : {};
  const failed = Object.entries(errors).map(([name, why]) => `"${name}": ${String(why)}`);
  if (failed.length === 0) return true;
  const message = `An MCP server of Claude’s did not come up. ${withoutSecrets(failed.join('; '), servers)}`;
  throw new ThroughlineError('agent_unavailable', asSentence(message), {
    hint: 'Check the agent’s "options.mcpServers", or leave the server out.',
  });
}

function cannotBeGiven(why: string): ThroughlineError {
  return new ThroughlineError('agent_unavailable', asSentence(`This Claude cannot be given MCP servers: ${why}`), {
    hint: 'Update it, run "throughline agents install claude", or leave out "options.mcpServers".',
  });
}

function byName(servers: readonly McpServer[]): Record<string, object> {
  return Object.fromEntries(
    servers.map(({ name, ...server }) => [
      name,
      'command' in server
        ? { type: 'stdio', ...server, env: valuesByName(server.env) }
        : { ...server, headers: valuesByName(server.headers) },
    ]),
  );
}

function valuesByName(values: readonly NamedValue[]): Record<string, string> {
  return Object.fromEntries(values.map(({ name, value }) => [name, value]));
}

/** Shorter ones hide nothing, and are part of too many words. */
const SHORTEST_SECRET = 4;

/** What Claude says of a server may repeat what it was given. */
function withoutSecrets(words: string, servers: readonly McpServer[]): string {
  const secrets = servers
    .flatMap((server) => ('command' in server ? server.env : [...server.headers, ...inAddress(server.url)]))
    .flatMap(({ value }) => [value, ...value.split(/\s+/)]) // "Bearer TOKEN"
    .filter((value) => value.length >= SHORTEST_SECRET)
    .sort((a, b) => b.length - a.length);
  return secrets.reduce((text, secret) => text.replaceAll(secret, '…'), words);
}

function inAddress(url: string): NamedValue[] {
  const { password, searchParams } = new URL(url);
  return [['password', password] as const, ...searchParams].map(([name, value]) => ({ name, value }));
}
