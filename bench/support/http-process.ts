import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { createInterface, type Interface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const PROGRAM = fileURLToPath(new URL('http-server.ts', import.meta.url));
const HEADERS = { authorization: 'Bearer bench', 'content-type': 'application/json' };

/** The server process, and a client that takes as little time as possible. */
export class HttpProcess {
  readonly port: number;
  readonly #child: ChildProcess;
  readonly #lines: Interface;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 256 });

  private constructor(child: ChildProcess, lines: Interface, port: number) {
    this.#child = child;
    this.#lines = lines;
    this.port = port;
  }

  static async start(options: { chunks: number; everyMs: number; running: number }): Promise<HttpProcess> {
    const child = spawn(process.execPath, [PROGRAM, JSON.stringify(options)], { stdio: ['pipe', 'pipe', 'inherit'] });
    const lines = createInterface({ input: child.stdout });
    const [line] = await once(lines, 'line');
    return new HttpProcess(child, lines, JSON.parse(line).port);
  }

  /** The resident memory of the server, in bytes. */
  async rss(): Promise<number> {
    const answer = once(this.#lines, 'line');
    this.#child.stdin?.write('\n');
    return JSON.parse((await answer)[0]).rss;
  }

  post(path: string, body: object): Promise<{ status: number; text: string }> {
    return post(this.port, this.#agent, path, body);
  }

  async close(): Promise<void> {
    this.#agent.destroy();
    this.#child.stdin?.end();
    await once(this.#child, 'exit');
  }
}

export function post(
  port: number,
  agent: Agent,
  path: string,
  body: object,
): Promise<{ status: number; text: string }> {
  const payload = JSON.stringify(body);
  return new Promise((resolve, reject) => {
    const headers = { ...HEADERS, 'content-length': Buffer.byteLength(payload) };
    const asked = request(
      { host: '127.0.0.1', port, path: `/v1${path}`, method: 'POST', agent, headers },
      (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (chunk: string) => {
          text += chunk;
        });
        response.on('end', () => resolve({ status: response.statusCode ?? 0, text }));
      },
    );
    asked.on('error', reject).end(payload);
  });
}
