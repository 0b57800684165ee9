import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';

/**
 * A port that is free, and stays so while nobody listens there. One that the system chose need not: it gives the same ones to all
 * who ask for any port, and other tests do so all the time. The next server would then find its port taken.
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
