import { Agent, type IncomingMessage, request as requestHttp } from 'node:http';
import { request as requestHttps, Agent as SecureAgent } from 'node:https';
import { text } from 'node:stream/consumers';
import type { Incoming, Outgoing, Transport } from './transport.ts';

/** Over a unix socket. There, every server is called localhost. */
export function socketTransport(path: string): Transport {
  const agent = new Agent({ keepAlive: true });
  const options = { agent, socketPath: path };
  return {
    where: path,
    send: (asked) => sent((done) => requestHttp({ ...options, ...named(asked, 'localhost') }, done), asked.body),
    close: () => agent.destroy(),
  };
}

/** By TCP. Half as dear as `fetch`, and loaded sooner. */
export function tcpTransport(url: URL): Transport {
  const secure = url.protocol === 'https:';
  const agent = secure ? new SecureAgent({ keepAlive: true }) : new Agent({ keepAlive: true });
  const request = secure ? requestHttps : requestHttp;
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1');
  const options = { agent, host, port: url.port || (secure ? 443 : 80) };
  return {
    where: url.origin,
    send: (asked) => sent((done) => request({ ...options, ...named(asked, url.host) }, done), asked.body),
    close: () => agent.destroy(),
  };
}

function named({ method, path, headers, signal }: Outgoing, host: string) {
  return { method, path, signal, headers: { ...headers, host } };
}

type Begin = (done: (response: IncomingMessage) => void) => ReturnType<typeof requestHttp>;

function sent(begin: Begin, body: string | null): Promise<Incoming> {
  return new Promise((resolve, reject) => {
    const request = begin((response) => {
      resolve({
        status: response.statusCode ?? 0,
        header: (name) => [response.headers[name] ?? null].flat()[0] ?? null,
        text: () => text(response),
        chunks: () => response,
      });
    });
    // An error after the answer has begun reaches its reader.
    request.on('error', reject);
    request.end(body ?? undefined);
  });
}
