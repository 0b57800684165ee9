import { checkText } from '../../core/arguments.ts';
import { ThroughlineError } from '../../core/errors.ts';
import { OWNER_HEADER } from '../../wire/operations/operation.ts';
import type { AnswerOf, OPERATIONS, OperationName } from '../../wire/operations.ts';
import type { Connection, Request } from './connection.ts';
import { messages } from './event-stream.ts';
import { ROUTES } from './routes.ts';

type Answer<N extends OperationName> = AnswerOf<(typeof OPERATIONS)[N]>;

/** Who the server takes us for. */
export interface Identity {
  readonly owner: string;
  /** Sent with every request. */
  readonly token: string | null;
  /** Whether it may act for other owners. */
  readonly forOthers: boolean;
}

export interface Asked {
  readonly params?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  readonly body?: object;
  readonly long?: boolean;
  /** Left out: yes. */
  readonly repeatable?: boolean;
  readonly onLost?: () => void;
}

/** Asks the operations of one server, on behalf of one owner. */
export class Caller {
  readonly owner: string;
  readonly #connection: Connection;
  readonly #identity: Identity;

  constructor(connection: Connection, identity: Identity) {
    this.owner = identity.owner;
    this.#connection = connection;
    this.#identity = identity;
  }

  as(owner: string, by?: string): Caller {
    checkText(owner, 'owner');
    if (by !== undefined) {
      throw new ThroughlineError('refused', 'Who acts is told to a server by its token or key, and by nothing else.');
    }
    if (owner !== this.owner && !this.#identity.forOthers) {
      throw new ThroughlineError('refused', `This key acts for "${this.owner}" alone, and not for "${owner}".`, {
        hint: 'Only the token of the data home acts for others; or use a key of theirs.',
      });
    }
    return new Caller(this.#connection, { ...this.#identity, owner });
  }

  async ask<N extends OperationName>(name: N, asked: Asked): Promise<Answer<N>> {
    return (await this.#connection.ask(this.#request(name, asked))) as Answer<N>;
  }

  /** What accepts something: repeated after a lost reply it is the same, which was then not known before to whoever asks. */
  async accepted<T>(given: string | undefined, ask: (requestId: string) => Promise<T & { duplicate: boolean }>) {
    if (given !== undefined) return ask(checkText(given, 'request id'));
    return { ...(await ask(crypto.randomUUID())), duplicate: false };
  }

  messages(name: OperationName, asked: Asked, signal: AbortSignal | undefined) {
    return messages(this.#connection, this.#request(name, asked), signal);
  }

  close(): void {
    this.#connection.close();
  }

  #request(name: OperationName, { params = {}, query = {}, long, repeatable = true, ...rest }: Asked): Request {
    const { token, owner, forOthers } = this.#identity;
    const { method, path } = ROUTES[name];
    const search = new URLSearchParams();
    for (const [field, value] of Object.entries(query)) if (value !== undefined) search.set(field, String(value));
    return {
      method,
      path:
        path.replaceAll(/\{(\w+)\}/g, (_, field: string) => encodeURIComponent(params[field] ?? '')) +
        (search.size > 0 ? `?${search}` : ''),
      headers: {
        ...(token !== null && { authorization: `Bearer ${token}` }),
        ...(forOthers && { [OWNER_HEADER]: encodeURIComponent(owner) }),
      },
      withinMs: long ? this.#connection.timing.longMs : undefined,
      repeatable,
      ...rest,
    };
  }
}
