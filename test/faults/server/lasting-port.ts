import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';

/**
 * A free port that stays free while a server restarts. A port that the system chose may be taken in between: it gives the same ports to
 * other tests.
 */
export async function lastingPort(): Promise<number> {
  for (;;) {
    const server = createServer();
    try {
      server.listen(20_000 + Math.floor(Math.random() * 10_000), '127.0.0.1');
      await once(server, 'listening');
      return (server.address() as AddressInfo).port;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error;
    } finally {
      server.close();
    }
  }
}
