import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import type { Random } from '../../../faults/harness/random.ts';

/**
 * Stands between a client and the unix socket of a server, and is unkind: it cuts connections after some bytes of what the
 * server says, loses replies whose request has arrived, or says nothing more.
 */
export class CuttingProxy {
  readonly path: string;
  /** How many connections there were. */
  came = 0;
  /** How many of them were cut. */
  cuts = 0;
  /** When it last passed something on to a client, in the time of `performance.now()`. */
  spokeAt = 0;
  /** So many replies are still to be lost: the request arrives, the answer does not. */
  loseReplies = 0;
  /** From now on, nothing that the server says is passed on. */
  mute = false;
  /** After so many bytes from the server, at most, a connection is cut; null: none is. */
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
    this.came += 1;
    const end = () => {
      client.destroy();
      server.destroy();
    };
    for (const socket of [client, server]) {
      this.#sockets.add(socket);
      socket.on('error', () => {}); // cut off: that is what it is for
      socket.on('close', () => {
        this.#sockets.delete(socket);
        end();
      });
    }
    let left = Number.POSITIVE_INFINITY;
    client.pipe(server);
    server.on('data', (chunk) => {
      if (this.mute) return;
      // Also of a connection that was there before: clients keep theirs.
      if (left === Number.POSITIVE_INFINITY && this.cutWithin !== null) {
        left = this.cutWithin.random.whole(0, this.cutWithin.bytes);
      }
      const lost = this.loseReplies > 0;
      if (lost) this.loseReplies -= 1;
      if (!lost) {
        client.write(chunk.subarray(0, left));
        this.spokeAt = performance.now();
      }
      left -= chunk.length;
      if (!lost && left > 0) return;
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
