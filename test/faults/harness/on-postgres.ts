import { PostgresServer } from '../../postgres/server.ts';
import type { StoreElsewhere } from './place.ts';

/** Each process has up to eleven connections, and those of a killed one end only after their statement. */
const SETTINGS = ['max_connections=300'];

/** Starts a PostgreSQL as the store of a place. */
export async function onPostgres(): Promise<StoreElsewhere> {
  const server = new PostgresServer();
  await server.start(SETTINGS);
  const database = await server.database();
  return {
    url: server.url(database),
    async rows<Row>(sql: string, values: readonly (string | number)[]) {
      let n = 0;
      const numbered = sql.replaceAll('?', () => `$${++n}`);
      return (await server.query(numbered, [...values], database)) as Row[];
    },
    async [Symbol.asyncDispose]() {
      await server.stop();
      server.remove();
    },
  };
}
