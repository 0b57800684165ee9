import { ThroughlineError } from '../../core/errors.ts';
import { Caller } from './caller.ts';
import { Connection, TIMING, type Timing } from './connection/connection.ts';
import type { Transport } from './connection/transport.ts';
import { HttpEngine } from './engine.ts';

export interface ConnectOptions {
  readonly transport: Transport;
  /** The token of the data home, or a key. Null: a browser that is signed in sends its cookie by itself. */
  readonly token: string | null;
  /** With the token of the data home, or a key with `act-as`: the owner to act for; left out: the owner of the credentials. */
  readonly owner?: string | undefined;
  readonly timing?: Partial<Timing> | undefined;
  /** Called once whenever the server has not answered for a second and is still waited for. */
  readonly onAway?: ((trouble: ThroughlineError) => void) | undefined;
}

/** Asks the server who we are. Throws `unreachable` when there is none or it has another interface, `refused` for invalid credentials. */
export async function connect({ transport, token, owner, timing, onAway }: ConnectOptions): Promise<HttpEngine> {
  checkToken(token);
  const connection = new Connection(transport, { ...TIMING, ...timing }, onAway);
  try {
    const asking = { owner: owner?.toWellFormed() ?? '', token, forOthers: owner !== undefined };
    const me = await new Caller(connection, asking).ask('whoAmI', { within: 'firstAnswerMs' });
    // An older server does not report for whom else we can act.
    const forOthers = me.by === 'token' || (me.owners ?? null) !== null;
    return new HttpEngine(new Caller(connection, { owner: me.owner, token, forOthers }));
  } catch (error) {
    connection.close();
    throw error;
  }
}

/** A header cannot contain other characters, and its own error would not mention the token. */
function checkToken(token: string | null): void {
  if (token === null || /^[\x21-\x7e]*$/.test(token)) return;
  const hint = 'Check $THROUGHLINE_TOKEN, or wherever the token comes from, for a second line.';
  const message = 'The token contains a space, a line break or another character that is not allowed.';
  throw new ThroughlineError('invalid', message, { hint });
}
