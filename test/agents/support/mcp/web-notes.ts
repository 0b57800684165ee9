// An MCP server over HTTP (streamable HTTP without streams). Requests need the right Authorization header.
import { json } from 'node:stream/consumers';
import { startLocalServer } from '../local-server.ts';
import { type McpRequest, mcpAnswer } from './answer.ts';

export function startWebNotes(authorization: string, note: string) {
  return startLocalServer(async (request, response) => {
    if (request.headers.authorization !== authorization) return response.writeHead(401).end();
    if (request.method !== 'POST') return response.writeHead(405).end();
    const answer = mcpAnswer((await json(request)) as McpRequest, () => note);
    if (answer === null) return response.writeHead(202).end();
    return response.writeHead(200, { 'content-type': 'application/json' }).end(answer);
  });
}
