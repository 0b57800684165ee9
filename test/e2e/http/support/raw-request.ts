import { type IncomingHttpHeaders, request } from 'node:http';
import type { ServedHome } from './served-home.ts';

/** A GET with exactly these headers, also with some that `fetch` does not send. */
export function rawRequest(home: ServedHome, path: string, headers: Record<string, string>, socketPath?: string) {
  return new Promise<{ status: number; text: string; headers: IncomingHttpHeaders }>((resolve, reject) => {
    const where = socketPath === undefined ? { host: '127.0.0.1', port: home.port } : { socketPath };
    const outgoing = request({ ...where, path, headers, setHost: false }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk) => {
        text += chunk;
      });
      response.on('end', () => resolve({ status: response.statusCode ?? 0, text, headers: response.headers }));
    });
    outgoing.on('error', reject);
    outgoing.end();
  });
}
