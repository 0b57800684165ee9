import { ERROR_CODES, ThroughlineError } from '../../../core/errors.ts';

/*
 * The protocol between us and the bridge in a rented machine. Every request is a POST of one operation. A message is one line of JSON,
 * followed by raw bytes. The bridge pushes nothing: a client that waits for something asks for it again and again.
 */

/** A request that waits for something is answered after this time at the latest. */
export const WAIT_MS = 4_000;
/** A program that nobody has asked about for so long is ended: its starter must have died. */
export const PATIENCE_MS = 8_000;
/** How much output of a program is kept until it is fetched. Then the program has to wait. */
export const MOST_KEPT_BYTES = 2 ** 20;

/** Where the bridge is reached, and its token. It writes this file, and only its own user can read it. */
export interface BridgeFile {
  /** A bridge of another version is replaced. */
  readonly version: string;
  readonly port: number;
  readonly token: string;
}

/** An answer without it does not come from a bridge, but from something on the way to it. */
export const BRIDGE_HEADER = 'throughline-bridge';

/** The variable with the settings of a new bridge. */
export const BRIDGE_SETTINGS = 'THROUGHLINE_BRIDGE';

export interface BridgeSettings {
  readonly version: string;
  readonly port: number;
  /** Where it keeps its file, and the sandboxes. */
  readonly folder: string;
  readonly place: string;
}

export interface Message<Head = unknown> {
  readonly head: Head;
  readonly bytes: Buffer;
}

export function messageOf(head: unknown, bytes: string | Uint8Array = ''): Buffer {
  return Buffer.concat([Buffer.from(`${JSON.stringify(head ?? null)}\n`), Buffer.from(bytes)]);
}

export function parseMessage<Head>(message: Buffer): Message<Head> {
  const end = message.indexOf('\n');
  return { head: JSON.parse(message.toString('utf8', 0, end)) as Head, bytes: message.subarray(end + 1) };
}

/** An error as it is sent. One that is not a `ThroughlineError` is a bug of the bridge. */
export function sentError(error: unknown): { code: string; message: string; hint?: string } {
  if (!(error instanceof ThroughlineError)) return { code: 'internal', message: `In the sandbox: ${error}` };
  const { code, message, hint } = error;
  return { code, message, ...(hint !== undefined && { hint }) };
}

export function receivedError(head: unknown): ThroughlineError {
  const { code, message, hint } = head as ReturnType<typeof sentError>;
  const known = ERROR_CODES.find((one) => one === code) ?? 'internal';
  return new ThroughlineError(known, message, hint === undefined ? {} : { hint });
}
