// A proxy between a server and PostgreSQL that can be cut: connections stay open, but no data passes.
import { mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export class Network implements AsyncDisposable {
  readonly #folder = mkdtempSync(join(tmpdir(), 'throughline-net-'));
  readonly #sockets = new Set<Socket>();
  /** Sockets of connections that will never carry data again. */
  readonly #silent = new Set<Socket>();
  /** The sockets towards PostgreSQL. */
  readonly #toDatabase = new WeakSet<Socket>();
  readonly #server: Server;
  #isCut = false;
  #connections = 0;
  /** Cut as soon as this text has passed. */
  #cutAfter: string | null = null;
  /** Where one connection is ended (`breakAt`). */
  #breakAt: { readonly at: string; readonly side: 'before' | 'after' } | null = null;

  /** A network to the socket of a PostgreSQL. */
  static async to(socket: string): Promise<Network> {
    const network = new Network(socket);
    await new Promise<void>((resolve) => network.#server.listen(join(network.#folder, '.s.PGSQL.5432'), resolve));
    return network;
  }

  private constructor(target: string) {
    this.#server = createServer((client) => {
      const database = connect(target);
      this.#connections += 1;
      this.#toDatabase.add(database);
      for (const socket of [client, database]) {
        this.#sockets.add(socket);
        socket.on('error', () => {}).on('close', () => this.#sockets.delete(socket) || this.#silent.delete(socket));
      }
      // When one side closes, the other side is closed as well, as after a reset.
      database.on('close', () => this.#silent.has(client) || client.end());
      client.on('close', () => database.end());
      for (const [from, to] of [
        [client, database],
        [database, client],
      ] as const) {
        from.on('data', (bytes) => {
          const found = from === client && this.#breakAt !== null && bytes.includes(this.#breakAt.at);
          const broken = found ? this.#breakAt : null;
          if (broken?.side !== 'before') to.write(bytes);
          if (broken !== null) {
            this.#breakAt = null;
            from.destroy();
          }
          if (this.#cutAfter !== null && bytes.includes(this.#cutAfter)) this.cut();
        });
        from.on('end', () => to.end());
        if (this.#isCut) from.pause();
      }
    });
  }

  /** The address of a database of that PostgreSQL, through this network. */
  url(address: string): string {
    const url = new URL(address);
    url.searchParams.set('host', this.#folder);
    return url.href;
  }

  /** How many connections were made so far. */
  get connections(): number {
    return this.#connections;
  }

  get isCut(): boolean {
    return this.#isCut;
  }

  cut(): void {
    this.#isCut = true;
    for (const socket of this.#sockets) socket.pause();
  }

  /** Cuts as soon as this text has passed. */
  cutAfter(text: string): void {
    this.#cutAfter = text;
  }

  /** Ends one connection when this text is sent: `before` it arrives, or `after` it has arrived; then the answer is lost. */
  breakAt(side: 'before' | 'after', at: string): void {
    this.#breakAt = { at, side };
  }

  heal(): void {
    this.#isCut = false;
    this.#cutAfter = null;
    for (const socket of this.#sockets) socket.resume();
  }

  /** Heals new connections only. Nothing passes through the old ones, and PostgreSQL closes its ends of them. */
  healForNewOnes(): void {
    for (const socket of this.#sockets) {
      if (this.#toDatabase.has(socket)) socket.destroy();
      else this.#silent.add(socket);
    }
    this.#sockets.clear();
    this.heal();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of [...this.#sockets, ...this.#silent]) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
