// What is between a server and PostgreSQL, and can be cut: connections stay open, and nothing comes through them any more.
import { mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export class Network implements AsyncDisposable {
  readonly #folder = mkdtempSync(join(tmpdir(), 'throughline-net-'));
  readonly #sockets = new Set<Socket>();
  readonly #server: Server;
  #isCut = false;
  #last: string | null = null;

  /** To the socket of a PostgreSQL. */
  static async to(socket: string): Promise<Network> {
    const made = new Network(socket);
    await new Promise<void>((resolve) => made.#server.listen(join(made.#folder, '.s.PGSQL.5432'), resolve));
    return made;
  }

  private constructor(target: string) {
    this.#server = createServer((near) => {
      const far = connect(target);
      for (const socket of [near, far]) {
        this.#sockets.add(socket);
        socket.on('error', () => {}).on('close', () => this.#sockets.delete(socket));
      }
      for (const [from, to] of [
        [near, far],
        [far, near],
      ] as const) {
        from.on('data', (bytes) => {
          to.write(bytes);
          if (this.#last !== null && bytes.includes(this.#last)) this.cut();
        });
        from.on('end', () => to.end());
        if (this.#isCut) from.pause();
      }
    });
  }

  /** An address of that PostgreSQL, through this network. */
  url(address: string): string {
    const url = new URL(address);
    url.searchParams.set('host', this.#folder);
    return url.href;
  }

  get isCut(): boolean {
    return this.#isCut;
  }

  cut(): void {
    this.#isCut = true;
    for (const socket of this.#sockets) socket.pause();
  }

  /** As soon as this has gone through. */
  cutAfter(text: string): void {
    this.#last = text;
  }

  heal(): void {
    this.#isCut = false;
    this.#last = null;
    for (const socket of this.#sockets) socket.resume();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
