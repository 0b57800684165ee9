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

/** Asks once for the parameter types of each statement that several callers send. */
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
 * Sends the statements of all callers, and gives each caller its answer. Returns true if there was a fault. `apart`: if a shared statement fails, its
 * callers' statements are sent one by one, so that each caller gets its own answer or fault. (Not in a transaction: after a fault it accepts no
 * statement.) `ms`: how long an answer may take.
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
      // Only one of them may have caused the fault.
      await Promise.all(asked.map((one) => answer(alone(one))));
    }
  };
  const ends = await Promise.allSettled(groupsOf(all, typesOf).map(answer));
  return ends.some(({ status }) => status === 'rejected');
}

interface Writes {
  readonly firsts: readonly Statement[];
  /** The writes of each verb, in its order. */
  readonly lists: readonly (readonly Statement[])[];
  readonly last: readonly Statement[];
}

/** Sends the writes of several verbs, and COMMIT. Rejects with the first fault. */
export async function sendWrites(server: Server, client: PoolClient, { firsts, lists, last }: Writes): Promise<void> {
  await learn(server, client, lists.flat());
  const statements = [...firsts, ...inOrder(lists).flatMap((same) => merged(same, typesOf)), ...last];
  const answers = statements.map(({ text, values }) => server.query(client, text, values as unknown[]));
  const all = [...answers, server.query(client, 'COMMIT')];
  for (const answer of all) answer.catch(() => {});
  for (const answer of all) await answer;
}
