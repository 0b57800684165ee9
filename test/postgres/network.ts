// A proxy between a server and PostgreSQL that can be cut: connections stay open, but nothing gets through any more.
import { mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export class Network implements AsyncDisposable {
  readonly #folder = mkdtempSync(join(tmpdir(), 'throughline-net-'));
  readonly #sockets = new Set<Socket>();
  /** Sockets of connections through which nothing will come again. */
  readonly #silent = new Set<Socket>();
  /** The sockets towards PostgreSQL. */
  readonly #far = new WeakSet<Socket>();
  readonly #server: Server;
  #isCut = false;
  #made = 0;
  #last: string | null = null;
  #broken: { readonly at: string; readonly side: 'before' | 'after' } | null = null;

  /** To the socket of a PostgreSQL. */
  static async to(socket: string): Promise<Network> {
    const made = new Network(socket);
    await new Promise<void>((resolve) => made.#server.listen(join(made.#folder, '.s.PGSQL.5432'), resolve));
    return made;
  }

  private constructor(target: string) {
    this.#server = createServer((near) => {
      const far = connect(target);
      this.#made += 1;
      this.#far.add(far);
      for (const socket of [near, far]) {
        this.#sockets.add(socket);
        socket.on('error', () => {}).on('close', () => this.#sockets.delete(socket) || this.#silent.delete(socket));
      }
      // When one side closes, the other side is closed as well, as after a reset.
      far.on('close', () => this.#silent.has(near) || near.end());
      near.on('close', () => far.end());
      for (const [from, to] of [
        [near, far],
        [far, near],
      ] as const) {
        from.on('data', (bytes) => {
          const broken =
            from === near && this.#broken !== null && bytes.includes(this.#broken.at) ? this.#broken : null;
          if (broken?.side !== 'before') to.write(bytes);
          if (broken !== null) {
            this.#broken = null;
            from.destroy();
          }
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

  /** How many connections were made. */
  get connections(): number {
    return this.#made;
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
    this.#last = text;
  }

  /** Ends one connection when this text is sent: `before` it arrives, or `after` it has arrived; then the answer is lost. */
  breakAt(side: 'before' | 'after', at: string): void {
    this.#broken = { at, side };
  }

  heal(): void {
    this.#isCut = false;
    this.#last = null;
    for (const socket of this.#sockets) socket.resume();
  }

  /** Only for new connections. Those that were cut stay silent, and PostgreSQL closes its ends of them. */
  healForNewOnes(): void {
    for (const socket of this.#sockets) {
      if (this.#far.has(socket)) socket.destroy();
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
