import { createHash, timingSafeEqual } from 'node:crypto';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import { noSuch, ThroughlineError } from '../../../core/errors.ts';
import type { Answer, Asked, Operations } from './operations.ts';
import { BRIDGE_HEADER, messageOf, parseMessage, sentError } from './protocol.ts';

/** More than any request has. A whole transcript is written by one request. */
const MOST_BYTES = 512 * 2 ** 20;

type ByName = ReadonlyMap<string, (...args: unknown[]) => Promise<Answer<unknown>>>;

/** The address of a bridge is public, so every request needs the token. */
export function bridgeServer(operations: Operations, token: string): Server {
  const byName = new Map(Object.entries(operations)) as ByName;
  const server = createServer((request, response) => {
    const gone = new AbortController();
    response.once('close', () => gone.abort());
    const send = (status: number, { head, bytes }: Answer<unknown>) => {
      const body = messageOf(head, bytes);
      response.writeHead(status, { 'content-length': body.length, [BRIDGE_HEADER]: '1' });
      response.end(body);
    };
    if (!isAllowed(request, token)) {
      send(401, { head: { code: 'refused', message: 'The token is missing or wrong.' } });
      return;
    }
    carryOut(byName, request, gone.signal).then(
      (answer) => send(200, answer),
      (error: unknown) => send(422, { head: sentError(error) }),
    );
  });
  server.keepAliveTimeout = 60_000;
  return server;
}

async function carryOut(operations: ByName, request: IncomingMessage, gone: AbortSignal): Promise<Answer<unknown>> {
  const name = (request.url ?? '').slice(1);
  const operation = operations.get(name);
  if (operation === undefined || request.method !== 'POST') throw noSuch('operation', name);
  const { head, bytes } = parseMessage(await bodyOf(request));
  return operation(head, { bytes, gone } satisfies Asked);
}

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > MOST_BYTES) throw new ThroughlineError('too_large', 'The request is larger than the bridge accepts.');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function isAllowed({ headers }: IncomingMessage, token: string): boolean {
  // Hashes are of equal length.
  const hash = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(hash(headers.authorization ?? ''), hash(`Bearer ${token}`));
}
