// An MCP server at an address (streamable HTTP without streams), for those who send the right header.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { type McpRequest, mcpAnswer } from './mcp-answer.ts';

export async function startWebNotes(authorization: string, note: string) {
  const server = createServer(async (request, response) => {
    if (request.headers.authorization !== authorization) return response.writeHead(401).end();
    if (request.method !== 'POST') return response.writeHead(405).end();
    const answer = mcpAnswer((await json(request)) as McpRequest, () => note);
    if (answer === null) return response.writeHead(202).end();
    return response.writeHead(200, { 'content-type': 'application/json' }).end(answer);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
