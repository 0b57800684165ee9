import { ThroughlineError } from '../../core/errors.ts';
import { OWNER_HEADER } from '../../wire/operations/operation.ts';
import type { AnswerOf, OPERATIONS } from '../../wire/operations.ts';
import { Caller } from './caller.ts';
import { Connection, TIMING, type Timing } from './connection.ts';
import { HttpEngine } from './engine.ts';
import { ROUTES } from './routes.ts';
import type { Transport } from './transport.ts';

export interface ConnectOptions {
  readonly transport: Transport;
  /** The token of the data home, or a key. Null: a page that is signed in sends its cookie by itself. */
  readonly token: string | null;
  /** On whose behalf, with the token of the data home; left out: whoever the server takes us for. */
  readonly owner?: string | undefined;
  readonly timing?: Partial<Timing> | undefined;
}

/** Finds out who we are to the server. Throws `unreachable` when there is none, or one of another version; `refused` when it does not know us. */
export async function connect({ transport, token, owner, timing }: ConnectOptions): Promise<HttpEngine> {
  checkToken(token);
  const connection = new Connection(transport, { ...TIMING, ...timing });
  try {
    const headers = {
      ...(token !== null && { authorization: `Bearer ${token}` }),
      ...(owner !== undefined && { [OWNER_HEADER]: encodeURIComponent(owner.toWellFormed()) }),
    };
    const { meetMs } = connection.timing;
    const asked = await connection.ask({ ...ROUTES.whoAsks, headers, withinMs: meetMs, repeatable: true });
    const me = asked as AnswerOf<(typeof OPERATIONS)['whoAsks']>;
    return new HttpEngine(new Caller(connection, { owner: me.owner, token, forOthers: me.by === 'token' }));
  } catch (error) {
    connection.close();
    throw error;
  }
}

/** A header takes no other characters, and would say so in words about headers. */
function checkToken(token: string | null): void {
  if (token === null || /^[\x21-\x7e]*$/.test(token)) return;
  throw new ThroughlineError('invalid', 'The token has a space, a line break or another character that no token has.', {
    hint: 'Look for more than one line in $THROUGHLINE_TOKEN, or wherever it comes from.',
  });
}
