import { expect, test } from 'vitest';
import type { ControlAnswer } from './connection.ts';
import { giveServers } from './mcp-servers.ts';

const SERVERS = [
  { name: 'notes', command: 'npx', args: ['notes'], env: [{ name: 'TOKEN', value: 'token-of-notes' }] },
  {
    type: 'http' as const,
    name: 'web',
    url: 'https://me:password-of-web@a.example/mcp?key=key-of-web',
    headers: [{ name: 'Authorization', value: 'Bearer header-of-web' }],
  },
];
const answered = (response: unknown) => async (): Promise<ControlAnswer> => ({ ok: true, response });

test('servers are sent by name, in Claude’s form', async () => {
  let told: object = {};
  await giveServers(SERVERS, async (servers) => {
    told = servers;
    return { ok: true, response: {} };
  });
  expect(told).toEqual({
    notes: { type: 'stdio', command: 'npx', args: ['notes'], env: { TOKEN: 'token-of-notes' } },
    web: { type: 'http', url: SERVERS[1]?.url, headers: { Authorization: 'Bearer header-of-web' } },
  });
});

test('without servers nothing is sent', async () => {
  expect(await giveServers([], () => expect.unreachable())).toBe(true);
});

test('the result says whether Claude still runs', async () => {
  expect(await giveServers(SERVERS, answered({ errors: {} }))).toBe(true);
  expect(await giveServers(SERVERS, async () => null)).toBe(false);
});

test('servers that did not start are named with the reason, and without secrets', async () => {
  const why = 'no password-of-web, key-of-web, Bearer header-of-web, header-of-web';
  const giving = giveServers(SERVERS, answered({ errors: { notes: 'wrong token-of-notes', web: why } }));
  await expect(giving).rejects.toMatchObject({
    code: 'agent_unavailable',
    message: 'An MCP server did not start. "notes": wrong …; "web": no …, …, …, …',
    hint: expect.stringContaining('options.mcpServers'),
  });
});

test('a refusal is reported with Claude’s reason', async () => {
  await expect(giveServers(SERVERS, async () => ({ ok: false, error: 'what?' }))).rejects.toMatchObject({
    code: 'agent_unavailable',
    message: 'Claude refused the MCP servers: what?',
  });
});
