import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { BRIDGE_HEADER, type Message, messageOf, parseMessage, receivedError, WAIT_MS } from './inside/protocol.ts';

/** Where a bridge is. */
export interface Address {
  readonly url: string;
  readonly token: string;
}

/** The bridge has not answered: it may have done what it was asked, or not. */
export class NotAnswered extends Error {}

export interface RequestOptions {
  readonly signal?: AbortSignal;
  /** Our process may end while it waits. */
  readonly unref?: boolean;
}

/** Longer than the bridge takes for an answer, and for sending much. */
const MOST_SILENT_MS = WAIT_MS + 10_000;

const options = { keepAlive: true, noDelay: true };
const agents = { http: new HttpAgent(options), https: new HttpsAgent(options) };

/** Asks a bridge once. Throws what the bridge has thrown, and `NotAnswered`. */
export async function requested<Head>(
  { url, token }: Address,
  operation: string,
  args: unknown,
  bytes: string | Uint8Array = '',
  { signal, unref = false }: RequestOptions = {},
): Promise<Message<Head>> {
  const body = messageOf(args, bytes);
  const { promise, resolve, reject } = Promise.withResolvers<Message<Head>>();
  const target = new URL(operation, `${url}/`);
  const isPlain = target.protocol === 'http:';
  const request = (isPlain ? httpRequest : httpsRequest)(target, {
    method: 'POST',
    agent: isPlain ? agents.http : agents.https,
    headers: { authorization: `Bearer ${token}`, 'content-length': body.length },
    ...(signal && { signal }),
  });
  const fail = (cause: unknown) => reject(new NotAnswered(`The bridge does not answer: ${cause}`, { cause }));
  request.on('socket', (socket) => {
    if (unref) socket.unref();
    else socket.ref();
  });
  request.setTimeout(MOST_SILENT_MS, () => request.destroy(new Error('it is silent')));
  request.on('error', fail);
  request.on('response', (response) => {
    received<Head>(response).then(resolve, (error) => (error instanceof Answered ? reject(error.cause) : fail(error)));
  });
  request.end(body);
  return promise;
}

/** What the bridge has thrown, as its cause. */
class Answered extends Error {}

async function received<Head>(response: IncomingMessage): Promise<Message<Head>> {
  const chunks: Buffer[] = [];
  for await (const chunk of response as AsyncIterable<Buffer>) chunks.push(chunk);
  const { statusCode, headers } = response;
  if (headers[BRIDGE_HEADER] === undefined || statusCode === 401) throw new Error(`status ${statusCode}`);
  const message = parseMessage<Head>(Buffer.concat(chunks));
  if (statusCode !== 200) throw new Answered('', { cause: receivedError(message.head) });
  return message;
}
