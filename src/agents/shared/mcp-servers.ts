import {
  byName,
  dotted,
  either,
  list,
  object,
  oneOf,
  type Path,
  type Report,
  required,
  text,
  value,
} from '../../core/input/schema.ts';
import { isObject } from '../../core/turn/content.ts';

/** An MCP server in the words of the Agent Client Protocol: a program, or an address. */
export type McpServer = McpProgram | McpAddress;

interface McpProgram {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly env: readonly NamedValue[];
}

interface McpAddress {
  readonly type: 'http' | 'sse';
  readonly name: string;
  readonly url: string;
  readonly headers: readonly NamedValue[];
}

export interface NamedValue {
  readonly name: string;
  readonly value: string;
}

/** Makes the error of what is wrong. */
type Invalid = (what: string) => Error;

export const anyText = value<string>((one) => typeof one === 'string', 'a text', { type: 'string' });
const namedTexts = either(byName(anyText), list(object({ name: required(text), value: required(anyText) })));
const program = { type: oneOf(['stdio']), command: required(text), args: list(anyText), env: namedTexts };
const address = { type: required(oneOf(['http', 'sse'])), url: required(text), headers: namedTexts };
const name = required(text);

/**
 * MCP servers in the settings: a list as the protocol has it, or an object by name as `.mcp.json` has it; `env` and `headers`
 * likewise. Faults say where they are and what should be there, never the value, which may be a secret.
 */
export const MCP_SERVERS = {
  ...either(
    byName(either(object(program), object(address))),
    list(either(object({ name, ...program }), object({ name, ...address }))),
  ),
  read: (servers: unknown, at: Path, report: Report) =>
    parseMcpServers(servers, dotted(at), (says) => report(at, { says })),
};

function parseMcpServers(value: unknown, at: string, invalid: Invalid): readonly McpServer[] {
  const servers = namedIn(value, at, invalid).map(([where, name, fields]) => serverOf(name, fields, where, invalid));
  const names = servers.map(({ name }) => name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) throw invalid(`"${at}" has two servers with the name ${JSON.stringify(twice)}`);
  return servers;
}

type Fields = Readonly<Record<string, unknown>>;

function namedIn(value: unknown, at: string, invalid: Invalid): (readonly [at: string, name: string, Fields])[] {
  const inList = Array.isArray(value);
  if (!inList && !isObject(value)) throw invalid(`"${at}" must be a list of servers, or an object of them by name`);
  return Object.entries(value).map(([key, server]) => {
    const where = inList ? `${at}[${key}]` : `${at}.${key}`;
    if (!isObject(server)) throw invalid(`"${where}" must be an object`);
    if (!inList) return [where, textAt(key, `${at}.`, invalid), server];
    const { name, ...fields } = server;
    return [where, textAt(name, `${where}.name`, invalid), fields];
  });
}

function serverOf(name: string, { type, ...fields }: Fields, at: string, invalid: Invalid): McpServer {
  if (type === 'http' || type === 'sse') {
    const { url, headers = [], ...others } = fields;
    noOthers(others, ['type', 'url', 'headers'], at, invalid);
    return {
      type,
      name,
      url: webAddress(url, `${at}.url`, invalid),
      headers: namedValues(headers, `${at}.headers`, invalid),
    };
  }
  if (type === undefined && fields.command === undefined && fields.url !== undefined) {
    throw invalid(`"${at}.type" must be http or sse for a server with a "url"`);
  }
  if (type !== undefined && type !== 'stdio') throw invalid(`"${at}.type" must be stdio, http or sse`);
  const { command, args = [], env = [], ...others } = fields;
  noOthers(others, ['type', 'command', 'args', 'env'], at, invalid);
  if (!Array.isArray(args) || !args.every((one) => typeof one === 'string')) {
    throw invalid(`"${at}.args" must be a list of texts`);
  }
  return {
    name,
    command: textAt(command, `${at}.command`, invalid),
    args,
    env: namedValues(env, `${at}.env`, invalid),
  };
}

function noOthers(others: Fields, known: readonly string[], at: string, invalid: Invalid): void {
  const [other] = Object.keys(others);
  if (other !== undefined) throw invalid(`"${at}.${other}" is not known; known are ${known.join(', ')}`);
}

function namedValues(value: unknown, at: string, invalid: Invalid): NamedValue[] {
  const pairs = Array.isArray(value) ? value.map(pairOf) : isObject(value) ? Object.entries(value) : [[]];
  return pairs.map(([name, one]) => {
    if (typeof name === 'string' && name !== '' && typeof one === 'string') return { name, value: one };
    throw invalid(`"${at}" must be an object of texts by name, or a list of objects with a "name" and a "value"`);
  });
}

function pairOf(value: unknown): readonly unknown[] {
  return isObject(value) && Object.keys(value).length === 2 ? [value.name, value.value] : [];
}

function textAt(value: unknown, at: string, invalid: Invalid): string {
  if (typeof value === 'string' && value !== '') return value;
  throw invalid(`"${at}" must be a text`);
}

function webAddress(value: unknown, at: string, invalid: Invalid): string {
  if (typeof value === 'string' && /^https?:$/.test(URL.parse(value)?.protocol ?? '')) return value;
  throw invalid(`"${at}" must be an address that begins with http:// or https://`);
}
