import { ThroughlineError } from '../../core/errors.ts';
import { checkText } from '../../core/input/arguments.ts';
import { checkKey } from '../../core/input/names.ts';
import { OWNER_HEADER } from '../../wire/operations/operation.ts';
import type { PartOf } from '../../wire/operations.ts';
import { type OperationName, ROUTES } from '../../wire/routes.ts';
import type { Connection, Request } from './connection/connection.ts';
import { messages, RECONNECTED } from './connection/event-stream.ts';

/** Who we are to the server. */
interface Identity {
  readonly owner: string;
  /** Sent with every request. */
  readonly token: string | null;
  /** Whether we may act for other owners. The server decides for which. */
  readonly forOthers: boolean;
}

export interface Asked {
  readonly params?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  readonly body?: object;
  /** How long the answer may take; left out: `timeoutMs`. */
  readonly within?: 'longMs' | 'firstAnswerMs';
  /** Left out: yes. */
  readonly repeatable?: boolean;
  readonly onLost?: () => void;
  /** Aborted: the caller has stopped waiting. */
  readonly signal?: AbortSignal | undefined;
}

/** Calls the operations of one server for one owner. */
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
    checkKey(owner, 'owner');
    if (by !== undefined) {
      throw new ThroughlineError('refused', 'A server knows who acts by the token or key; "by" cannot be set.');
    }
    if (owner !== this.owner && !this.#identity.forOthers) {
      throw new ThroughlineError('refused', `This key acts for "${this.owner}" only, not for "${owner}".`, {
        hint: `Use a key of "${owner}", or one with the scope "act-as" ("throughline keys create").`,
      });
    }
    return new Caller(this.#connection, { ...this.#identity, owner });
  }

  async ask<N extends OperationName>(name: N, asked: Asked): Promise<PartOf<N, 'answer'>> {
    return (await this.#connection.ask(this.#request(name, asked))) as PartOf<N, 'answer'>;
  }

  /** For operations with a request id. When we made the id ourselves, a duplicate is our own repetition after a lost reply. */
  async accepted<T>(given: string | undefined, ask: (requestId: string) => Promise<T & { duplicate: boolean }>) {
    if (given !== undefined) return ask(checkText(given, 'request id'));
    return { ...(await ask(crypto.randomUUID())), duplicate: false };
  }

  messages(name: OperationName, asked: Asked, signal: AbortSignal | undefined) {
    return messages(this.#connection, this.#request(name, asked), signal);
  }

  /** The events of a stream whose messages have numbers, so that none is missed. */
  async *events<E>(name: OperationName, asked: Asked, signal: AbortSignal | undefined): AsyncGenerator<E> {
    for await (const message of this.messages(name, asked, signal)) {
      if (message !== RECONNECTED) yield JSON.parse(message.data);
      if (signal?.aborted) return;
    }
  }

  /** For a stream that is opened with other arguments each time. */
  stream(name: OperationName, asked: Asked): { connection: Connection; request: Request } {
    return { connection: this.#connection, request: this.#request(name, asked) };
  }

  /** A file of the server that is not an operation, chunk by chunk. */
  file(path: string, signal?: AbortSignal): AsyncGenerator<Uint8Array> {
    return this.#connection.file(path, this.#headers(), signal);
  }

  close(): void {
    this.#connection.close();
  }

  #headers(): Record<string, string> {
    const { token, owner, forOthers } = this.#identity;
    return {
      ...(token !== null && { authorization: `Bearer ${token}` }),
      ...(forOthers && { [OWNER_HEADER]: encodeURIComponent(owner) }),
    };
  }

  #request(name: OperationName, { params = {}, query = {}, within, repeatable = true, ...rest }: Asked): Request {
    const { method, path } = ROUTES[name];
    const search = new URLSearchParams();
    for (const [field, value] of Object.entries(query)) if (value !== undefined) search.set(field, String(value));
    return {
      method,
      path:
        path.replaceAll(/\{(\w+)\}/g, (_, field: string) => encodeURIComponent(params[field] ?? '')) +
        (search.size > 0 ? `?${search}` : ''),
      headers: this.#headers(),
      withinMs: this.#connection.timing[within ?? 'timeoutMs'],
      repeatable,
      ...rest,
    };
  }
}
