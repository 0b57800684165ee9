import { expect, test } from 'vitest';
import { faultOf } from '../../../test/values/thrown.ts';
import { invalidValue } from '../../core/input/schema.ts';
import { MCP_SERVERS } from './mcp-servers.ts';

const parse = (value: unknown) => MCP_SERVERS.read(value, ['servers'], invalidValue());

const PARSED = [
  { name: 'notes', command: 'npx', args: ['-y', 'notes'], env: [{ name: 'TOKEN', value: 'x' }] },
  { name: 'bare', command: 'bare', args: [], env: [] },
  { type: 'http', name: 'web', url: 'https://a.example/mcp', headers: [{ name: 'Authorization', value: 'Bearer x' }] },
  { type: 'sse', name: 'old', url: 'http://127.0.0.1:1/sse', headers: [] },
];

test('servers in the format of the protocol are read', () => {
  expect(parse(PARSED)).toEqual(PARSED);
  expect(parse([{ name: 'bare', command: 'bare' }])).toEqual([PARSED[1]]);
  expect(parse([])).toEqual([]);
});

test('servers in the format of .mcp.json are read', () => {
  const servers = {
    notes: { type: 'stdio', command: 'npx', args: ['-y', 'notes'], env: { TOKEN: 'x' } },
    bare: { command: 'bare' },
    web: { type: 'http', url: 'https://a.example/mcp', headers: { Authorization: 'Bearer x' } },
    old: { type: 'sse', url: 'http://127.0.0.1:1/sse' },
  };
  expect(parse(servers)).toEqual(PARSED);
});

const SECRET = 'secret-of-somebody';

test.each([
  [SECRET, /^"servers" must be a list of servers, or an object of them by name\.$/],
  [[SECRET], /^"servers\[0\]" must be an object\.$/],
  [{ notes: null }, /^"servers\.notes" must be an object\.$/],
  [[{ command: 'x', env: { TOKEN: SECRET } }], /^"servers\[0\]\.name" must be a non-empty text\.$/],
  [{ '': { command: 'x' } }, /^"servers\." must be a non-empty text\.$/],
  [{ notes: { name: 'other', command: 'x' } }, /^"servers\.notes\.name" is not known; known are type, command, args/],
  [[{ name: 'notes' }], /^"servers\[0\]\.command" must be a non-empty text\.$/],
  [{ notes: { command: ['x'] } }, /^"servers\.notes\.command" must be a non-empty text\.$/],
  [{ notes: { command: 'x', args: SECRET } }, /^"servers\.notes\.args" must be a list\.$/],
  [{ notes: { command: 'x', args: [1] } }, /^"servers\.notes\.args\[0\]" must be a text\.$/],
  [{ notes: { command: 'x', env: SECRET } }, /^"servers\.notes\.env" must be an object of texts by name, or a list/],
  [{ notes: { command: 'x', env: { TOKEN: [SECRET] } } }, /^"servers\.notes\.env" must be/],
  [{ notes: { command: 'x', env: [{ name: SECRET }] } }, /^"servers\.notes\.env" must be/],
  [{ notes: { command: 'x', env: [{ name: 'A', value: SECRET, more: 1 }] } }, /^"servers\.notes\.env" must be/],
  [{ notes: { command: 'x', cwd: '/' } }, /^"servers\.notes\.cwd" is not known; known are type, command, args, env\.$/],
  [{ notes: { type: 'ws', url: SECRET } }, /^"servers\.notes\.type" must be stdio, http or sse\.$/],
  [{ notes: { url: `https://a.example/?key=${SECRET}` } }, /^"servers\.notes\.type" must be http or sse for a server/],
  [{ notes: { type: 'http', url: SECRET } }, /^"servers\.notes\.url" must be an address that begins with http/],
  [{ notes: { type: 'http', url: `file:///${SECRET}` } }, /^"servers\.notes\.url" must be an address/],
  [{ notes: { type: 'sse', url: 'http://a.example', headers: { A: [SECRET] } } }, /^"servers\.notes\.headers" must be/],
  [
    { notes: { type: 'http', url: 'http://a.example', env: {} } },
    /"servers\.notes\.env" is not known; known are type, url/,
  ],
  [[PARSED[0], PARSED[1], PARSED[0]], /^"servers" has two servers with the name "notes"\.$/],
])('the message names the field, and never contains the value: %#', (value, message) => {
  const fault = faultOf(() => parse(value));
  expect(fault?.message).toMatch(message);
  expect(fault?.message).not.toContain(SECRET);
});
