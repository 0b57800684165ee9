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

export const anyText = value<string>((one) => typeof one === 'string', 'a text', { type: 'string' });

const isWebAddress = (one: unknown) => typeof one === 'string' && /^https?:$/.test(URL.parse(one)?.protocol ?? '');
const webAddress = value<string>(isWebAddress, 'an address that begins with http:// or https://', text.json);

const pair = object({ name: required(text), value: required(anyText) });
/** As in `.mcp.json`: an object of texts by name; or as in the protocol: a list of names with their values. */
const namedTexts = {
  ...either(byName(anyText), list(pair)),
  read: (given: unknown, at: Path, report: Report): readonly NamedValue[] => {
    const pairs = isObject(given) ? Object.entries(given).map(([name, one]) => ({ name, value: one })) : given;
    const must = 'an object of texts by name, or a list of objects with a "name" and a "value"';
    return list(pair).read(pairs, at, () => report(at, { must }));
  },
};

const PROGRAM = { type: oneOf(['stdio']), command: required(text), args: list(anyText), env: namedTexts };
const ADDRESS = { type: required(oneOf(['http', 'sse'])), url: required(webAddress), headers: namedTexts };
const program = object(PROGRAM);
const address = object(ADDRESS);
const name = required(text);

/**
 * MCP servers in the settings: a list as in the protocol, or an object by name as in `.mcp.json`. An error names the place and what must
 * be there. It never shows the value, which may be a secret.
 */
export const MCP_SERVERS = {
  ...either(byName(either(program, address)), list(either(object({ name, ...PROGRAM }), object({ name, ...ADDRESS })))),
  read(given: unknown, at: Path, report: Report): readonly McpServer[] {
    const withoutValue: Report = (where, wrong) => report(where, 'must' in wrong ? { must: wrong.must } : wrong);
    const servers = readServers(given, at, withoutValue);
    const names = servers.map((server) => server.name);
    const twice = names.find((one, index) => names.indexOf(one) !== index);
    if (twice === undefined) return servers;
    throw report(at, { says: `"${dotted(at)}" has two servers with the name ${JSON.stringify(twice)}` });
  },
};

function readServers(given: unknown, at: Path, report: Report): readonly McpServer[] {
  if (Array.isArray(given)) {
    return given.map((server, index) => {
      const { name: named, ...fields } = fieldsOf(server, [...at, index], report);
      return readServer(name.read(named, [...at, index, 'name'], report), fields, [...at, index], report);
    });
  }
  if (!isObject(given)) throw report(at, { must: 'a list of servers, or an object of them by name' });
  return Object.entries(given).map(([key, server]) => {
    const where = [...at, key];
    return readServer(name.read(key, where, report), fieldsOf(server, where, report), where, report);
  });
}

type Fields = Readonly<Record<string, unknown>>;

function fieldsOf(server: unknown, at: Path, report: Report): Fields {
  if (isObject(server)) return server;
  throw report(at, { must: 'an object' });
}

function readServer(called: string, fields: Fields, at: Path, report: Report): McpServer {
  const { type } = fields;
  if (type === 'http' || type === 'sse') return { name: called, headers: [], ...address.read(fields, at, report) };
  if (type !== undefined && type !== 'stdio') throw report([...at, 'type'], { must: 'stdio, http or sse' });
  if (type === undefined && fields.command === undefined && fields.url !== undefined) {
    throw report([...at, 'type'], { must: 'http or sse for a server with a "url"' });
  }
  const { type: _, ...read } = program.read(fields, at, report);
  return { name: called, args: [], env: [], ...read };
}
