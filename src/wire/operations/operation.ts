import type * as z from 'zod';
import type { Scope } from '../../core/key.ts';

export type HeavyKind = 'conversation' | 'sandbox';

/** One operation of the HTTP interface. The checks of requests, the answers and the OpenAPI document follow from it. */
export interface Operation {
  readonly summary: string;
  readonly scope: Scope;
  /** Needs the token of the data home or a signed-in browser: a key is not enough, whatever its scopes. */
  readonly notByKey?: boolean;
  /** It concerns all owners: only for the token, and for the owner that the server was started for. */
  readonly operatorOnly?: boolean;
  readonly query?: z.ZodObject;
  /** Left out: there is no body. An absent body stands for `{}`. */
  readonly body?: z.ZodObject;
  /** The largest body in bytes; left out: one MiB. */
  readonly mostBytes?: number;
  /**
   * One owner may have only a few such requests at once. `conversation`: it reads or writes a whole conversation. `sandbox`: it starts
   * programs in a sandbox, which may take minutes.
   */
  readonly heavy?: HeavyKind;
  /** Begins work: refused while the server is stopping. */
  readonly begins?: boolean;
  /** The status of a success; left out: 200. */
  readonly status?: number;
  readonly answer: z.ZodType;
  /** The answer is a stream of server-sent events, each with this as its data. */
  readonly stream?: boolean;
}

export const BASE_PATH = '/v1';
/**
 * The number of this interface, in a header of every answer and of every request of our clients. It rises by one whenever one
 * side would no longer understand the other: `test/http-api.test.ts` asks for it. A server refuses requests with another number before it
 * does anything.
 */
export const INTERFACE = '4';
export const INTERFACE_HEADER = 'throughline-interface';
/** With the token of the data home, or a key with the scope `act-as`: the owner to act for, percent-encoded. */
export const OWNER_HEADER = 'throughline-owner';
/** Of a stream with numbers: the id of the log that they belong to. */
export const LOG_HEADER = 'throughline-log';
export const MEBIBYTE = 1_048_576;
