import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import type { Random } from '../../../faults/harness/random.ts';

/**
 * A proxy between a client and the unix socket of a server. It can cut connections after some bytes from the server, lose the
 * reply to a request that has arrived, or pass on nothing more from the server.
 */
export class CuttingProxy {
  readonly path: string;
  /** How many connections clients have opened. */
  connections = 0;
  /** How many of them were cut. */
  cuts = 0;
  /** When it last passed something on to a client, in the time of `performance.now()`. */
  lastPassedAt = 0;
  /** How many more replies it loses: the request arrives, the reply does not. */
  loseReplies = 0;
  /** While this is true, nothing from the server is passed on. */
  mute = false;
  /** A connection is cut after at most so many bytes from the server. Null: none is cut. */
  cutWithin: { readonly bytes: number; readonly random: Random } | null = null;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor(path: string, target: string) {
    this.path = path;
    this.#server = createServer((client) => this.#pass(client, connect(target)));
  }

  static async between(folder: string, target: string): Promise<CuttingProxy> {
    const proxy = new CuttingProxy(join(folder, 'proxy'), target);
    proxy.#server.listen(proxy.path);
    await once(proxy.#server, 'listening');
    return proxy;
  }

  #pass(client: Socket, server: Socket): void {
    this.connections += 1;
    const end = () => {
      client.destroy();
      server.destroy();
    };
    for (const socket of [client, server]) {
      this.#sockets.add(socket);
      socket.on('error', () => {}); // expected: connections are cut here
      socket.on('close', () => {
        this.#sockets.delete(socket);
        end();
      });
    }
    let left = Number.POSITIVE_INFINITY;
    client.pipe(server);
    server.on('data', (chunk) => {
      if (this.mute) return;
      // Also for connections that were open before `cutWithin` was set: clients keep theirs.
      if (left === Number.POSITIVE_INFINITY && this.cutWithin !== null) {
        left = this.cutWithin.random.whole(0, this.cutWithin.bytes);
      }
      const isLost = this.loseReplies > 0;
      if (isLost) this.loseReplies -= 1;
      if (!isLost) {
        client.write(chunk.subarray(0, left));
        this.lastPassedAt = performance.now();
      }
      left -= chunk.length;
      if (!isLost && left > 0) return;
      this.cuts += 1;
      end();
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
    await once(this.#server, 'close');
  }
}
