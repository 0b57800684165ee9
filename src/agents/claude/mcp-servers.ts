import { asSentence, ThroughlineError } from '../../core/errors.ts';
import { asObject } from '../shared/json.ts';
import type { McpServer, NamedValue } from '../shared/mcp-servers.ts';
import type { ControlAnswer } from './connection.ts';

/**
 * Sends the servers to a running Claude through its input, where nobody else can read their secrets. Claude answers when they
 * are connected. Returns false when Claude has ended. Throws `agent_unavailable` when one failed: Claude would continue without it.
 */
export async function giveServers(
  servers: readonly McpServer[],
  tell: (servers: Readonly<Record<string, object>>) => Promise<ControlAnswer>,
): Promise<boolean> {
  if (servers.length === 0) return true;
  const answer = await tell(byName(servers));
  if (answer === null) return false;
  if (!answer.ok) throw refusedServers(withoutSecrets(answer.error, servers));
  const errors = asObject(asObject(answer.response).errors);
  const failed = Object.entries(errors).map(([name, why]) => `"${name}": ${String(why)}`);
  if (failed.length === 0) return true;
  const message = `An MCP server did not start. ${withoutSecrets(failed.join('; '), servers)}`;
  throw new ThroughlineError('agent_unavailable', asSentence(message), {
    hint: 'Check the agent’s "options.mcpServers", or remove the server.',
  });
}

function refusedServers(why: string): ThroughlineError {
  return new ThroughlineError('agent_unavailable', asSentence(`Claude refused the MCP servers: ${why}`), {
    hint: 'Run "throughline agents install claude" for the tested version, or remove "options.mcpServers".',
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

/** Shorter values are no secrets, and occur in too many words. */
const SHORTEST_SECRET = 4;

/** Claude's message about a server may repeat the values that it was given. */
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
