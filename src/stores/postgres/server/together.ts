import type { PoolClient, QueryResult, Server, Statement } from './connect.ts';
import { type Asked, alone, type Group, groupsOf, inOrder, merged, type Types } from './many.ts';

// What is sent on one connection for many callers (many.ts), in one message.

/** The types of the parameters of a statement, as the server finds them. In one message, so that it needs no session of its own. */
const typesQuery = (text: string) => `
  PREPARE throughline_types AS ${text};
  SELECT parameter_types::text[] AS types FROM pg_prepared_statements WHERE name = 'throughline_types';
  DEALLOCATE throughline_types`;
const known = new Map<string, Types>();
const typesOf = (text: string) => known.get(text);

/** Asks for the types of statements that several send, once. */
async function learn(server: Server, client: PoolClient, statements: readonly Statement[]): Promise<void> {
  const seen = new Set<string>();
  for (const { text } of statements) {
    const isFirst = !seen.has(text);
    seen.add(text);
    if (isFirst || known.has(text)) continue;
    const results = (await server.query(client, typesQuery(text))) as unknown as QueryResult[];
    known.set(text, results[1]?.rows[0]?.types ?? []);
  }
}

/**
 * Sends what all have asked, and gives each its answer. True: there was a fault. `apart`: those that share a statement with a fault are then asked one
 * by one, so that each has its own; in a transaction nothing more can be asked then. `ms`: how long an answer
 * may take.
 */
export async function sendTogether(
  server: Server,
  client: PoolClient,
  all: readonly Asked[],
  { apart, ms }: { apart: boolean; ms?: number },
): Promise<boolean> {
  await learn(server, client, all);
  const answer = async (group: Group): Promise<void> => {
    const { text, values, asked } = group;
    try {
      const { rows } = await server.query(client, text, values as unknown[], ms);
      for (const [i, own] of group.share(rows).entries()) asked[i]?.resolve(own);
    } catch (error) {
      if (!apart || asked.length === 1) {
        for (const { reject } of asked) reject(error);
        throw error;
      }
      // One of them is at fault, and the others are not.
      await Promise.all(asked.map((one) => answer(alone(one))));
    }
  };
  const ends = await Promise.allSettled(groupsOf(all, typesOf).map(answer));
  return ends.some(({ status }) => status === 'rejected');
}

interface Writes {
  readonly firsts: readonly Statement[];
  /** Of each verb, in its order. */
  readonly lists: readonly (readonly Statement[])[];
  readonly last: readonly Statement[];
}

/** Sends what is written by several, and the end of the transaction. Rejects with the first fault. */
export async function sendWrites(server: Server, client: PoolClient, { firsts, lists, last }: Writes): Promise<void> {
  await learn(server, client, lists.flat());
  const statements = [...firsts, ...inOrder(lists).flatMap((same) => merged(same, typesOf)), ...last];
  const answers = statements.map(({ text, values }) => server.query(client, text, values as unknown[]));
  const all = [...answers, server.query(client, 'COMMIT')];
  for (const answer of all) answer.catch(() => {});
  for (const answer of all) await answer;
}
