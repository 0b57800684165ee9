import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { ThroughlineError } from '../../core/errors.ts';
import { BRIDGE_HEADER, type Message, messageOf, parseMessage, receivedError, WAIT_MS } from './inside/protocol.ts';

export interface BridgeAddress {
  readonly url: string;
  readonly token: string;
}

/** The bridge has not answered: it may have carried out the request or not. */
export class NotAnswered extends Error {}

export interface RequestOptions {
  readonly signal?: AbortSignal;
  /** True: the request does not keep our process alive. */
  readonly unref?: boolean;
}

/** Longer than the bridge takes to answer, and to send a large answer. */
const MOST_SILENT_MS = WAIT_MS + 10_000;

const options = { keepAlive: true, noDelay: true };
const agents = { http: new HttpAgent(options), https: new HttpsAgent(options) };

/** Sends one request to a bridge. Throws the error that the bridge answered with, and `NotAnswered`. */
export async function sendToBridge<Head>(
  { url, token }: BridgeAddress,
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
  request.setTimeout(MOST_SILENT_MS, () => request.destroy(new Error('timed out')));
  request.on('error', fail);
  request.on('response', (response) => {
    received<Head>(response).then(resolve, (error) =>
      error instanceof ThroughlineError ? reject(error) : fail(error),
    );
  });
  request.end(body);
  return promise;
}

/** Throws the `ThroughlineError` that the bridge answered with, and another error if this is not the answer of a bridge. */
async function received<Head>(response: IncomingMessage): Promise<Message<Head>> {
  const chunks: Buffer[] = [];
  for await (const chunk of response as AsyncIterable<Buffer>) chunks.push(chunk);
  const { statusCode, headers } = response;
  if (headers[BRIDGE_HEADER] === undefined || statusCode === 401) throw new Error(`status ${statusCode}`);
  const message = parseMessage<Head>(Buffer.concat(chunks));
  if (statusCode !== 200) throw receivedError(message.head);
  return message;
}
