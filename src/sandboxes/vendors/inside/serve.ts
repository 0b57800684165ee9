import { createHash, timingSafeEqual } from 'node:crypto';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import { noSuch, ThroughlineError } from '../../../core/errors.ts';
import type { Asked, Operations } from './operations.ts';
import { BRIDGE_HEADER, messageOf, parseMessage, sentError } from './protocol.ts';

/** More than anybody sends at once: a whole transcript is written by one request. */
const MOST_BYTES = 512 * 2 ** 20;

/** The address of a bridge is public: without the token nobody is told anything. */
export function bridgeServer(operations: Operations, token: string): Server {
  const byName = new Map(Object.entries(operations)) as ReadonlyMap<string, (...args: unknown[]) => Promise<Told>>;
  const server = createServer((request, response) => {
    const gone = new AbortController();
    response.once('close', () => gone.abort());
    const send = (status: number, { head, bytes }: Told) => {
      const body = messageOf(head, bytes);
      response.writeHead(status, { 'content-length': body.length, [BRIDGE_HEADER]: '1' });
      response.end(body);
    };
    if (!isAllowed(request, token)) {
      send(401, { head: { code: 'refused', message: 'The token is missing or wrong.' } });
      return;
    }
    answered(byName, request, gone.signal).then(
      (told) => send(200, told),
      (error: unknown) => send(422, { head: sentError(error) }),
    );
  });
  // Requests are short, or answered in time by the one who waits.
  server.keepAliveTimeout = 60_000;
  return server;
}

interface Told {
  readonly head: unknown;
  readonly bytes?: Uint8Array;
}

async function answered(
  operations: ReadonlyMap<string, (...args: unknown[]) => Promise<Told>>,
  request: IncomingMessage,
  gone: AbortSignal,
): Promise<Told> {
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
